#include "io/pt2_import.h"

#include "base/try.h"
#include "io/pt2_arguments.h"
#include "io/pt2_declare.h"
#include "io/pt2_metadata.h"
#include "io/pt2_region.h"
#include "io/pt2_values.h"


#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace shardprop::pt2 {
namespace {

std::string quote(std::string_view name) {
  constexpr std::size_t kMostShown = 80;
  return '`' + std::string(name.substr(0, kMostShown)) + '`';
}

std::string indexed(const char* list, std::size_t i) {
  return std::string("$.graph_module.") + list + '[' + std::to_string(i) + ']';
}

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
               "torch.ops.aten._functional_assert_"});
}

// What names stand for while a graph is read: the program's, or a region's.
struct Frame {
  Values values;
  Scope scope;
  std::string prefix;  // of the names of what a region makes
  bool is_autocast = false;
};

class Importer {
 public:
  Importer(Program& program, const StoredTensors& stored, Values values,
           const OpLibrary& library, GraphBuilder& builder)
      : program_(program),
        stored_(stored),
        library_(library),
        builder_(builder),
        frame_{std::move(values), {}, {}, false} {}

  // Takes the program's nodes away one by one: the graph and the program at
  // once would be too much memory.
  Result<void> run() {
    std::size_t nodes = 0;
    std::size_t values = program_.inputs.size();
    for (const Node& node : program_.nodes) {
      nodes += node.outputs.empty() ? 0 : 1;
      values += node.outputs.size();
    }
    builder_.expect(nodes, values);
    SP_CHECK(add_inputs());
    for (std::size_t i = 0; !program_.nodes.empty(); ++i) {
      const Node& node = program_.nodes.front();
      if (auto added = add_node(node); !added) {
        return fail(std::move(added).error().at(
            indexed("graph.nodes", i) + " " + quote(display_name(node))));
      }
      program_.nodes.pop_front();
    }
    SP_CHECK(add_outputs());
    add_guards();
    add_bounds();
    return {};
  }

 private:
  static std::string_view display_name(const Node& node) {
    return node.name.empty() ? node.target : node.name;
  }

  // ---- inputs

