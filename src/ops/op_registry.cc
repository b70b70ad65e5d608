#include <shardprop/ops/op_registry.h>

#include "base/try.h"
#include "ops/suggest_operator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace shardprop {

// The generated table: one declaration a line, sorted by qualified name.
extern const std::string_view kAtenSchemas;

namespace {

struct TableLine {
  std::string_view name;  // aten::add.Tensor
  std::string_view declaration;
  std::string_view tags;
};

std::vector<TableLine> index_table() {
  std::vector<TableLine> lines;
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

const std::vector<TableLine>& table() {
  static const std::vector<TableLine> kLines = index_table();
  return kLines;
}

// "aten.mm.default" of "torch.ops.aten.mm.default", "aten::mm" or "aten.mm".
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

// "aten::add.Tensor" of "aten.add.Tensor", "aten::mm" of "aten.mm.default".
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

const TableLine* find_line(std::string_view name) {
  const std::string wanted = qualified(name);
  const std::vector<TableLine>& lines = table();
  const auto found =
      std::lower_bound(lines.begin(), lines.end(), wanted,
                       [](const TableLine& line, const std::string& key) {
                         return line.name < key;
                       });
  return found != lines.end() && found->name == wanted ? &*found : nullptr;
}

}  // namespace

struct OpRegistry::Body {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const FunctionSchema>> parsed;
};

OpRegistry::OpRegistry() : body_(std::make_unique<Body>()) {}
OpRegistry::~OpRegistry() = default;

std::shared_ptr<const FunctionSchema> OpRegistry::find(
    std::string_view name) const {
  std::string key = canonical(name);
  const std::scoped_lock lock(body_->mutex);
  if (const auto known = body_->parsed.find(key);
      known != body_->parsed.end()) {
    return known->second;
  }
  const TableLine* line = find_line(key);
  if (line == nullptr) return nullptr;
  auto schema = FunctionSchema::parse(line->declaration, line->tags);
  if (!schema) {
    throw InternalError(
        "the table of operators holds a line that does not "
        "parse: " +
        std::string(line->declaration));
  }
  auto shared = std::make_shared<const FunctionSchema>(*std::move(schema));
  body_->parsed.emplace(std::move(key), shared);
  return shared;
}

Result<std::shared_ptr<const FunctionSchema>> OpRegistry::add(
    std::string_view declaration, std::string_view tags) {
  SP_ASSIGN(FunctionSchema schema, FunctionSchema::parse(declaration, tags));
  const std::scoped_lock lock(body_->mutex);
  if (body_->parsed.contains(schema.name()) ||
      find_line(schema.name()) != nullptr) {
    return fail(ErrorCode::kOpRegistered,
                "`" + schema.name() + "` is already declared",
                "choose a namespace of your own");
  }
  auto shared = std::make_shared<const FunctionSchema>(std::move(schema));
  body_->parsed.emplace(shared->name(), shared);
  return shared;
}

std::vector<std::string> OpRegistry::names() const {
  std::vector<std::string> all;
  all.reserve(table().size());
  for (const TableLine& line : table()) all.push_back(canonical(line.name));
  {
    const std::scoped_lock lock(body_->mutex);
    for (const auto& [name, schema] : body_->parsed) {
      if (find_line(name) == nullptr) all.push_back(name);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string OpRegistry::suggest(std::string_view unknown) const {
  return suggest_operator(canonical(unknown), names());
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
