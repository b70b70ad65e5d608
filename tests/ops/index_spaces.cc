// Checks the golden list of index spaces, which has a line for every operator
// with a definition. In this list a reviewer sees the effect of a change to a
// definition or a rule.
//
//   index_spaces FILE REASONS            checks them
//   index_spaces FILE REASONS --write    writes what the rows say now
//
// A line has a call, its results and its index space:
//
//   aten.mm.default(f32[4,6], f32[6,8]) => f32[4,8]; ab,bc->ac {...} ...
//
// A rewrite of the list keeps its calls. An operator without a line gets a call
// from sample_call(). If that finds none, write the call by hand or add a
// comment line `# no call: NAME  its sizes depend on the data`. Comments start
// with `#`.
//
// REASONS lists the rows whose form is a function of their own, `custom`, and
// why: `aten.unfold_backward  windows of a dim`. They are at most a tenth of all
// rows.
//
// A definition whose note starts with `replicated: ` gives the reason why no
// dim of its operator is ever sharded. These are exactly the overloads without
// a shardable factor in any of their lines. At most 3 in 100 underived
// definitions may have the note.

#include "ops/call_text.h"
#include "ops/list_tool.h"
#include "ops/sample_calls.h"

#include <shardprop/ops/op_library.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using shardprop::testing::fill_outputs;
using shardprop::testing::lines_of;
using shardprop::testing::parse_call;
using shardprop::testing::print_differences;
using shardprop::testing::sample_call;
using shardprop::testing::to_text;
using shardprop::testing::write_lines;

constexpr std::string_view kArrow = " => ";
constexpr std::string_view kNoCall = "# no call: ";
// The one reason that there is for it.
constexpr std::string_view kByData = "  its sizes depend on the data";

std::string outputs_text(const OpSchema& op) {
  std::string out;
  for (const std::int32_t slot : op.output_slots) {
    if (!out.empty()) out += ' ';
    out += slot == OpSchema::kNotProduced
               ? "-"
               : to_string(op.outputs[static_cast<std::size_t>(slot)]);
  }
  return out.empty() ? "nothing" : out;
}

// The line of a call.
std::string line_of(const std::string& call, const OpLibrary& library) {
  auto op = parse_call(call, library);
  if (!op) return call + std::string(kArrow) + op.error().message;
  if (const auto filled = fill_outputs(*op, library); !filled) {
    return call + std::string(kArrow) + filled.error().message;
  }
  const auto space = library.index_space(*op);
  const std::string text = space ? to_string(*space) : space.error().message;
  const auto back = parse_index_space(text);
  const bool reads_back = !space || (back && to_string(*back) == text);
  return to_text(*op) + std::string(kArrow) + outputs_text(*op) + "; " + text +
         (reads_back ? "" : " which does not read back");
}

std::string name_of(std::string_view line) {
  return std::string(line.substr(0, line.find('(')));
}

// The file as it would be written now; `missing` receives the operators that
// want a call by hand.
std::vector<std::string> lines_now(const std::vector<std::string>& lines,
                                   const OpLibrary& library, bool draws,
                                   std::vector<std::string>& missing) {
  std::vector<std::string> comments;
  std::set<std::pair<std::string, std::string>> by_name;
  std::set<std::string> known;
  for (const std::string& line : lines) {
    if (line.starts_with('#')) {
      comments.push_back(line);
      if (line.starts_with(kNoCall) && line.ends_with(kByData)) {
        const std::string name = line.substr(kNoCall.size());
        known.insert(name.substr(0, name.find(' ')));
      }
    } else if (!line.empty()) {
      const std::string call = line.substr(0, line.find(kArrow));
      by_name.emplace(name_of(call), line_of(call, library));
      known.insert(name_of(call));
    }
  }
  for (const std::string& name : library.names()) {
    if (known.contains(name) || library.row(*library.find(name)) == nullptr) {
      continue;
    }
    const auto sample = draws ? sample_call(library, name) : std::nullopt;
    if (sample) {
      by_name.emplace(name, line_of(to_text(*sample), library));
    } else {
      missing.push_back(name);
    }
  }
  std::vector<std::string> out = std::move(comments);
  for (const auto& [name, line] : by_name) out.push_back(line);
  return out;
}

