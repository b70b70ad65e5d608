// The nodes of a program: operators applied, sizes computed.

#include "base/try.h"
#include "io/pt2_declare.h"
#include "io/pt2_effects.h"
#include "io/pt2_importer.h"
#include "io/pt2_metadata.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop::pt2 {
namespace {

bool starts_with_any(std::string_view text,
                     std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return text.starts_with(p); });
}

// Python's arithmetic on sizes, and what asks a tensor for its sizes.
bool computes_scalars(std::string_view target) {
  return starts_with_any(
      target, {"_operator.", "math.", "torch.sym_", "torch.ops.aten.sym_"});
}

// Checks at run time; they make nothing.
bool is_assertion(std::string_view target) {
  return starts_with_any(
      target, {"torch.ops.aten._assert_", "torch.ops.aten.sym_constrain_range",
               "torch.ops.aten._functional_assert_",
               "torch.ops.aten._linalg_check_errors."});
}

}  // namespace

Result<void> Importer::add_node(const Node& node) {
  if (is_with_effects(node.target)) return add_with_effects(node);
  if (is_higher_order(node.target)) {
    if (const auto region = region_of(node)) return add_region(node, *region);
  }
  if (is_assertion(node.target)) return {};
  if (computes_scalars(node.target)) return fold_scalars(node);
  SP_ASSIGN(std::shared_ptr<const FunctionSchema> function, declare(node));
  SP_ASSIGN(ReadArguments read, read_arguments(node, function, frame_.values,
                                               frame_.scope, builder_));
  NewNode added;
  added.op = std::move(read.op);
  SP_ASSIGN(const std::vector<std::string_view> names,
            add_results(node, added));
  if (names.empty() && !function->is_mutating()) return {};
  added.inputs = std::move(read.inputs);
  added.symbolic = std::move(read.symbolic);
  added.name = frame_.prefix;
  added.name += node.name.empty() && !names.empty() ? names.front() : node.name;
  ModulePlace module = innermost_module(node.module_stack);
  added.module_path = std::move(module.path);
  added.module_class = std::move(module.class_name);
  added.source = innermost_source(node.stack_trace);
  CustomMetadata custom = read_custom(node.custom);
  added.forward_node = std::move(custom.forward_node);
  added.decomposed_from = std::move(custom.decomposed_from);
  const std::string& checkpoint =
      frame_.checkpoint.empty() ? custom.checkpoint : frame_.checkpoint;
  if (!checkpoint.empty()) ++checkpoints_[checkpoint];
  if (frame_.is_autocast) SP_CHECK(cast_operands(added));
  SP_CHECK(take_as_written(node, added));
  SP_ASSIGN(const std::vector<ValueId> made,
            builder_.add_node(std::move(added)));
  if (node.outputs.empty() && !made.empty()) {
    // What a custom operator wrote.
    return builder_.write(frame_.scope.at(*written_argument(node)),
                          made.front());
  }
  for (std::size_t i = 0; i < names.size() && i < made.size(); ++i) {
    if (!frame_.scope.emplace(names[i], made[i]).second) {
      return fail(ErrorCode::kDuplicateName,
                  "two values are named " + quote(names[i]));
    }
  }
  return {};
}

// An operator with effects writes none of its operands: one without results
// leaves nothing that a plan could place.
Result<void> Importer::add_with_effects(const Node& node) {
  SP_ASSIGN(const Node within, without_token(node));
  if (!within.outputs.empty()) return add_node(within);
  if (!is_assertion(within.target) && left_out_.insert(within.target).second) {
    builder_.add_note(quote(within.target) +
                      " has effects and no results; it is left out");
  }
  return {};
}

