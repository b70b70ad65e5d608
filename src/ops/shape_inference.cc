#include <shardprop/ops/shape_inference.h>

#include "base/try.h"
#include "ops/shape_context.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

const ShapeTable& table() {
  static const ShapeTable kTable = [] {
    ShapeTable rules;
    add_pointwise_shapes(rules);
    add_view_shapes(rules);
    add_reduction_shapes(rules);
    add_matmul_shapes(rules);
    add_creation_shapes(rules);
    add_indexing_shapes(rules);
    add_convolution_shapes(rules);
    add_normalization_shapes(rules);
    add_attention_shapes(rules);
    return rules;
  }();
  return kTable;
}

// "aten.mm" of "aten.mm.default".
std::string_view without_overload(const FunctionSchema& function) {
  const std::string_view name = function.name();
  return name.substr(0, name.rfind('.'));
}

ShapeRule find_rule(const FunctionSchema& function) {
  const auto found = table().find(without_overload(function));
  return found == table().end() ? nullptr : found->second;
}

// The argument that a result of a mutating overload is, by its alias set.
std::optional<std::size_t> written_argument(const FunctionSchema& function,
                                            const ArgumentSchema& result) {
  if (!result.alias || !result.alias->writes) return std::nullopt;
  for (std::size_t i = 0; i < function.arguments().size(); ++i) {
    const auto& alias = function.arguments()[i].alias;
    if (alias && alias->set == result.alias->set) return i;
  }
  return std::nullopt;
}

// In-place and out= overloads that return nothing but what they write.
bool returns_what_it_writes(const FunctionSchema& function) {
  return function.is_mutating() &&
         std::all_of(function.returns().begin(), function.returns().end(),
                     [&](const ArgumentSchema& result) {
                       return written_argument(function, result).has_value();
                     });
}

Results written_results(const OpSchema& op) {
  Results results;
  for (const ArgumentSchema& result : op.function->returns()) {
    const std::string& name =
        op.function->arguments()[*written_argument(*op.function, result)].name;
    if (result.is_list) {
      for (const std::size_t operand : op.tensor_list_arg(name)) {
        results.emplace_back(op.inputs[operand]);
      }
    } else if (const auto operand = op.tensor_arg(name)) {
      results.emplace_back(op.inputs[*operand]);
    } else {
      results.emplace_back(std::nullopt);
    }
  }
  return results;
}

Error mismatch(const OpSchema& op, std::string message) {
  Error error{
      ErrorCode::kShapeMismatch,
      "`" + op.name() + "` does not take these operands: " + std::move(message),
      {},
      {},
      {}};
  for (std::size_t i = 0; i < op.inputs.size() && i < 8; ++i) {
    error.notes.push_back("operand " + std::to_string(i) + ": " +
                          to_string(op.inputs[i]));
  }
  return error;
}

}  // namespace

Result<Results> infer_results(const OpSchema& op) {
  if (returns_what_it_writes(*op.function)) return written_results(op);
  const ShapeRule rule = find_rule(*op.function);
  if (rule == nullptr) {
    return fail(ErrorCode::kNoShapeInference,
                "the result shape of `" + op.name() + "` is not known",
                "give its outputs, as an exported graph does");
  }
  try {
    return rule(ShapeContext(op));
  } catch (ShapeError& error) {
    return fail(mismatch(op, std::move(error.message)));
  }
}

Result<std::vector<TensorMeta>> infer_outputs(const OpSchema& op) {
  SP_ASSIGN(Results results, infer_results(op));
  std::vector<TensorMeta> outputs;
  for (auto& result : results) {
    if (result) outputs.push_back(*std::move(result));
  }
  return outputs;
}

void set_results(OpSchema& op, std::vector<std::optional<TensorMeta>> results) {
  op.outputs.clear();
  op.output_slots.clear();
  for (auto& result : results) {
    if (!result) {
      op.output_slots.push_back(OpSchema::kNotProduced);
      continue;
    }
    op.output_slots.push_back(static_cast<std::int32_t>(op.outputs.size()));
    op.outputs.push_back(*std::move(result));
  }
}

bool has_shape_inference(const FunctionSchema& function) {
  return returns_what_it_writes(function) || find_rule(function) != nullptr;
}

std::vector<std::string_view> covered_by_shape_inference() {
  std::vector<std::string_view> names;
  for (const auto& [name, rule] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shardprop
