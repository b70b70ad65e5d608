#include "report/plan_in_words.h"

#include "base/index.h"
#include "base/quantities.h"
#include "report/once_a_step.h"

#include <shardprop/plan/plan_options.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace shardprop {
namespace {

// Shares of a thousand. A share below kSome is not reported; one of kNearlyAll
// is reported without its percentage.
constexpr std::int64_t kSome = 20;
constexpr std::int64_t kMost = 650;
constexpr std::int64_t kNearlyAll = 950;
constexpr std::size_t kMostModules = 5;

class DimInWords {
 public:
  DimInWords(const Plan& plan, const MeshDim& dim) : plan_(plan), dim_(dim) {}

  std::string text() const {
    std::string out = products();
    for (std::string part : {between(), buffer()}) {
      if (!part.empty()) out += "; " + part;
    }
    return fmt::format("{}={}: {}", dim_.name, dim_.size, out);
  }

 private:
  const PlanRole* role(RoleUse use) const {
    for (const PlanRole& role : plan_.roles) {
      if (role.mesh_dim == dim_.name && role.use == use) return &role;
    }
    return nullptr;
  }
  std::int64_t share(RoleUse use) const {
    const PlanRole* found = role(use);
    return found == nullptr ? 0 : found->permille;
  }

  static std::string percent(std::int64_t permille) {
    return fmt::format("{} %", (permille + 5) / 10);
  }

  // Modules of the same layers form one entry: "model.layers.0..17 (mlp.up, mlp.down)".
  static std::string in_modules(const std::vector<RoleModule>& modules) {
    if (modules.empty()) return "";
    const std::size_t shown = std::min(modules.size(), kMostModules);
    std::vector<std::pair<std::string, std::string>> lists;
    for (std::size_t i = 0; i < shown; ++i) {
      auto [layers, name] = at_layers(modules[i].name);
      if (modules[i].is_part) name = "part of " + name;
      const auto known =
          std::find_if(lists.begin(), lists.end(), [&](const auto& list) {
            return !layers.empty() && list.first == layers;
          });
      if (known == lists.end()) {
        lists.emplace_back(layers, name);
      } else {
        known->second += ", " + name;
      }
    }
    std::string text = " in ";
    for (const auto& [layers, names] : lists) {
      if (text != " in ") text += ", ";
      text += layers.empty() ? names : layers + " (" + names + ")";
    }
    if (modules.size() > shown) {
      text += fmt::format(" and {} more", modules.size() - shown);
    }
    return text;
  }

  // "model.layers.0..17.mlp.up" is at model.layers.0..17 and its name is mlp.up;
  // a module without a number is at no layer.
  static std::pair<std::string, std::string> at_layers(
      const std::string& module) {
    std::size_t behind = 0;  // the last of its numbers
    for (std::size_t at = 0; at < module.size();) {
      const std::size_t end = std::min(module.find('.', at), module.size());
      const bool number =
          end > at && module.find_first_not_of("0123456789,", at) >= end;
      if (number) behind = end;
      at = end + 1;
    }
    if (behind == 0 || behind == module.size()) return {"", module};
    return {module.substr(0, behind), module.substr(behind + 1)};
  }

