#include "plan/explain/roles_and_work.h"

#include "base/index.h"
#include "base/name_folding.h"
#include "base/saturating.h"
#include "graph/analysis/dim_roles.h"
#include "plan/explain/model_flops.h"
#include "plan/explain/plan_notes.h"
#include "strategy/product_work.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Cut is the part of an operator that a mesh dim shards.
enum class Cut : std::uint8_t {
  kNothing,
  kBatch,
  kTokens,
  kTensor,
  kExperts,
};
constexpr std::array<RoleUse, 5> kUseOfCut = {
    RoleUse::kReplicated, RoleUse::kBatch, RoleUse::kTokens, RoleUse::kTensor,
    RoleUse::kExperts};

using Cuts = std::set<Cut>;

// Shares adds up amounts by Cut and reports them as shares of their sum.
class Shares {
 public:
  void add(Cut cut, double amount, const std::string& module) {
    amounts_[index(cut)] += amount;
    whole_ += amount;
    if (!module.empty() && amount > 0) modules_[module][cut] += amount;
  }

  std::int64_t permille(Cut cut) const {
    const double amount = amounts_[index(cut)];
    return whole_ > 0 ? saturated(1000 * amount / whole_) : 0;
  }

  // Returns the modules with this cut, the largest amount first. Layers that
  // are sharded alike have one name.
  std::vector<RoleModule> modules(Cut cut) const {
    std::map<std::string, std::set<Cuts>> ways;
    for (const auto& [module, amounts] : modules_) {
      ways[path_in_layer(module)].insert(cuts_of(amounts));
    }
    std::vector<std::string> names;
    std::vector<bool> parts;
    std::vector<double> sizes;
    for (const auto& [module, amounts] : modules_) {
      const auto found = amounts.find(cut);
      if (found == amounts.end()) continue;
      const std::string place = path_in_layer(module);
      names.push_back(ways.at(place).size() == 1 ? place : module);
      parts.push_back(amounts.size() > 1);
      sizes.push_back(found->second);
    }
    return folded(names, parts, sizes);
  }

 private:
  using Amounts = std::map<Cut, double>;

  static Cuts cuts_of(const Amounts& amounts) {
    Cuts out;
    for (const auto& [cut, amount] : amounts) out.insert(cut);
    return out;
  }

  static std::vector<RoleModule> folded(const std::vector<std::string>& names,
                                        const std::vector<bool>& parts,
                                        const std::vector<double>& sizes) {
    // Only modules that are alike in `parts` are folded into one name.
    std::vector<std::string> groups;
    for (const bool is_part : parts) groups.emplace_back(is_part ? "part" : "");
    std::map<std::pair<bool, std::string>, double> amounts;
    for (const FoldedName& name : fold_names(names, groups)) {
      for (const std::size_t member : name.members) {
        amounts[{parts[member], name.text}] += sizes[member];
      }
    }
    std::vector<std::tuple<double, bool, std::string>> sorted;
    for (const auto& [module, amount] : amounts) {
      sorted.emplace_back(-amount, module.first, module.second);
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<RoleModule> out;
    for (auto& [amount, is_part, name] : sorted) {
      out.push_back({std::move(name), is_part});
    }
    return out;
  }

  std::array<double, kUseOfCut.size()> amounts_{};
  std::map<std::string, Amounts> modules_;  // by path
  double whole_ = 0;
};

class Describer {
 public:
  Describer(const PlanProblem& problem, Plan& plan)
      : problem_(problem),
        graph_(problem.graph()),
        roles_(problem.roles()),
        plan_(plan) {}

  void run() {
    count_work();
    for (int m = 0; m < problem_.mesh().ndim(); ++m) {
      if (problem_.mesh().size(m) > 1) describe_dim(m);
    }
  }

