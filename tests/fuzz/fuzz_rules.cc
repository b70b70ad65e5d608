// Rules as text (--rule, Python, saved plans): every rule is refused with a
// reason, or prints as it parses, and then every call is refused with a reason or
// has an index space and strategies.
//
// Input: a rule, a newline, and a call by its tensors:
//   "mk,kn->mn" / "f32[8,4] f32[4,6] -> f32[8,6]"
#include "fuzz_input.h"

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/rule_text.h>
#include <shardprop/propagate/sharding_propagator.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

struct TensorLists {
  std::vector<TensorMeta> inputs;
  std::vector<TensorMeta> results;
};

// The tensors of a call; nullopt if a word is none, or there are too many.
std::optional<TensorLists> tensors_of(std::string_view text) {
  constexpr std::size_t kMost = 6;
  TensorLists lists;
  std::vector<TensorMeta>* to = &lists.inputs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word == "->") {
      to = &lists.results;
      continue;
    }
    auto meta = TensorMeta::parse(word);
    if (!meta || to->size() == kMost || meta->rank() > 12) return std::nullopt;
    to->push_back(*std::move(meta));
  }
  return lists;
}

// mylib::f(Tensor self, Tensor other, Tensor x2, ...) -> (Tensor, ...)
std::string declaration_of(const TensorLists& tensors) {
  std::string text = "mylib::f(";
  for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
    text += "Tensor ";
    text += i == 0 ? "self" : i == 1 ? "other" : "x" + std::to_string(i);
    text += ", ";
  }
  text += "int dim=0, int[] dims=[], bool keepdim=False, Scalar alpha=1) -> (";
  for (std::size_t i = 0; i < tensors.results.size(); ++i) {
    text += i == 0 ? "Tensor" : ", Tensor";
  }
  return text + ")";
}

void check_call(OpDefinition rule, const TensorLists& tensors) {
  static const auto kStandard = OpLibrary::standard();
  const auto library = kStandard->with(
      {.declaration = declaration_of(tensors), .definition = std::move(rule)});
  // A program may call its own operator.
  if (!library) return require_reason(library);
  std::vector<GivenArgument> given;
  for (std::size_t i = 0; i < tensors.inputs.size(); ++i) {
    given.push_back({"", TensorArg{static_cast<std::int32_t>(i)}});
  }
  auto op = make_op_schema((*library)->find("mylib.f.default"),
                           std::move(given), tensors.inputs);
  require(op.has_value());
  set_results(*op, {tensors.results.begin(), tensors.results.end()});
  const auto space = (*library)->index_space(*op);
  if (!space) return require_reason(space);
  require(space->inputs.size() == op->inputs.size());
  require(space->outputs.size() == op->outputs.size());
  for (std::size_t i = 0; i < op->inputs.size(); ++i) {
    require(space->inputs[i].dims.size() == op->inputs[i].shape().size());
  }
  require(!to_string(*space).empty());
  const auto propagator = ShardingPropagator::create(
      *DeviceMesh::parse("2,2"), default_topology(), *library);
  require(propagator.has_value());
  LayoutTable layouts;
  StrategyOptions options;
  options.limit = 200;
  const auto every = propagator->strategies(*op, layouts, options);
  if (!every) require_reason(every);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input = as_text(data, size);
  const std::size_t line = std::min(input.find('\n'), input.size());
  auto rule = parse_rule(input.substr(0, line));
  if (!rule) {
    require_reason(rule);
    return 0;
  }
  const auto again = parse_rule(rule->text());
  require(again.has_value() && again->text() == rule->text());
  std::string_view rest = input.substr(std::min(line + 1, input.size()));
  rest = rest.substr(0, rest.find('\n'));
  if (const auto tensors = tensors_of(rest)) {
    check_call(*std::move(rule), *tensors);
  }
  return 0;
}