  // The roles by their share of the arithmetic, the largest first.
  std::string products() const {
    std::vector<std::pair<const PlanRole*, std::string_view>> parts;
    for (const auto& [use, name] :
         {std::pair<RoleUse, std::string_view>{RoleUse::kBatch,
                                               "data parallel"},
          {RoleUse::kTokens, "sharded by tokens"},
          {RoleUse::kTensor, "tensor parallel"},
          {RoleUse::kExperts, "expert parallel"},
          {RoleUse::kReplicated, "replicated compute"}}) {
      const PlanRole* found = role(use);
      if (found != nullptr && found->permille >= kSome) {
        parts.emplace_back(found, name);
      }
    }
    if (parts.empty()) return "no matmuls";
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) {
                       return a.first->permille > b.first->permille;
                     });
    if (parts[0].first->permille >= kNearlyAll) {
      return std::string(parts[0].second);
    }
    // The modules of a clear majority are not listed.
    const bool clear = parts[0].first->permille >= kMost;
    std::vector<std::int64_t> shares;
    for (const auto& part : parts) shares.push_back(part.first->permille);
    shares = whole_percents(shares);
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [found, name] = parts[i];
      text += fmt::format(
          "{}{}{} ({} %{})", i == 0 ? "" : "; ", name,
          clear && i == 0 ? std::string() : in_modules(found->modules),
          shares[i], i == 0 ? " of the matmuls" : "");
    }
    return text;
  }

  // Rounds so that the percentages add up to their rounded sum: shares with the
  // largest remainders are rounded up.
  static std::vector<std::int64_t> whole_percents(
      const std::vector<std::int64_t>& permilles) {
    std::vector<std::int64_t> out;
    std::vector<std::size_t> by_rest;
    std::int64_t left = 5;
    for (const std::int64_t permille : permilles) {
      by_rest.push_back(out.size());
      out.push_back(permille / 10);
      left += permille % 10;
    }
    std::stable_sort(by_rest.begin(), by_rest.end(),
                     [&](std::size_t a, std::size_t b) {
                       return permilles[a] % 10 > permilles[b] % 10;
                     });
    for (std::int64_t i = 0; i < left / 10; ++i) {
      ++out[by_rest[index(i)]];
    }
    return out;
  }

  // Returns the sharding between the matmuls if it differs from the matmuls'
  // own.
  std::string between() const {
    const std::int64_t tokens = share(RoleUse::kBetweenTokens);
    if (tokens >= 250 && share(RoleUse::kTokens) < 500) {
      return "tokens sharded between matmuls (sequence parallel)";
    }
    const std::int64_t batch = share(RoleUse::kBetweenBatch);
    if (batch >= 250 && share(RoleUse::kBatch) < 500) {
      return "batch sharded between matmuls";
    }
    return "";
  }

  std::string buffer() const {
    const std::int64_t parameters = share(RoleUse::kParameters);
    const std::int64_t optimizer = share(RoleUse::kOptimizer);
    const bool data = share(RoleUse::kBatch) + share(RoleUse::kTokens) >= 500;
    if (!data) {
      // Sharded matmuls have sharded parameters anyway.
      if (share(RoleUse::kTensor) + share(RoleUse::kExperts) < 500 &&
          parameters >= kSome) {
        return percent(parameters) + " of parameter bytes sharded";
      }
      return "";
    }
    if (parameters >= kNearlyAll) return "parameters sharded (as FSDP does)";
    std::string text;
    if (parameters >= kSome) {
      text = percent(parameters) + " of parameter bytes sharded (as FSDP does)";
    } else if (const std::int64_t used = stored_in_shards(); used >= kSome) {
      // Tables and the weights of tensor parallelism.
      text = percent(used) + " of parameter bytes stored and used in shards";
    } else {
      text = "parameters replicated";
    }
    if (optimizer >= parameters + kSome) {
      text += fmt::format(", optimizer state sharded{} (as ZeRO-1 does)",
                          optimizer >= kNearlyAll
                              ? std::string()
                              : " for " + percent(optimizer) + " of it");
    }
    return text;
  }

  // Returns the share of parameter bytes that the mesh dim shards, in
  // thousandths.
  std::int64_t stored_in_shards() const {
    const auto& dims = plan_.mesh.dims();
    const int at = static_cast<int>(std::find(dims.begin(), dims.end(), dim_) -
                                    dims.begin());
    double all = 0;
    double sharded = 0;
    for (const PlannedValue& value : plan_.values) {
      if (value.kind != InputKind::kParameter) continue;
      const PlannedTensor& tensor = value.tensor;
      const double bytes = full_bytes(tensor);
      all += bytes;
      if (at < tensor.layout.mesh_ndim() && tensor.layout[at].is_shard()) {
        sharded += bytes;
      }
    }
    return all > 0 ? std::llround(1000 * sharded / all) : 0;
  }

  const Plan& plan_;
  const MeshDim& dim_;
};

bool shards_a_matmul(RoleUse use) {
  return use == RoleUse::kBatch || use == RoleUse::kTokens ||
         use == RoleUse::kTensor || use == RoleUse::kExperts;
}

// Returns the sentence about operators that take no longer than their launch,
// for a plan that shards no tensor because of them. Empty for other plans.
std::string launch_bound(const Plan& plan) {
  for (const PlanRole& role : plan.roles) {
    if (shards_a_matmul(role.use) && role.permille >= kSome) {
      return "";
    }
  }
  const double launch = plan.topology.launch_us.value * 1000;
  double all = 0;
  double bound = 0;
  for (const PlannedNode& node : plan.nodes) {
    const auto own = static_cast<double>(node.compute_nanoseconds);
    all += own;
    if (own <= 1.05 * launch) bound += own;
  }
  if (all == 0 || bound < 0.8 * all) return "";
  return fmt::format(
      "the operators are small: each takes as long as its launch ({}), "
      "however it is sharded, so that sharding gains nothing",
      time_text(static_cast<std::int64_t>(launch)));
}

// Returns whether several rules of recomputation were tried.
bool chose_rule(const Plan& plan) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [](const PlanNote& note) {
                       return std::holds_alternative<RecomputeRulesNote>(note);
                     });
}

// Returns " with equal layers that follows fsdp=dp and keeps the pins": the
// restriction of the space.
std::string condition(const Plan& plan) {
  const std::string recipe = option_of(plan, "recipe");
  const bool pins = !option_of(plan, "pin").empty();
  std::string text;
  if (option_of(plan, "layers") == "alike") text += " with equal layers";
  if (!recipe.empty() || pins) text += " that ";
  if (!recipe.empty()) text += "follows " + recipe;
  if (!recipe.empty() && pins) text += " and ";
  if (pins) text += "keeps the pins";
  if (chose_rule(plan)) text += " by the rules of recomputation tried";
  return text;
}

