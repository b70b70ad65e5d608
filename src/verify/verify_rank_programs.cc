#include <shardprop/verify/verify_rank_programs.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "program/step_values.h"
#include "verify/expected.h"
#include "verify/layout_fit.h"
#include "verify/rank_run.h"
#include "verify/rank_schedule.h"
#include "verify/wrong_value.h"

#include <shardprop/lower/lower.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using verification::RankRun;
using verification::RankValues;

// The values that a wrong one depends on are listed up to this number.
constexpr std::size_t kMostReads = 8;

// Where the single-device program makes a value.
struct ModelValue {
  std::size_t place = 0;  // 0 for inputs, then by node
  const ProgramNode* node = nullptr;
};

std::unordered_map<std::string, ModelValue> model_values(
    const SpmdProgram& model) {
  std::unordered_map<std::string, ModelValue> out;
  for (const ProgramInput& input : model.inputs) {
    out.emplace(model.value(input.value).name, ModelValue{});
  }
  // Steps produce more values than nodes have results: the new state of an
  // optimizer is one.
  for (const ProgramStep& step : model.steps) {
    const ModelValue at{step.node + 1, &model.nodes[step.node]};
    for_each_made(step, [&](ProgramValueId id) {
      out.emplace(model.value(id).name, at);
    });
  }
  return out;
}

// Returns the optimizer whose program has the inputs of the ranks.
Result<Optimizer> optimizer_of(const RankPrograms& programs, const Graph& graph,
                               const OpLibrary& library) {
  for (const Optimizer optimizer :
       {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdamW}) {
    SP_ASSIGN(const SpmdProgram model,
              lower_unsharded(graph, library, optimizer));
    std::set<std::string> names;
    for (const ProgramInput& input : model.inputs) {
      names.insert(model.value(input.value).name);
    }
    const bool fits = std::all_of(
        programs.inputs.begin(), programs.inputs.end(),
        [&](const ShardedTensor& input) { return names.contains(input.name); });
    if (fits) return optimizer;
  }
  return Optimizer::kNone;
}

// Returns the model's name of an output that replaces an input or is its
// gradient. Names of values inside an optimizer's step are numbered, and the
// numbers of a sharded program may differ.
std::optional<std::string> named_by_target(const ShardedTensor& output,
                                           const SpmdProgram& model) {
  if (output.target.empty() || !output.kind) return std::nullopt;
  for (const ProgramOutput& own : model.outputs) {
    if (own.kind != *output.kind || !own.target) continue;
    const ProgramInput& input = model.inputs[*own.target];
    if (model.value(input.value).name == output.target) {
      return model.value(own.value).name;
    }
  }
  return std::nullopt;
}

// Returns the outputs by name, in the order of the programs. Without a list in
// shardings.json they are those of the graph.
Result<std::vector<ShardedTensor>> outputs_of(const RankPrograms& programs,
                                              const SpmdProgram& model) {
  std::vector<ShardedTensor> out = programs.outputs;
  for (ShardedTensor& output : out) {
    if (auto name = named_by_target(output, model)) {
      output.name = *std::move(name);
    }
  }
  const std::size_t count = programs.ranks.front()->graph->outputs().size();
  if (out.empty()) {
    for (const ProgramOutput& output : model.outputs) {
      const std::string& name = model.value(output.value).name;
      out.push_back({.name = name, .argument = name});
    }
  }
  for (const auto& program : programs.ranks) {
    const std::size_t own = program->graph->outputs().size();
    if (own == out.size() && own == count) continue;
    return fail(Error{
        programs.outputs.empty() ? ErrorCode::kFieldMissing
                                 : ErrorCode::kInvalidArgument,
        "the program returns " + std::to_string(own) + " tensors, and " +
            (programs.outputs.empty() ? "the graph" : "shardings.json") +
            " has " + std::to_string(out.size()) + " outputs",
        program->file,
        {},
        "list the outputs of the programs under `outputs` in shardings.json, "
        "in their order"});
  }
  return out;
}

class Comparison {
 public:
  Comparison(const RankPrograms& programs, const Graph& graph,
             const SpmdProgram& model, const Expected::Body& expected,
             const std::vector<RankRun>& runs)
      : programs_(programs),
        graph_(graph),
        model_(model),
        expected_(expected),
        runs_(runs),
        values_(model_values(model)) {}

