// Imports the inputs, outputs and guards of a program.

#include "base/try.h"
#include "io/pt2_importer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::pt2 {
namespace {

std::string indexed(const char* list, std::size_t i) {
  return std::string("$.graph_module.") + list + '[' + std::to_string(i) + ']';
}

}  // namespace

Result<void> Importer::add_inputs() {
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

tl::unexpected<Error> Importer::disagree(const char* what, std::size_t graph,
                                         std::size_t signature) {
  return fail(Error{ErrorCode::kSignatureMismatch,
                    "the graph has " + std::to_string(graph) + ' ' + what +
                        ", its signature " + std::to_string(signature),
                    "$.graph_module.signature",
                    {},
                    {}});
}

Result<void> Importer::add_input(std::size_t i) {
  const InputSpec& spec = program_.input_specs[i];
  const auto* tensor = std::get_if<TensorName>(&program_.inputs[i]);
  if (!spec.role || tensor == nullptr) {
    if (!spec.role || spec.role == InputKind::kUser) return {};
    return fail(ErrorCode::kSignatureMismatch,
                quote(spec.target) + " is not a tensor in the graph");
  }
  if (spec.value != tensor->name) {
    return fail(ErrorCode::kSignatureMismatch,
                "the graph's " + quote(tensor->name) + " is " +
                    quote(spec.value) + " in the signature");
  }
  SP_ASSIGN(ResolvedTensor resolved, frame_.values.tensor(tensor->name));
  NewInput input;
  input.kind = *spec.role;
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
  if (!(user ? user_targets_ : targets_).emplace(target, id).second) {
    return fail(ErrorCode::kDuplicateName,
                "two inputs are named " + quote(target));
  }
  return {};
}

// Names that are stored in one file are one tensor. Inputs with these names
// share a buffer; the other names are aliases.
void Importer::alias_input(NewInput& input, const TensorMeta& meta) {
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

// Notes the dim in which a symbol first appears, alone or in an expression.
void Importer::note_hint(const SymbolicDim& dim, std::string_view of) {
  for (const std::string& symbol : dim.size.symbols()) {
    origins_.try_emplace(
        symbol, "dim " + std::to_string(dim.dim) + " of " + std::string(of));
  }
}

Result<void> Importer::add_outputs() {
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

Result<void> Importer::add_output(std::size_t i) {
  const OutputSpec& spec = program_.output_specs[i];
  const auto* tensor = std::get_if<TensorName>(&program_.outputs[i]);
  if (tensor == nullptr) {
    if (spec.role == OutputRole::kUser || spec.role == OutputRole::kNoTensor) {
      return {};
    }
    return fail(ErrorCode::kSignatureMismatch,
                "an output for " + quote(spec.target) + " is not a tensor");
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
    SP_ASSIGN(output.target, find_target(spec, output));
  }
  builder_.add_output(output);
  return {};
}

Result<ValueId> Importer::find_target(const OutputSpec& spec,
                                      const NewOutput& output) {
  const std::string_view name = spec.target;
  const Scope& targets = spec.role == OutputRole::kInputMutation ||
                                 spec.role == OutputRole::kInputGradient
                             ? user_targets_
                             : targets_;
  const auto target = targets.find(name);
  if (target == targets.end()) {
    return fail(ErrorCode::kDanglingName,
                quote(name) + " is not an input of the graph");
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

void Importer::add_guards() {
  const auto add_range = [&](const std::string& size, const auto& range) {
    constexpr const char* kOrigin = "range_constraints";
    if (range.min) {
      builder_.add_guard({size + " >= " + std::to_string(*range.min), kOrigin});
    }
    if (range.max) {
      builder_.add_guard({size + " <= " + std::to_string(*range.max), kOrigin});
    }
  };
  for (const auto& [name, symbol] : frame_.values.symbols()) {
    builder_.add_symbol(symbol);
    const auto origin = origins_.find(name);
    if (symbol.hint) {
      builder_.add_guard({name + " == " + std::to_string(*symbol.hint),
                          origin == origins_.end() ? "" : origin->second});
    }
    add_range(name, symbol);
  }
  for (const Range& range : frame_.values.computed_ranges()) {
    add_range(std::string(range.symbol), range);
  }
  for (const std::string_view guard : program_.guards) {
    builder_.add_guard({std::string(guard), "guards_code"});
  }
}

void Importer::add_bounds() {
  std::map<std::int64_t, std::vector<std::string>> sizes;
  for (const auto& [name, value] : frame_.values.bounded()) {
    // A user who gave the bound needs no note.
    if (!bounds_.contains(name)) sizes[value].push_back(name);
  }
  for (const auto& [value, names] : sizes) {
    builder_.add_note(AssumedSizesNote{names, value});
  }
}

// Notes the sizes that the program leaves symbolic and that the example inputs
// determined.
void Importer::add_open_sizes() {
  for (const auto& [name, symbol] : frame_.values.symbols()) {
    const auto origin = origins_.find(name);
    // A size that the user set needs no note.
    if (!symbol.hint || origin == origins_.end() ||
        frame_.values.is_set(name)) {
      continue;
    }
    builder_.add_note(FixedSizeNote{name, origin->second, *symbol.hint});
  }
}

void Importer::add_checkpoints() {
  const auto& outputs = program_.output_specs;
  const bool trains =
      std::any_of(outputs.begin(), outputs.end(), [](const OutputSpec& spec) {
        return spec.role == OutputRole::kParameterGradient ||
               spec.role == OutputRole::kInputGradient;
      });
  if (!trains || checkpoints_.empty()) return;
  CheckpointsNote note{static_cast<std::int64_t>(checkpoints_.size())};
  for (const auto& [region, count] : checkpoints_) note.operators += count;
  builder_.add_note(note);
}

}  // namespace shardprop::pt2