 private:
  void count_work() {
    std::map<MathClass, double> flops;
    double all = 0;
    for (const Node& node : graph_.nodes()) {
      const ChoiceSet* set = problem_.choices_of(node.id);
      if (set == nullptr || set->op.space->flops_per_point <= 0) continue;
      const double own = flops_of(*set->op.space);
      flops[math_class(node.op, set->op.space->product)] += own;
      all += own;
    }
    plan_.work.flops = saturated(all);
    plan_.work.model_flops = saturated(model_flops(problem_));
    if (!flops.empty()) {
      const auto most = std::max_element(
          flops.begin(), flops.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; });
      plan_.work.peak_flops =
          saturated(problem_.topology().flops(most->first) *
                    static_cast<double>(problem_.mesh().size()));
    }
    for (const GraphInput& input : graph_.inputs()) {
      const Value& value = graph_.value(input.value);
      const auto& batch = roles_.dim(value.id, DimRole::kBatch);
      if (input.kind != InputKind::kUser || !batch) continue;
      plan_.work.samples =
          std::max(plan_.work.samples, value.meta.size(batch->dim));
      if (!is_floating(value.meta.dtype()) && value.meta.rank() == 2 &&
          (roles_.dim(value.id, DimRole::kTokens) ||
           (value.meta.size(1) == 1 && attends()))) {
        plan_.work.tokens = std::max(plan_.work.tokens, value.meta.numel());
      }
    }
  }

  // If a sample has one id, programs with attention read it as the next token.
  // Other programs read it as a row of a table.
  bool attends() const {
    return std::any_of(
        graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) {
          const ChoiceSet* set = problem_.choices_of(node.id);
          return set != nullptr &&
                 set->op.space->product == ProductKind::kAttention;
        });
  }

  void describe_dim(int m) {
    Shares products;
    Shares between;
    for (const Node& node : graph_.nodes()) {
      const ChoiceSet* set = problem_.choices_of(node.id);
      const PlannedNode& planned = plan_.nodes[node.id.index()];
      if (set == nullptr || planned.assignment.empty()) continue;
      const IndexSpace& space = *set->op.space;
      const Cut cut = cut_of(node, space, planned.assignment, m);
      if (space.flops_per_point > 0) {
        products.add(
            cut, flops_of(space),
            node.phase == Phase::kForward ? node.module_path : std::string());
      } else if (roles_.factor(node.id, roles_.rows())) {
        between.add(cut, static_cast<double>(planned.compute_nanoseconds), {});
      }
    }
    for (std::size_t c = kUseOfCut.size(); c-- > 0;) {
      const auto cut = static_cast<Cut>(c);
      add(m, kUseOfCut[c], products.permille(cut), products.modules(cut));
    }
    add(m, RoleUse::kBetweenBatch, between.permille(Cut::kBatch), {});
    add(m, RoleUse::kBetweenTokens, between.permille(Cut::kTokens), {});
    add(m, RoleUse::kBetweenTensor, between.permille(Cut::kTensor), {});
    describe_buffer(m);
  }

  Cut cut_of(const Node& node, const IndexSpace& space,
             const Assignment& assignment, int m) const {
    const std::int16_t given = assignment[index(m)];
    if (given < 0 || static_cast<std::size_t>(given) >= space.factors.size()) {
      return Cut::kNothing;
    }
    // The number of parts into which mesh dims before `m` shard the factor.
    std::int64_t parts = 1;
    for (int other = 0; other < m; ++other) {
      if (assignment[index(other)] == given) {
        parts *= problem_.mesh().size(other);
      }
    }
    const auto is = [&](DimRole role) {
      const auto& trace = roles_.factor(node.id, role);
      return trace && trace->factor == given;
    };
    if (is(DimRole::kExperts)) return Cut::kExperts;
    if (is(DimRole::kBatch)) {
      const auto& tokens = roles_.factor(node.id, DimRole::kTokens);
      const bool exhausted =
          tokens && tokens->factor == given && parts >= tokens->outer;
      return exhausted ? Cut::kTokens : Cut::kBatch;
    }
    if (is(DimRole::kTokens)) return Cut::kTokens;
    // Rows may have lost their trace, such as those of tokens sorted by expert.
    if (roles_.is_row(node.id, given)) {
      return roles_.rows() == DimRole::kBatch ? Cut::kBatch : Cut::kTokens;
    }
    return Cut::kTensor;
  }

  // Returns whether a user reads the value gathered on mesh dim `m`.
  bool is_gathered(const std::string& value, int m) const {
    return std::any_of(plan_.copies.begin(), plan_.copies.end(),
                       [&](const PlannedCopy& copy) {
                         if (!copy.src[m].is_shard() || copy.dst[m].is_shard())
                           return false;
                         const PlannedCopy* root = &copy;
                         while (root->source)
                           root = &plan_.copies[*root->source];
                         return root->of == value;
                       });
  }

  void describe_buffer(int m) {
    std::array<Shares, 3> shares;  // parameters, optimizer state, inputs
    for (const PlannedValue& value : plan_.values) {
      const double bytes = full_bytes(value.tensor);
      // A parameter that all its users read as it is stored is sharded by the
      // matmuls; only one that is gathered counts as stored in shards.
      const bool used_so = value.kind == InputKind::kParameter &&
                           value.tensor.layout[m].is_shard() &&
                           !is_gathered(value.name, m);
      const auto add_to = [&](std::size_t which, const Layout& layout) {
        const bool counts = layout[m].is_shard() && !used_so;
        shares[which].add(counts ? Cut::kBatch : Cut::kNothing, bytes, {});
      };
      if (value.kind == InputKind::kParameter) {
        add_to(0, value.tensor.layout);
        if (problem_.options().optimizer == Optimizer::kAdamW) {
          add_to(1, value.state_layout ? *value.state_layout
                                       : value.tensor.layout);
        }
      } else if (value.kind == InputKind::kUser) {
        add_to(2, value.tensor.layout);
      }
    }
    constexpr std::array kUses = {RoleUse::kParameters, RoleUse::kOptimizer,
                                  RoleUse::kInputs};
    for (std::size_t i = 0; i < shares.size(); ++i) {
      add(m, kUses[i], shares[i].permille(Cut::kBatch), {});
    }
  }

  void add(int m, RoleUse use, std::int64_t permille,
           std::vector<RoleModule> modules) {
    if (permille == 0) return;
    plan_.roles.push_back(
        {use, problem_.mesh().name(m), permille, std::move(modules)});
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const DimRoles& roles_;
  Plan& plan_;
};

}  // namespace