  Result<RankProgramsReport> run(const std::vector<ShardedTensor>& outputs,
                                 bool names_are_stated) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      SP_CHECK(compare_output(outputs[o], o));
    }
    compare_nodes(names_are_stated);
    for (const auto& [place, names] : wrong_) {
      for (const auto& [name, stated] : names) {
        report_.wrong_values.push_back(name);
      }
    }
    report_.ok = wrong_.empty();
    if (!report_.ok) explain_first();
    return std::move(report_);
  }

 private:
  // The tensor of each rank; empty if a rank has none.
  std::vector<LocalTensor> held(const std::string& name) const {
    std::vector<LocalTensor> out;
    for (const RankRun& run : runs_) {
      const auto found = run.values.find(name);
      if (found == run.values.end()) return {};
      out.push_back(found->second);
    }
    return out;
  }

  const LocalTensor* whole(const std::string& name) const {
    const auto found = expected_.values.find(name);
    return found == expected_.values.end() ? nullptr : &found->second;
  }

  RankValues values(const std::string& name,
                    const std::vector<LocalTensor>& held,
                    const LocalTensor& whole) const {
    return {programs_.mesh, held, whole, expected_.bound(name, whole.dtype())};
  }

  void count_value() {
    ++report_.values;
    report_.compared += static_cast<std::int64_t>(runs_.size());
  }

  Result<void> compare_output(const ShardedTensor& output, std::size_t index) {
    const auto known = values_.find(output.name);
    const LocalTensor* full = whole(output.name);
    if (known == values_.end() || full == nullptr) {
      return fail(
          Error{ErrorCode::kDanglingName,
                "the single-device graph has no value `" + output.name + "`",
                "shardings.json: $.outputs",
                {},
                "give the `name` that the output has in the graph"});
    }
    SP_ASSIGN(const TensorMeta meta,
              TensorMeta::contiguous(full->sizes(), full->dtype()));
    if (output.layout) {
      auto fits = check_layout(*output.layout, programs_.mesh, meta);
      if (!fits) {
        return fail(Error(fits.error())
                        .at("shardings.json: output `" + output.name + "`"));
      }
    }
    std::vector<LocalTensor> own;
    for (const RankRun& run : runs_) own.push_back(run.outputs[index]);
    count_value();
    const RankValues found = values(output.name, own, *full);
    ComparedOutput made{output.name, true, 0, output.layout, std::nullopt};
    std::optional<verification::LayoutFit> right;
    if (!output.layout) {
      right = found.fit();
    } else if (found.has_sizes_of(*output.layout)) {
      right = found.in(*output.layout);
      made.max_error = right->difference.error;
      if (right->difference.beyond) right.reset();
    }
    made.ok = right.has_value();
    if (right) made.max_error = right->difference.error;
    if (!right) {
      if (const auto other = found.fit()) made.layout = other->layout;
      const auto nearest = found.nearest();
      if (made.max_error == 0 && nearest) {
        made.max_error = nearest->difference.error;
      }
      outputs_held_[output.name] = std::move(own);
      wrong_[known->second.place].emplace(output.name, output.layout);
    } else {
      made.layout = right->layout;
    }
    report_.outputs.push_back(std::move(made));
    return {};
  }

  void compare_nodes(bool names_are_stated) {
    std::vector<std::string> wrong;
    for (const ProgramNode& node : model_.nodes) {
      for (const ProgramValueId id : node.outputs) {
        if (!id.valid()) continue;
        const std::string& name = model_.value(id).name;
        const LocalTensor* full = whole(name);
        const std::vector<LocalTensor> own = held(name);
        if (full == nullptr || own.empty()) continue;
        count_value();
        const auto right =
            values(name, own, *full)
                .fit(names_are_stated ? verification::TermOps::kAll
                                      : verification::TermOps::kSums);
        if (right) {
          right_.emplace(name, right->layout);
        } else {
          wrong.push_back(name);
        }
      }
    }
    const std::vector<bool> leads = leads_to_wrong_output();
    for (const std::string& name : wrong) {
      const ModelValue& at = values_.at(name);
      const auto node = graph_.find_node(at.node->name);
      const bool is_on_path = node && leads[node->index()];
      if (!names_are_stated && !is_on_path) continue;
      wrong_[at.place].emplace(name, std::nullopt);
    }
  }

  // Returns a flag for each node of the graph.
  std::vector<bool> leads_to_wrong_output() const {
    std::vector<NodeId> ends;
    for (const auto& [name, held] : outputs_held_) {
      const auto value = graph_.find_value(name);
      if (!value) continue;
      const NodeId node = graph_.value(*value).producer;
      if (node.valid()) ends.push_back(node);
    }
    return graph_.ancestors(ends);
  }

  void explain_first() {
    const auto& [name, stated] = *wrong_.begin()->second.begin();
    WrongValue& wrong = report_.wrong.emplace();
    wrong.where.value = name;
    wrong.stated = stated;
    if (const ProgramNode* node = values_.at(name).node) {
      wrong.where.node = node->name;
      wrong.where.op = node->op;
      wrong.module_path = node->module_path;
      if (const auto id = graph_.find_node(node->name)) {
        wrong.source = graph_.node(*id).source;
      }
      add_reads(*node, wrong);
    }
    const auto output = outputs_held_.find(name);
    const std::vector<LocalTensor> own =
        output == outputs_held_.end() ? held(name) : output->second;
    const LocalTensor& full = *whole(name);
    verification::explain(values(name, own, full), programs_.mesh, own, full,
                          wrong);
    verification::explain_terms(programs_.mesh, wrong);
  }

  // Adds the nearest values before a node that are right on all ranks.
  void add_reads(const ProgramNode& node, WrongValue& wrong) const {
    std::vector<const ProgramNode*> open = {&node};
    std::set<std::string> seen;
    for (std::size_t at = 0; at < open.size(); ++at) {
      for (const ProgramValueId id : open[at]->inputs) {
        if (!id.valid() || wrong.reads.size() == kMostReads) continue;
        const std::string& name = model_.value(id).name;
        if (!seen.insert(name).second) continue;
        if (const auto layout = layout_of(name)) {
          wrong.reads.push_back({name, *layout});
        } else if (const ProgramNode* made = values_.at(name).node) {
          open.push_back(made);
        }
      }
    }
  }

  // Returns the layout of a right value, or of an input.
  std::optional<Layout> layout_of(const std::string& name) const {
    const auto found = right_.find(name);
    if (found != right_.end()) return found->second;
    for (const ShardedTensor& input : programs_.inputs) {
      if (input.name == name) return input.layout;
    }
    return std::nullopt;
  }

  const RankPrograms& programs_;
  const Graph& graph_;
  const SpmdProgram& model_;
  const Expected::Body& expected_;
  const std::vector<RankRun>& runs_;
  std::unordered_map<std::string, ModelValue> values_;
  std::unordered_map<std::string, Layout> right_;
  // Wrong outputs keep their tensors here.
  std::map<std::string, std::vector<LocalTensor>> outputs_held_;
  // By place, then by name: the stated layout.
  std::map<std::size_t, std::map<std::string, std::optional<Layout>>> wrong_;
  RankProgramsReport report_;
};