// Sizes are known; what they were computed from stays as a guard.
Result<void> Importer::fold_scalars(const Node& node) {
  for (const Argument& output : node.outputs) {
    const auto* name = std::get_if<SymName>(&output);
    if (name == nullptr || !name->is_name()) continue;
    // What nothing knows is missed where it is used.
    const auto scalar = frame_.values.scalar(*name);
    if (!scalar || !scalar->expression || is_bounded(*scalar->expression)) {
      continue;
    }
    const std::string text = to_string(*scalar->expression);
    if (frame_.values.symbols().contains(text)) continue;
    builder_.add_guard({text + " == " + std::to_string(scalar->value),
                        "node " + std::string(node.name)});
  }
  return {};
}

Result<std::shared_ptr<const FunctionSchema>> Importer::declare(
    const Node& node) {
  if (auto known = library_.find(node.target)) return known;
  SP_ASSIGN(const std::string text, declaration_of(node, library_));
  auto& schema = undeclared_[text];
  if (schema == nullptr) {
    SP_ASSIGN(FunctionSchema parsed, FunctionSchema::parse(text, "undeclared"));
    if (!is_higher_order(node.target)) {
      builder_.add_note(quote(node.target) + " is not declared; taken for " +
                        (node.outputs.empty() ? "a write of its first tensor"
                                              : "functional") +
                        ": " + text);
    }
    schema = std::make_shared<const FunctionSchema>(std::move(parsed));
  }
  return schema;
}

// Fills in op's results as the file has them; returns the names of those
// that are produced.
Result<std::vector<std::string_view>> Importer::add_results(const Node& node,
                                                            NewNode& added) {
  const std::vector<ArgumentSchema>& declared = added.op.function->returns();
  if (node.outputs.empty() && added.op.function->has_tag("undeclared") &&
      !declared.empty()) {
    SP_ASSIGN(ResolvedTensor written,
              frame_.values.tensor(*written_argument(node)));
    set_results(added.op, {std::move(written.meta)});
    added.output_symbolic.push_back(std::move(written.symbolic));
    return std::vector<std::string_view>{node.name};
  }
  if (declared.size() != node.outputs.size()) {
    return fail(ErrorCode::kResultMismatch,
                quote(node.target) + " returns " +
                    std::to_string(declared.size()) + " results, the node " +
                    std::to_string(node.outputs.size()),
                to_string(*added.op.function));
  }
  std::vector<std::string_view> names;
  std::vector<std::optional<TensorMeta>> results;
  const auto produce = [&](std::string_view name) -> Result<void> {
    if (name.data() == nullptr) {
      results.emplace_back(std::nullopt);
      return {};
    }
    SP_ASSIGN(ResolvedTensor resolved, frame_.values.tensor(name));
    results.emplace_back(std::move(resolved.meta));
    added.output_symbolic.push_back(std::move(resolved.symbolic));
    added.output_names.push_back(frame_.prefix + std::string(name));
    names.push_back(name);
    return {};
  };
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].type != ArgumentType::kTensor) continue;
    const Argument& output = node.outputs[i];
    const auto* one = std::get_if<TensorName>(&output);
    const auto* list = std::get_if<TensorNames>(&output);
    const bool absent = std::holds_alternative<None>(output);
    if (declared[i].is_list ? list == nullptr : one == nullptr && !absent) {
      return fail(ErrorCode::kResultMismatch,
                  "result " + std::to_string(i) + " of " + quote(node.target) +
                      " is not a " +
                      (declared[i].is_list ? "list of tensors" : "tensor"),
                  to_string(*added.op.function));
    }
    if (list != nullptr) {
      for (const std::string_view name : *list) SP_CHECK(produce(name));
    } else {
      SP_CHECK(produce(absent ? std::string_view{} : one->name));
    }
  }
  set_results(added.op, std::move(results));
  return names;
}

bool Importer::is_bounded(const SymExpr& expression) const {
  const auto& symbols = frame_.values.symbols();
  const auto names = expression.symbols();
  return std::any_of(names.begin(), names.end(), [&](const auto& name) {
    const auto found = symbols.find(name);
    return found != symbols.end() && !found->second.hint;
  });
}

}  // namespace shardprop::pt2
