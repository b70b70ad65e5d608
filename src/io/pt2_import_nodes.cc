// Imports the nodes of a program: applies operators and computes sizes.

#include "base/edit_distance.h"
#include "base/try.h"
#include "io/pt2_declare.h"
#include "io/pt2_effects.h"
#include "io/pt2_functionalized.h"
#include "io/pt2_importer.h"
#include "io/pt2_metadata.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::pt2 {
namespace {

bool starts_with_any(std::string_view text,
                     std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return text.starts_with(p); });
}

// True for Python's arithmetic on sizes, and for operators that return the
// sizes of a tensor.
bool computes_scalars(std::string_view target) {
  return starts_with_any(
      target, {"_operator.", "math.", "torch.sym_", "torch.ops.aten.sym_"});
}

// True for checks at run time, which produce nothing.
bool is_assertion(std::string_view target) {
  return starts_with_any(
      target, {"torch.ops.aten._assert_", "torch.ops.aten.sym_constrain_range",
               "torch.ops.aten._functional_assert_",
               "torch.ops.aten._linalg_check_errors."});
}

// Returns the operator of the same library whose rule has a similar name, for a user who
// misspelt one in a file of operators; empty if there is none.
std::string similar_rule(std::string_view target, const OpLibrary& library) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (target.starts_with(kPrefix)) target.remove_prefix(kPrefix.size());
  const std::string_view wanted = target.substr(0, target.rfind('.'));
  const std::string_view ns = target.substr(0, target.find('.') + 1);
  std::vector<std::string_view> names;
  for (const OpRow* row : library.rows()) {
    const std::string_view name = row->name;
    const bool has_overload = std::count(name.begin(), name.end(), '.') > 1;
    if (row->family != "user" || !name.starts_with(ns)) continue;
    // A rule may have the name of the operator without an overload.
    if (name == wanted) return {};
    if (!has_overload) continue;
    names.push_back(name.substr(ns.size(), name.rfind('.') - ns.size()));
  }
  if (names.empty() || wanted.size() <= ns.size()) return {};
  const std::string nearest = did_you_mean(wanted.substr(ns.size()), names);
  if (!nearest.starts_with("did")) return {};
  const std::size_t begin = nearest.find('`') + 1;
  return std::string(ns) + nearest.substr(begin, nearest.rfind('`') - begin);
}

// Describes the guess about an undeclared operator in a note.
UndeclaredOperatorNote undeclared(const Node& node,
                                  const WrittenArguments& written,
                                  const std::string& declaration,
                                  const OpLibrary& library) {
  UndeclaredOperatorNote note{.op = std::string(node.target),
                              .declaration = declaration};
  const std::string similar = similar_rule(node.target, library);
  if (!similar.empty()) {
    note.declaration +=
        "; a rule is given for `" + similar + "`, which has a similar name";
  }
  if (written.names.empty()) return note;
  note.writes = written.are_results
                    ? UndeclaredOperatorNote::Writes::kNamed
                    : UndeclaredOperatorNote::Writes::kFirstTensor;
  note.written = written.names;
  return note;
}

}  // namespace

Result<void> Importer::add_node(const Node& node) {
  if (is_with_effects(node.target)) return add_with_effects(node);
  if (is_auto_functionalized(node.target)) {
    SP_ASSIGN(auto call, wrapped_call(node));
    if (call) return add_functionalized(*std::move(call));
  }
  if (is_higher_order(node.target)) {
    if (const auto region = region_of(node)) return add_region(node, *region);
  }
  if (is_assertion(node.target)) return {};
  if (computes_scalars(node.target)) return fold_scalars(node);
  const bool is_declared = library_.find(node.target) != nullptr;
  return add_call(node,
                  is_declared ? WrittenArguments() : guessed_writes(node));
}

// A wrapped call returns the new values of the arguments that it writes.
Result<void> Importer::add_functionalized(FunctionalizedCall call) {
  WrittenArguments written;
  written.are_results = true;
  written.names.assign(call.written.begin(), call.written.end());
  return add_call(call.node, written);
}