Result<RankProgramsReport> run_and_compare_programs(
    const RankPrograms& programs, const Graph& graph,
    const std::shared_ptr<const OpLibrary>& library,
    const VerifyOptions& options) {
  SP_CHECK(check_simulated(programs.mesh));
  const verification::RankGroups groups(programs);
  SP_ASSIGN(const auto collectives,
            verification::check_collectives(programs, groups));
  SP_ASSIGN(const Optimizer optimizer, optimizer_of(programs, graph, *library));
  SP_ASSIGN(const SpmdProgram model,
            lower_unsharded(graph, *library, optimizer));
  SP_ASSIGN(const std::vector<ShardedTensor> outputs,
            outputs_of(programs, model));
  SP_ASSIGN(const Expected expected,
            Expected::create(graph, library, optimizer, options));
  SP_ASSIGN(const std::vector<RankRun> runs,
            verification::run_rank_programs(programs, groups, model,
                                            expected.body()));
  const bool names_are_stated =
      std::all_of(programs.ranks.begin(), programs.ranks.end(),
                  [](const auto& one) { return !one->planned_nodes.empty(); });
  Comparison comparison(programs, graph, model, expected.body(), runs);
  SP_ASSIGN(RankProgramsReport report,
            comparison.run(outputs, names_are_stated));
  report.collectives = collectives;
  return report;
}

}  // namespace

Result<RankProgramsReport> verify_rank_programs(
    const RankPrograms& programs, const Graph& graph,
    const std::shared_ptr<const OpLibrary>& library,
    const VerifyOptions& options) {
  return guarded([&] {
    return run_and_compare_programs(programs, graph, library, options);
  });
}

}  // namespace shardprop
