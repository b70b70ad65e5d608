#include "ops/space_printer.h"

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/op_schema.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

namespace shardprop::testing {
namespace {

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
      if (step.collective->kind == CollectiveKind::kAllGather) {
        out << (step.collective->in_order ? " in_order " : " unordered ");
      }
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

}  // namespace

std::string full_text(const IndexSpace& space) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  print(out, space);
  return out.str();
}

}  // namespace shardprop::testing