// Returns "gap 22.7 %; no plan takes less than 1.55 s". The gap is that of the
// JSON: the share of the plan's time by which it may exceed the best plan.
std::string gap_in_words(const Plan& plan) {
  const std::string_view where =
      plan.space.is_named() ? "" : " in the space searched";
  if (plan.lower_bound_nanoseconds <= 0) {
    return fmt::format("the gap{} is not known", where);
  }
  return fmt::format("gap {:.1f} %{}; no plan{}{} takes less than {}",
                     std::max(100 * plan.gap().value_or(0), 0.1), where,
                     plan.space.is_named() ? "" : " there", condition(plan),
                     time_text(plan.lower_bound_nanoseconds));
}

// Returns which update of the parameters the plan counts; empty for a program
// without gradients.
std::string update_in_words(const Plan& plan) {
  const bool trains = std::any_of(plan.outputs.begin(), plan.outputs.end(),
                                  [](const PlannedOutput& output) {
                                    return output.kind == OutputKind::kGradient;
                                  });
  const std::string optimizer = option_of(plan, "optimizer");
  if (!trains || optimizer.empty()) return "";
  if (optimizer == to_string(Optimizer::kNone)) {
    return "no optimizer: memory and time of an update are not counted "
           "(--optimizer)";
  }
  const bool narrow = std::any_of(
      plan.values.begin(), plan.values.end(), [](const PlannedValue& value) {
        return value.kind == InputKind::kParameter &&
               item_size(value.tensor.dtype) == 2;
      });
  return fmt::format(
      "each step ends with an update by {}{}", optimizer,
      narrow && option_of(plan, "precision") == "mixed"
          ? "; f32 parameters and state, used in the dtype of the program"
          : "");
}

// Returns what plans could save in which equal layers have different layouts; empty
// if that is not known.
std::string free_layers_in_words(const Plan& plan) {
  if (!plan.free_lower_bound_nanoseconds || !plan.has_plan()) return "";
  const std::int64_t objective = *plan.objective_nanoseconds;
  const std::int64_t saved = objective - *plan.free_lower_bound_nanoseconds;
  const double share =
      static_cast<double>(saved) /
      static_cast<double>(std::max<std::int64_t>(objective, 1));
  if (saved <= 0) return "equal layers have equal layouts, which costs nothing";
  return fmt::format(
      "equal layers have equal layouts; others (--layers free) save at most "
      "{:.1f} %",
      std::max(100 * share, 0.1));
}

}  // namespace

std::string as_said(const Plan& plan) {
  return plan.is_proof_given ? ", as the file says" : "";
}

std::vector<std::string> plan_in_words(const Plan& plan) {
  std::vector<std::string> out;
  if (!plan.roles.empty()) {
    for (const MeshDim& dim : plan.mesh.dims()) {
      if (dim.size > 1) out.push_back(DimInWords(plan, dim).text());
    }
    if (std::string why = launch_bound(plan); !why.empty()) {
      out.push_back(std::move(why));
    }
  }
  if (std::string update = update_in_words(plan); !update.empty()) {
    out.push_back(std::move(update));
  }
  if (std::string layers = free_layers_in_words(plan); !layers.empty()) {
    out.push_back(std::move(layers));
  }
  return out;
}

std::string verdict(const Plan& plan) {
  const std::string total = time_text(*plan.objective_nanoseconds);
  const std::string among = condition(plan);
  if (plan.status == PlanStatus::kOptimal) {
    return "optimal: " + total + ", no plan" + among + " costs less" +
           as_said(plan);
  }
  const std::string status(to_string(plan.status));
  const bool closed =
      plan.lower_bound_nanoseconds >= *plan.objective_nanoseconds;
  if (closed && !plan.unsupported.empty()) {
    return fmt::format(
        "{}: {}, no plan{} costs less that runs operators without a rule "
        "replicated; with rules for them one might{}",
        status, total, among, as_said(plan));
  }
  // A proof over a smaller space holds for that space alone.
  if (closed && !plan.space.is_named()) {
    return fmt::format("{}: {}, the best plan{} of the space searched{}",
                       status, total, among, as_said(plan));
  }
  if (closed && chose_rule(plan)) {
    return fmt::format("{}: {}, no plan{} costs less{}", status, total, among,
                       as_said(plan));
  }
  return fmt::format("{}: {}, {}{}", status, total, gap_in_words(plan),
                     as_said(plan));
}

std::string space_in_words(const Plan& plan) {
  if (plan.space.most_runs != 0) return to_string(plan.space);
  const bool recipe = !option_of(plan, "recipe").empty();
  const bool pins = !option_of(plan, "pin").empty();
  if (!recipe && !pins) return to_string(plan.space);
  return fmt::format("the layouts of the {}, all else replicated",
                     recipe && pins ? "recipe and the pins"
                     : recipe       ? "recipe"
                                    : "pins");
}

std::string_view why_none(RanOut what) {
  switch (what) {
    case RanOut::kTime:
      return "time ran out";
    case RanOut::kWork:
      return "the work limit was reached";
    case RanOut::kInterrupted:
      return "the search was interrupted";
    case RanOut::kNothing:
    case RanOut::kMemory:
    case RanOut::kSize:
    case RanOut::kAttempts:
    case RanOut::kGap:
      break;
  }
  return "the search ended";
}

}  // namespace shardprop
