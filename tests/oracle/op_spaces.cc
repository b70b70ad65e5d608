// Prints everything that the library derives from operator calls: the results,
// the index space with all its fields, and the program of the ranks. A change of
// definitions that must not change their meaning gives equal output:
//
//   op_spaces BATCH.jsonl    lines as `shardprop propagate` reads them
//   op_spaces CALLS.list     lines as in tests/golden/index_spaces.list
//   op_spaces --catalogue    the overloads that have a definition
#include "cli/op_line.h"
#include "ops/call_text.h"
#include "ops/sample_calls.h"
#include "ops/space_printer.h"

#include <shardprop/ops/op_library.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)

// Messages may change; whether a call is refused may not.
std::string answer(const Result<OpSchema>& parsed, const OpLibrary& library) {
  if (!parsed) {
    return "refused " + std::to_string(static_cast<int>(parsed.error().code));
  }
  const OpSchema& op = *parsed;
  std::ostringstream out;
  for (const std::int32_t slot : op.output_slots) {
    out << (slot == OpSchema::kNotProduced
                ? "-"
                : to_string(op.outputs[static_cast<std::size_t>(slot)]))
        << ' ';
  }
  const auto inferred = library.infer_results(op);
  out << "| ";
  if (inferred) {
    for (const auto& result : *inferred) {
      out << (result ? to_string(*result) : "-") << ' ';
    }
  } else {
    out << "refused " << static_cast<int>(inferred.error().code) << ' ';
  }
  out << "| ";
  const auto space = library.index_space(op);
  if (space) {
    out << testing::full_text(*space);
  } else {
    out << "refused " << static_cast<int>(space.error().code);
  }
  return out.str();
}

Result<OpSchema> call_of(const std::string& line, const OpLibrary& library) {
  if (line.starts_with('{')) {
    std::optional<std::string> name;
    auto parsed = cli::parse_op_line(line, library, name);
    if (!parsed) return tl::unexpected<Error>(parsed.error());
    return *parsed->op;
  }
  auto op = testing::parse_call(line.substr(0, line.find(" => ")), library);
  if (!op) return op;
  if (auto filled = testing::fill_outputs(*op, library); !filled) {
    return tl::unexpected<Error>(filled.error());
  }
  return op;
}

int print_catalogue(const OpLibrary& library) {
  for (const std::string& name : library.names()) {
    if (library.row(*library.find(name)) != nullptr) std::cout << name << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto library = OpLibrary::standard();
    if (argc == 2 && std::string_view(argv[1]) == "--catalogue") {
      return print_catalogue(*library);
    }
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) {
      std::cerr << "usage: op_spaces BATCH.jsonl|CALLS.list|--catalogue\n";
      return 2;
    }
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line.starts_with('#')) continue;
      std::cout << answer(call_of(line, *library), *library) << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