OpKind kind_of(const Node& node, const IndexSpace& space) {
  switch (space.product) {
    case ProductKind::kAttention:
      return OpKind::kAttention;
    case ProductKind::kConvolution:
      return OpKind::kConvolution;
    case ProductKind::kPlain:
      return OpKind::kMatmul;
    case ProductKind::kNone:
      break;
  }
  if (node.op.function->has_tag("pointwise")) return OpKind::kPointwise;
  if (space.is_free || node.inputs.empty()) return OpKind::kOther;
  const auto cached = [&](const std::vector<Operand>& operands, int factor) {
    return std::any_of(
        operands.begin(), operands.end(),
        [&](const Operand& operand) { return operand.holds(factor); });
  };
  bool reduces = space.normalises;
  bool is_parallel = true;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const FactorKind kind = space.factors[f].kind;
    if (kind == FactorKind::kIndexed || kind == FactorKind::kSegmented) {
      return OpKind::kOther;
    }
    is_parallel = is_parallel && kind == FactorKind::kParallel;
    reduces = reduces || (space.factors[f].size > 1 &&
                          cached(space.inputs, static_cast<int>(f)) &&
                          !cached(space.outputs, static_cast<int>(f)));
  }
  if (reduces) return OpKind::kReduction;
  // Copies and casts that do not move elements count as pointwise.
  const bool in_place = space.carries && is_parallel &&
                        space.inputs[0].dims == space.outputs[0].dims;
  return in_place ? OpKind::kPointwise : OpKind::kOther;
}

void describe(const PlanProblem& problem, const PlanSolution& solution,
              Plan& plan) {
  Describer(problem, plan).run();
  std::vector<PlanNote> notes = plan_notes(problem, solution, plan);
  plan.notes.insert(plan.notes.end(), std::make_move_iterator(notes.begin()),
                    std::make_move_iterator(notes.end()));
}

}  // namespace shardprop