  Result<void> add_inputs() {
    if (program_.inputs.size() != program_.input_specs.size()) {
      return disagree("inputs", program_.inputs.size(),
                      program_.input_specs.size());
    }
    for (const auto& [name, file] : stored_) {
      file_of_.emplace(name, file);
      names_in_[file].push_back(name);
    }
    for (const InputSpec& spec : program_.input_specs) {
      input_targets_.insert(spec.target);
    }
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      if (auto added = add_input(i); !added) {
        return fail(std::move(added).error().at(indexed("graph.inputs", i)));
      }
    }
    return {};
  }

  static tl::unexpected<Error> disagree(const char* what, std::size_t graph,
                                        std::size_t signature) {
    return fail(Error{ErrorCode::kSignatureMismatch,
                      "the graph has " + std::to_string(graph) + ' ' + what +
                          ", its signature " + std::to_string(signature),
                      "$.graph_module.signature",
                      {},
                      {}});
  }

  Result<void> add_input(std::size_t i) {
    const InputSpec& spec = program_.input_specs[i];
    const auto* tensor = std::get_if<TensorName>(&program_.inputs[i]);
    if (spec.role == InputRole::kNoTensor || tensor == nullptr) {
      if (spec.role == InputRole::kUser || spec.role == InputRole::kNoTensor) {
        return {};
      }
      return fail(ErrorCode::kSignatureMismatch,
                  quote(spec.target) + " is no tensor in the graph");
    }
    if (spec.value != tensor->name) {
      return fail(ErrorCode::kSignatureMismatch,
                  "the graph's " + quote(tensor->name) + " is " +
                      quote(spec.value) + " in the signature");
    }
    SP_ASSIGN(ResolvedTensor resolved, frame_.values.tensor(tensor->name));
    constexpr InputKind kKinds[] = {InputKind::kUser, InputKind::kParameter,
                                    InputKind::kBuffer, InputKind::kConstant};
    NewInput input;
    input.kind = kKinds[static_cast<std::size_t>(spec.role)];
    input.name = tensor->name;
    input.qualified_name = spec.target;
    input.persistent = spec.persistent;
    for (const SymbolicDim& dim : resolved.symbolic) {
      note_hint(dim, spec.target.empty() ? tensor->name : spec.target);
    }
    alias_input(input, resolved.meta);
    input.meta = std::move(resolved.meta);
    input.symbolic = std::move(resolved.symbolic);
    const bool user = input.kind == InputKind::kUser;
    SP_ASSIGN(const ValueId id, builder_.add_input(std::move(input)));
    frame_.scope.emplace(tensor->name, id);
    const std::string_view target = user ? tensor->name : spec.target;
    if (!targets_.emplace(target, id).second) {
      return fail(ErrorCode::kDuplicateName,
                  "two inputs are named " + quote(target));
    }
    return {};
  }

  // Names stored in one file are one tensor: those that are inputs share
  // storage, those that are none are its further names.
  void alias_input(NewInput& input, const TensorMeta& meta) {
    if (input.kind == InputKind::kUser) return;
    const auto file = file_of_.find(input.qualified_name);
    if (file == file_of_.end()) return;
    const auto [first, added] = first_in_.try_emplace(file->second, input.name);
    if (!added) {
      const ValueId other = frame_.scope.at(first->second);
      if (builder_.meta(other) == meta) input.shares_storage_with = other;
      return;
    }
    for (const std::string& name : names_in_.at(file->second)) {
      if (!input_targets_.contains(name)) input.aliases.push_back(name);
    }
  }

  void note_hint(const SymbolicDim& dim, std::string_view of) {
    const std::string symbol = to_string(dim.size);
    if (frame_.values.symbols().contains(symbol)) {
      origins_.try_emplace(
          symbol, "dim " + std::to_string(dim.dim) + " of " + std::string(of));
    }
  }

  // ---- nodes

  Result<void> add_node(const Node& node) {
    if (is_higher_order(node.target)) {
      if (const auto region = region_of(node)) return add_region(node, *region);
    }
    if (is_assertion(node.target)) return {};
    if (computes_scalars(node.target)) return fold_scalars(node);
    SP_ASSIGN(std::shared_ptr<const FunctionSchema> function, declare(node));
    SP_ASSIGN(ReadArguments read,
              read_arguments(node, function, frame_.values, frame_.scope, builder_));
    NewNode added;
    added.op = std::move(read.op);
    SP_ASSIGN(const std::vector<std::string_view> names,
              add_results(node, added));
    if (names.empty() && !function->is_mutating()) return {};
    added.inputs = std::move(read.inputs);
    added.symbolic = std::move(read.symbolic);
    added.name = frame_.prefix;
    added.name += node.name.empty() && !names.empty() ? names.front()
                                                      : node.name;
    ModulePlace module = innermost_module(node.module_stack);
    added.module_path = std::move(module.path);
    added.module_class = std::move(module.class_name);
    added.source = innermost_source(node.stack_trace);
    CustomMetadata custom = read_custom(node.custom);
    added.forward_node = std::move(custom.forward_node);
    added.decomposed_from = std::move(custom.decomposed_from);
    if (frame_.is_autocast) SP_CHECK(cast_operands(added));
    take_as_written(node, added);
    SP_ASSIGN(const std::vector<ValueId> made,
              builder_.add_node(std::move(added)));
    if (node.outputs.empty() && !made.empty()) {
      note_written(node, made.front());
      return {};
    }
    for (std::size_t i = 0; i < names.size() && i < made.size(); ++i) {
      if (!frame_.scope.emplace(names[i], made[i]).second) {
        return fail(ErrorCode::kDuplicateName,
                    "two values are named " + quote(names[i]));
      }
    }
    return {};
  }

  // Sizes are known; what they were computed from stays as a guard.
  Result<void> fold_scalars(const Node& node) {
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

  Result<std::shared_ptr<const FunctionSchema>> declare(const Node& node) {
    if (auto known = library_.find(node.target)) return known;
    SP_ASSIGN(const std::string text, declaration_of(node, library_));
    auto& schema = undeclared_[text];
    if (schema == nullptr) {
      SP_ASSIGN(FunctionSchema parsed,
                FunctionSchema::parse(text, "undeclared"));
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
  Result<std::vector<std::string_view>> add_results(const Node& node,
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
                    "result " + std::to_string(i) + " of " +
                        quote(node.target) + " is no " +
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

  // ---- regions, and what is not as the library would have it

  // The nodes of a region take the place of the node that runs it.
  Result<void> add_region(const Node& node, const Region& region) {
    SP_ASSIGN(Values values, Values::within(*region.body, frame_.values));
    Frame inner{std::move(values), {}, frame_.prefix, frame_.is_autocast};
    inner.prefix += std::string(display_name(node)) + '.';
    inner.is_autocast = inner.is_autocast || region.is_autocast;
    for (std::size_t i = 0; i < region.operands.size(); ++i) {
      const auto* own = std::get_if<TensorName>(&region.body->inputs[i]);
      const auto* given = std::get_if<TensorName>(&region.operands[i]);
      if (own == nullptr) continue;
      if (given == nullptr) {
        return fail(ErrorCode::kHigherOrderOp,
                    quote(own->name) + " of a region is given no tensor");
      }
      SP_ASSIGN(const ValueId id, made(given->name));
      inner.scope.emplace(own->name, id);
    }
    std::swap(frame_, inner);
    Result<std::vector<ValueId>> results = region_results(*region.body);
    std::swap(frame_, inner);
    if (!results) return fail(std::move(results).error());
    const std::vector<Argument> outputs = flattened(node.outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto* name = std::get_if<TensorName>(&outputs[i]);
      if (name == nullptr) continue;
      if (i >= results->size() || !(*results)[i].valid()) {
        return fail(ErrorCode::kHigherOrderOp,
                    "a region does not make " + quote(name->name));
      }
      frame_.scope.emplace(name->name, (*results)[i]);
    }
    return {};
  }

  // In the frame of the region: what it returns, sizes as no value.
  Result<std::vector<ValueId>> region_results(const GraphBody& body) {
    for (const Node& inside : body.nodes) {
      if (auto added = add_node(inside); !added) {
        return fail(
            std::move(added).error().at(quote(display_name(inside))));
      }
    }
    std::vector<ValueId> results;
    for (const Argument& output : flattened(body.outputs)) {
      results.emplace_back();
      if (const auto* name = std::get_if<TensorName>(&output)) {
        SP_ASSIGN(results.back(), made(name->name));
      }
    }
    return results;
  }

  Result<ValueId> made(std::string_view name) const {
    const auto found = frame_.scope.find(name);
    if (found == frame_.scope.end()) {
      return fail(ErrorCode::kDanglingName, quote(name) + " is never made");
    }
    return found->second;
  }

  // Autocast casts the operands to the dtype of the result, which is written.
  Result<void> cast_operands(NewNode& node) {
    if (node.op.outputs.empty() || library_.check_outputs(node.op)) return {};
    const DType wanted = node.op.outputs.front().dtype();
    if (!is_floating(wanted)) return {};
    OpSchema op = node.op;
    for (TensorMeta& meta : op.inputs) {
      if (!is_floating(meta.dtype())) continue;
      SP_ASSIGN(meta, TensorMeta::create(meta.shape(), meta.strides(), wanted));
    }
    if (!library_.check_outputs(op)) return {};
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == node.op.inputs[i]) continue;
      SP_ASSIGN(const std::vector<ValueId> cast,
                builder_.add_op(
                    "aten._to_copy.default",
                    {{"self", TensorArg{0}}, {"dtype", wanted}},
                    {node.inputs[i]},
                    frame_.prefix + "autocast_" + std::to_string(casts_++)));
      node.inputs[i] = cast.front();
      op.inputs[i] = builder_.meta(cast.front());
    }
    node.op = std::move(op);
    return {};
  }

  // The file knows better than the library what an operator returned.
  void take_as_written(const Node& node, NewNode& added) {
    added.as_written = true;
    const auto fits = library_.check_outputs(added.op);
    if (fits) return;
    std::string note = quote(display_name(node)) + ": " + fits.error().message;
    for (const std::string& line : fits.error().notes) note += "; " + line;
    builder_.add_note(std::move(note) + "; taken as it is written");
  }

  // Later uses of what a custom operator wrote see what it made.
  void note_written(const Node& node, ValueId value) {
    ValueId& named = frame_.scope.at(*written_argument(node));
    const auto input = std::find_if(
        targets_.begin(), targets_.end(),
        [&](const auto& target) { return target.second == named; });
    if (input != targets_.end()) {
      builder_.add_output({value, OutputKind::kUpdate, named});
    }
    named = value;
  }

  bool is_bounded(const SymExpr& expression) const {
    const auto& symbols = frame_.values.symbols();
    const auto names = expression.symbols();
    return std::any_of(names.begin(), names.end(), [&](const auto& name) {
      const auto found = symbols.find(name);
      return found != symbols.end() && !found->second.hint;
    });
  }

  void add_bounds() {
    for (const auto& [name, value] : frame_.values.bounded()) {
      builder_.add_note(quote(name) + " depends on data and is taken to be " +
                        std::to_string(value) + "; --bound " + name +
                        "=N says otherwise");
    }
  }

  // ---- outputs

  Result<void> add_outputs() {
    if (program_.outputs.size() != program_.output_specs.size()) {
      return disagree("outputs", program_.outputs.size(),
                      program_.output_specs.size());
    }
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      if (auto added = add_output(i); !added) {
        return fail(std::move(added).error().at(indexed("graph.outputs", i)));
      }
    }
    return {};
  }

  Result<void> add_output(std::size_t i) {
    const OutputSpec& spec = program_.output_specs[i];
    const auto* tensor = std::get_if<TensorName>(&program_.outputs[i]);
    if (tensor == nullptr) {
      if (spec.role == OutputRole::kUser ||
          spec.role == OutputRole::kNoTensor) {
        return {};
      }
      return fail(ErrorCode::kSignatureMismatch,
                  "an output for " + quote(spec.target) + " is no tensor");
    }
    if (spec.role == OutputRole::kNoTensor) return {};
    if (spec.value != tensor->name) {
      return fail(ErrorCode::kSignatureMismatch,
                  "the graph's " + quote(tensor->name) + " is " +
                      quote(spec.value) + " in the signature");
    }
    const auto made = frame_.scope.find(tensor->name);
    if (made == frame_.scope.end()) {
      return fail(ErrorCode::kDanglingName,
                  quote(tensor->name) + " is never made");
    }
    NewOutput output{made->second, OutputKind::kUser, {}};
    switch (spec.role) {
      case OutputRole::kLoss:
        output.kind = OutputKind::kLoss;
        break;
      case OutputRole::kBufferMutation:
      case OutputRole::kParameterMutation:
      case OutputRole::kInputMutation:
        output.kind = OutputKind::kUpdate;
        break;
      case OutputRole::kParameterGradient:
      case OutputRole::kInputGradient:
        output.kind = OutputKind::kGradient;
        break;
      case OutputRole::kUser:
      case OutputRole::kNoTensor:
        break;
    }
    if (output.kind == OutputKind::kUpdate ||
        output.kind == OutputKind::kGradient) {
      SP_ASSIGN(output.target, find_target(spec.target, output));
    }
    builder_.add_output(output);
    return {};
  }

  Result<ValueId> find_target(std::string_view name, const NewOutput& output) {
    const auto target = targets_.find(name);
    if (target == targets_.end()) {
      return fail(ErrorCode::kDanglingName,
                  quote(name) + " is no input of the graph");
    }
    const TensorMeta& meta = builder_.meta(output.value);
    const TensorMeta& wanted = builder_.meta(target->second);
    if (meta.shape() != wanted.shape()) {
      return fail(
          ErrorCode::kSignatureMismatch,
          quote(name) + " is " + to_string(wanted) + ", what stands for its " +
              (output.kind == OutputKind::kUpdate ? "update " : "gradient ") +
              to_string(meta));
    }
    return target->second;
  }

  // ---- guards

  void add_guards() {
    for (const auto& [name, symbol] : frame_.values.symbols()) {
      builder_.add_symbol(symbol);
      const auto origin = origins_.find(name);
      if (symbol.hint) {
        builder_.add_guard({name + " == " + std::to_string(*symbol.hint),
                            origin == origins_.end() ? "" : origin->second});
      }
      if (symbol.min) {
        builder_.add_guard(
            {name + " >= " + std::to_string(*symbol.min), "range_constraints"});
      }
      if (symbol.max) {
        builder_.add_guard(
            {name + " <= " + std::to_string(*symbol.max), "range_constraints"});
      }
    }
    for (const std::string_view guard : program_.guards) {
      builder_.add_guard({std::string(guard), "guards_code"});
    }
  }

  Program& program_;
  const StoredTensors& stored_;
  const OpLibrary& library_;
  GraphBuilder& builder_;
  Frame frame_;
  int casts_ = 0;
  // Inputs by the names under which outputs refer to them.
  Scope targets_;
  std::map<std::string, std::string> file_of_;
  std::map<std::string, std::vector<std::string>> names_in_;
  std::set<std::string_view> input_targets_;
  std::map<std::string, std::string> first_in_;
  std::map<std::string, std::string> origins_;
  std::map<std::string, std::shared_ptr<const FunctionSchema>> undeclared_;
};

}  // namespace

Result<Graph> to_graph(Program program, const StoredTensors& stored,
                       std::string name, const OpLibrary& library,
                       const SizeBounds& bounds) {
  GraphBuilder builder(std::move(name), library);
  {
    SP_ASSIGN(Values values, Values::create(program, bounds));
    SP_CHECK(
        Importer(program, stored, std::move(values), library, builder).run());
  }
  program = {};
  return std::move(builder).build();
}

}  // namespace shardprop::pt2