int check(const std::vector<std::string>& before,
          const std::vector<std::string>& now) {
  const int shown = print_differences(before, now);
  if (shown > 0) {
    std::cout << shown << " lines differ; --write writes "
              << "the list anew\n";
  }
  return shown;
}

// Whether REASONS names the custom rows, each with a reason, and they are few.
bool check_reasons(const std::string& path, const OpLibrary& library,
                   bool writes) {
  const std::vector<std::string> lines = lines_of(path);
  std::map<std::string, std::string> reasons;
  std::vector<std::string> comments;
  for (const std::string& line : lines) {
    if (line.starts_with('#')) {
      comments.push_back(line);
      continue;
    }
    const std::size_t space = std::min(line.find(' '), line.size());
    reasons[line.substr(0, space)] = line.substr(space);
  }
  std::size_t custom = 0;
  bool right = true;
  std::vector<std::string> now = std::move(comments);
  const std::vector<const OpRow*> rows = library.rows();
  for (const OpRow* row : rows) {
    if (!row->definition.is_custom()) continue;
    ++custom;
    now.push_back(row->name + reasons[row->name]);
    if (reasons[row->name].empty()) {
      std::cout << row->name << " is custom: write the reason\n";
      right = false;
    }
  }
  std::cout << custom << " of " << rows.size() << " rows are custom\n";
  if (writes) {
    write_lines(path, now);
  } else if (now != lines) {
    std::cout << path << " lists others; --write writes it anew\n";
    right = false;
  }
  return right && custom * 10 <= rows.size();
}

// The names of the overloads that may be sharded in some line.
std::set<std::string> sharded_in(const std::vector<std::string>& lines) {
  std::set<std::string> sharded;
  for (const std::string& line : lines) {
    const std::size_t space = line.find("; ");
    if (line.starts_with('#') || space == std::string::npos) continue;
    const auto parsed = parse_index_space(line.substr(space + 2));
    if (!parsed) continue;
    const auto& factors = parsed->factors;
    if (std::any_of(factors.begin(), factors.end(),
                    [](const Factor& factor) { return factor.shardable(); })) {
      sharded.insert(name_of(line));
    }
  }
  return sharded;
}

// Whether rows say of the right overloads that they run replicated, and of few.
bool check_replicated(const std::vector<std::string>& lines,
                      const OpLibrary& library) {
  const std::set<std::string> sharded = sharded_in(lines);
  const std::set<std::string> known(lines.begin(), lines.end());
  std::size_t all = 0;
  std::size_t replicated = 0;
  bool right = true;
  for (const std::string& name : library.names()) {
    const auto function = library.find(name);
    const OpRow* row = library.row(*function);
    const bool is_derived = library.form(*function) != nullptr &&
                            row != nullptr && row->name != name;
    if (row == nullptr || is_derived) continue;
    ++all;
    const bool says_so = row->note.starts_with("replicated: ");
    if (says_so) ++replicated;
    // An operator without a line is not checked: its note is accepted.
    const bool has_line =
        !known.contains(std::string(kNoCall) + name + std::string(kByData));
    if (!has_line || says_so != sharded.contains(name)) continue;
    right = false;
    std::cout << name
              << (says_so ? " is sharded in a line, and its note says "
                            "`replicated: ...`\n"
                          : " is sharded in no line: write a call in which it "
                            "is, or a note `replicated: REASON`\n");
  }
  std::cout << replicated << " of " << all << " overloads run replicated\n";
  return right && replicated * 100 <= all * 3;
}

int run(const std::string& path, const std::string& reasons, bool writes) {
  const std::vector<std::string> before = lines_of(path);
  const auto library = OpLibrary::standard();
  const bool few = check_reasons(reasons, *library, writes);
  std::vector<std::string> missing;
  const std::vector<std::string> now =
      lines_now(before, *library, writes, missing);
  for (const std::string& name : missing) {
    std::cout << name << " has no line: write its call, `" << name
              << "(...)`\n";
  }
  if (writes) {
    write_lines(path, now);
    return missing.empty() && few && check_replicated(now, *library) ? 0 : 1;
  }
  const bool listed = check_replicated(now, *library);
  return check(before, now) == 0 && missing.empty() && few && listed ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return shardprop::testing::run_list_tool(argc, argv,
                                           "index_spaces FILE REASONS", run);
}
