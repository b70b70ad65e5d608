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

#include <shardprop/ops/op_library.h>

#include <complex>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)

void print(std::ostream& out, const LocalRef& ref) {
  out << '%' << ref.step << '.' << ref.index;
}

void print(std::ostream& out, const RankScalar& scalar) {
  out << '<' << static_cast<int>(scalar.kind) << (scalar.of_output ? 'o' : 'i')
      << scalar.operand << ',' << scalar.dim << '*' << scalar.scale << '+'
      << scalar.constant;
  if (scalar.divisor != 1) out << '/' << scalar.divisor;
  if (scalar.rounds_up) out << '^';
  out << '>';
}

void print(std::ostream& out, const NoneArg&) { out << "None"; }
void print(std::ostream& out, const NamedArg& named) { out << named.name; }
void print(std::ostream& out, const TensorArg& tensor) {
  out << '$' << tensor.operand;
}
void print(std::ostream& out, DType dtype) { out << to_string(dtype); }
void print(std::ostream& out, bool value) { out << (value ? "True" : "False"); }
void print(std::ostream& out, std::int64_t value) { out << value; }
void print(std::ostream& out, double value) { out << value; }
void print(std::ostream& out, const std::complex<double>& value) {
  out << value;
}
void print(std::ostream& out, const std::string& text) { out << text; }

template <class T>
void print(std::ostream& out, const std::vector<T>& list) {
  out << '[';
  for (const auto& element : list) {
    print(out, static_cast<const T&>(element));
    out << ' ';
  }
  out << ']';
}

void print(std::ostream& out, const Argument& argument) {
  std::visit([&](const auto& value) { print(out, value); }, argument);
}

void print(std::ostream& out, const std::vector<DimFactors>& dims) {
  for (const DimFactors& dim : dims) {
    out << '(';
    for (const FactorId id : dim) out << id << ' ';
    out << ')';
  }
}

void print(std::ostream& out, const IndexSpace& space);

void print(std::ostream& out, const Decomposition& program) {
  out << (program.per_rank ? " per_rank{" : " decomposed{");
  for (const DecompositionStep& step : program.steps) {
    out << step.op.name;
    for (const auto& [name, value] : step.op.args) {
      out << ' ' << name << '=';
      std::visit([&](const auto& given) { print(out, given); }, value);
    }
    if (step.collective) {
      out << " collective " << static_cast<int>(step.collective->kind) << ' ';
      print(out, step.collective->value);
      if (step.collective->op) out << to_string(*step.collective->op);
      out << to_string(step.collective->meta);
      print(out, step.collective->dims);
    }
    for (const TensorMeta& meta : step.schema.inputs) out << to_string(meta);
    out << "->";
    for (const TensorMeta& meta : step.schema.outputs) out << to_string(meta);
    print(out, step.operands);
    if (step.space != nullptr) print(out, *step.space);
    out << "; ";
  }
  print(out, program.outputs);
  out << '}';
}

void print(std::ostream& out, const IndexSpace& space) {
  out << to_string(space);
  for (const Factor& factor : space.factors)
    out << " '" << factor.reason << "'";
  out << " flops=" << space.flops_per_point
      << " product=" << static_cast<int>(space.product)
      << " flags=" << space.normalises << space.carries << space.is_free
      << space.is_random << " into=" << space.writes_into << " unread=[";
  for (const std::size_t input : space.unread) out << input << ' ';
  out << ']';
  for (const LocalArgument& local : space.local_arguments) {
    out << ' ' << local.name << '=' << local.is_list;
    print(out, local.values);
  }
  if (space.program != nullptr) print(out, *space.program);
}

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
    print(out, *space);
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