Result<void> Importer::add_call(const Node& node,
                                const WrittenArguments& written) {
  SP_ASSIGN(std::shared_ptr<const FunctionSchema> function,
            declare(node, written));
  SP_ASSIGN(ReadArguments read, read_arguments(node, function, frame_.values,
                                               frame_.scope, builder_));
  NewNode added;
  added.op = std::move(read.op);
  SP_ASSIGN(const std::vector<std::string_view> names,
            add_results(node, written, added));
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
  added.checkpoint = std::move(custom.checkpoint);
  if (!frame_.checkpoint.empty()) added.checkpoint = {frame_.checkpoint};
  if (!added.checkpoint.region.empty()) ++checkpoints_[added.checkpoint.region];
  if (frame_.is_autocast) SP_CHECK(cast_operands(added));
  SP_CHECK(take_as_written(node, added));
  SP_ASSIGN(const std::vector<ValueId> made,
            builder_.add_node(std::move(added)));
  // Values that the operator writes in place come last, without a name.
  const bool is_writing = !written.are_results && !written.names.empty();
  const std::size_t named =
      is_writing ? made.size() - written.names.size() : made.size();
  for (std::size_t i = 0; i < names.size() && i < named; ++i) {
    if (!frame_.scope.emplace(names[i], made[i]).second) {
      return fail(ErrorCode::kDuplicateName,
                  "two values are named " + quote(names[i]));
    }
  }
  for (std::size_t i = named; i < made.size(); ++i) {
    const auto tensor = tensor_of_argument(node, written.names[i - named]);
    SP_CHECK(builder_.write(frame_.scope.at(*tensor), made[i]));
  }
  return {};
}

// An operator with effects does not write its operands. If it also has no
// results, there is no value that a plan could place.
Result<void> Importer::add_with_effects(const Node& node) {
  SP_ASSIGN(const Node within, without_token(node));
  if (!within.outputs.empty()) return add_node(within);
  if (!is_assertion(within.target) && left_out_.insert(within.target).second) {
    builder_.add_note(LeftOutOperatorNote{std::string(within.target)});
  }
  return {};
}

// Sizes are known numbers; the expressions from which they were computed become
// guards.
Result<void> Importer::fold_scalars(const Node& node) {
  for (const Argument& output : node.outputs) {
    const auto* name = std::get_if<SymName>(&output);
    if (name == nullptr || !name->is_name()) continue;
    // An unknown name is reported at its use.
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
    const Node& node, const WrittenArguments& written) {
  if (auto known = library_.find(node.target)) {
    const auto form = written.are_results ? library_.form(*known) : nullptr;
    return form == nullptr ? known : form->functional;
  }
  SP_ASSIGN(const std::string text, declaration_of(node, written, library_));
  auto& schema = undeclared_[text];
  if (schema == nullptr) {
    SP_ASSIGN(FunctionSchema parsed, FunctionSchema::parse(text, "undeclared"));
    if (!is_higher_order(node.target)) {
      builder_.add_note(undeclared(node, written, text, library_));
    }
    schema = std::make_shared<const FunctionSchema>(std::move(parsed));
  }
  return schema;
}

// Sets the results of `added` to the results in the file. Returns the names of
// the results that the node produces.
Result<std::vector<std::string_view>> Importer::add_results(
    const Node& node, const WrittenArguments& written, NewNode& added) {
  const std::vector<ArgumentSchema>& declared = added.op.function->returns();
  const std::size_t unnamed = written.are_results ? 0 : written.names.size();
  if (declared.size() != node.outputs.size() + unnamed) {
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
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
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
  for (std::size_t i = 0; i < unnamed; ++i) {
    const std::string& argument = written.names[i];
    SP_ASSIGN(ResolvedTensor before,
              frame_.values.tensor(*tensor_of_argument(node, argument)));
    results.emplace_back(std::move(before.meta));
    added.output_symbolic.push_back(std::move(before.symbolic));
    const bool is_only = unnamed == 1 && names.empty();
    added.output_names.push_back(frame_.prefix + std::string(node.name) +
                                 (is_only ? "" : '_' + argument));
  }
  set_results(added.op, std::move(results));
  if (unnamed > 0 && names.empty()) names.push_back(node.name);
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
