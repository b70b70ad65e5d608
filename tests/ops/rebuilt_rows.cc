// Rebuilds every row of the library from its printed text, and compares both on
// the calls of the golden list: equal results, index spaces and programs.
//
//   rebuilt_rows CALLS EXCEPTIONS            checks
//   rebuilt_rows CALLS EXCEPTIONS --write    writes the exceptions anew
//
// EXCEPTIONS lists the rows whose text is not the full definition, with the
// first part that is a C++ function: `aten.atan2  typed() is a function`. A row
// that becomes text leaves the list; a new row is text or is added to it.
#include "ops/call_text.h"
#include "ops/list_tool.h"
#include "ops/rules/rule_words.h"
#include "ops/sample_calls.h"
#include "ops/space_printer.h"

#include <shardprop/ops/op_library.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using shardprop::testing::fill_outputs;
using shardprop::testing::full_text;
using shardprop::testing::lines_of;
using shardprop::testing::parse_call;
using shardprop::testing::print_differences;
using shardprop::testing::write_lines;

// Returns why the text is not the full definition; empty if it parses to it.
std::string reason_of(const OpDefinition& definition) {
  const auto parsed = parse_row(definition.text());
  if (!parsed) return parsed.error().message;
  if (parsed->text() != definition.text()) {
    return "the text prints as " + parsed->text();
  }
  if (definition.unprinted().empty()) return {};
  return definition.unprinted().front() + "() is a function";
}

std::string call_result(const std::string& call, const OpLibrary& library) {
  auto op = parse_call(call, library);
  if (!op) return op.error().message;
  if (const auto filled = fill_outputs(*op, library); !filled) {
    return filled.error().message;
  }
  std::string text;
  for (const TensorMeta& output : op->outputs) text += to_string(output) + ' ';
  const auto space = library.index_space(*op);
  if (!space) return text + space.error().message;
  return text + full_text(*space);
}

struct Rebuilt {
  std::shared_ptr<const OpLibrary> library;
  std::map<std::string, std::string> exceptions;  // reason by row
};

// Returns the library with the rows of `known` as they are.
Rebuilt rebuilt(const std::shared_ptr<const OpLibrary>& standard,
                std::map<std::string, std::string> known) {
  Rebuilt out{standard, std::move(known)};
  for (const OpRow* row : standard->rows()) {
    if (out.exceptions.contains(row->name)) continue;
    if (std::string why = reason_of(row->definition); !why.empty()) {
      out.exceptions.emplace(row->name, std::move(why));
      continue;
    }
    auto with =
        out.library->with({.name = row->name,
                           .definition = *parse_row(row->definition.text()),
                           .family = row->family,
                           .note = row->note});
    if (!with) {
      out.exceptions.emplace(row->name, with.error().message);
      continue;
    }
    out.library = *std::move(with);
  }
  return out;
}

int run(const std::string& calls, const std::string& path, bool writes) {
  const auto standard = OpLibrary::standard();
  Rebuilt again = rebuilt(standard, {});
  int differing = 0;
  int compared = 0;
  // Some forms print as a notation that means something else.
  std::map<std::string, std::string> misread;
  for (const bool is_last : {false, true}) {
    for (const std::string& line : lines_of(calls)) {
      if (line.empty() || line.starts_with('#')) continue;
      const std::string call = line.substr(0, line.find(" => "));
      compared += is_last ? 1 : 0;
      if (call_result(call, *standard) == call_result(call, *again.library)) {
        continue;
      }
      if (!is_last) {
        const auto function = standard->find(call.substr(0, call.find('(')));
        misread.emplace(standard->row(*function)->name,
                        "the text is read as another rule");
        continue;
      }
      ++differing;
      std::cout << call << "\n  row:  " << call_result(call, *standard)
                << "\n  text: " << call_result(call, *again.library) << '\n';
    }
    if (!is_last) again = rebuilt(standard, misread);
  }
  std::size_t overloads = 0;
  std::size_t as_text = 0;
  for (const std::string& name : standard->names()) {
    const OpRow* row = standard->row(*standard->find(name));
    if (row == nullptr) continue;
    ++overloads;
    if (!again.exceptions.contains(row->name)) ++as_text;
  }
  std::vector<std::string> now;
  for (const auto& [name, why] : again.exceptions) {
    now.push_back(name + "  " + why);
  }
  const std::size_t rows = standard->rows().size();
  std::cout << rows - now.size() << " of " << rows << " rows and " << as_text
            << " of " << overloads << " overloads are rebuilt from their text; "
            << compared << " calls compared\n";
  if (writes) {
    write_lines(path, now);
  } else if (print_differences(lines_of(path), now) > 0) {
    std::cout << path << " differs; --write writes it anew\n";
    return 1;
  }
  return differing == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return shardprop::testing::run_list_tool(
      argc, argv, "rebuilt_rows CALLS EXCEPTIONS", run);
}
