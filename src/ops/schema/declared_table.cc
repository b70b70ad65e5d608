#include "ops/schema/declared_table.h"

#include <shardprop/ops/op_library.h>

#include <algorithm>

namespace shardprop {

// The generated table has one declaration a line, sorted by qualified name.
extern const std::string_view kAtenSchemas;

namespace {

std::vector<DeclaredLine> indexed_lines() {
  std::vector<DeclaredLine> lines;
  std::string_view rest = kAtenSchemas;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t tab = std::min(line.find('\t'), line.size());
    lines.push_back({line.substr(0, line.find('(')), line.substr(0, tab),
                     line.substr(std::min(tab + 1, line.size()))});
  }
  return lines;
}

}  // namespace

const std::vector<DeclaredLine>& declared_table() {
  static const std::vector<DeclaredLine> kLines = indexed_lines();
  return kLines;
}

std::string canonical(std::string_view name) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (name.substr(0, kPrefix.size()) == kPrefix) {
    name.remove_prefix(kPrefix.size());
  }
  std::string out(name);
  if (const std::size_t colons = out.find("::"); colons != std::string::npos) {
    out.replace(colons, 2, ".");
  }
  if (std::count(out.begin(), out.end(), '.') == 1) out += ".default";
  return out;
}

std::string qualified(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::string(name);
  std::string out(name.substr(0, dot));
  out += "::";
  std::string_view rest = name.substr(dot + 1);
  constexpr std::string_view kDefault = ".default";
  if (rest.size() > kDefault.size() &&
      rest.substr(rest.size() - kDefault.size()) == kDefault) {
    rest.remove_suffix(kDefault.size());
  }
  out += rest;
  return out;
}

namespace {

// Returns the first line whose name is not before `name`; null if there is none.
const DeclaredLine* first_not_before(std::string_view name) {
  const std::vector<DeclaredLine>& lines = declared_table();
  const auto found =
      std::lower_bound(lines.begin(), lines.end(), name,
                       [](const DeclaredLine& line, std::string_view key) {
                         return line.name < key;
                       });
  return found != lines.end() ? &*found : nullptr;
}

}  // namespace

const DeclaredLine* find_declared(std::string_view name) {
  const std::string wanted = qualified(name);
  const DeclaredLine* found = first_not_before(wanted);
  return found != nullptr && found->name == wanted ? found : nullptr;
}

bool is_in_table(std::string_view row) {
  const std::string name = qualified(row);
  const DeclaredLine* found = first_not_before(name);
  return found != nullptr && found->name.starts_with(name) &&
         (found->name.size() == name.size() || found->name[name.size()] == '.');
}

std::string_view torch_release() {
  static const std::string_view kRelease = [] {
    const std::string_view line =
        kAtenSchemas.substr(0, kAtenSchemas.find('\n'));
    const std::size_t space = line.rfind(' ');
    std::string_view release = line.substr(space + 1);
    if (!release.empty() && release.back() == '.') release.remove_suffix(1);
    return release;
  }();
  return kRelease;
}

}  // namespace shardprop
