#include <shardprop/report/plan_sentences.h>

#include "base/quantities.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <variant>

namespace shardprop {
namespace {

// Unit: nanoseconds. A smaller difference in cost is not printed: the time of a
// plan is printed in tenths of a microsecond.
constexpr std::int64_t kLeastPrintedNanoseconds = 50;

class ReasonsInWords {
 public:
  explicit ReasonsInWords(const Plan& plan) : plan_(plan) {
    for (const PlannedNode& node : plan.nodes) nodes_.emplace(node.name, &node);
    for (const PlannedValue& value : plan.values) {
      values_.emplace(value.name, &value);
    }
  }

  std::string text(const PlannedCopy& copy) const {
    const CopyReason& reason = copy.reason;
    switch (reason.cause) {
      case CopyCause::kReported:
        return reason.text;
      case CopyCause::kUnused:
        return "nothing reads it";
      case CopyCause::kView:
        return "a view of the copy of `" + copy.of + "`";
      case CopyCause::kOptimizer:
        return of_optimizer(copy);
      default:
        break;
    }
    std::string out = of_user(reason);
    if (reason.other_users > 0) {
      out +=
          fmt::format(", and so {} {}", reason.other_users == 1 ? "does" : "do",
                      counted(reason.other_users, "other user"));
    }
    return out + why_no_other(reason);
  }

 private:
  static std::string of_optimizer(const PlannedCopy& copy) {
    const std::string wanted = to_string(copy.reason.wanted);
    if (copy.reason.user->kind == CopyUser::Kind::kOptimizer) {
      return "the optimizer's state has layout " + wanted;
    }
    return "the optimizer updates it as " + to_string(copy.src) +
           ", and the program reads it as " + wanted;
  }

  std::string of_user(const CopyReason& reason) const {
    const CopyUser& user = *reason.user;
    const bool is_between = reason.cause == CopyCause::kSource;
    const std::string wanted = to_string(reason.wanted);
    switch (user.kind) {
      case CopyUser::Kind::kNode:
        return named(user) +
               (is_between ? " reads a copy of it as " : " reads it as ") +
               wanted;
      case CopyUser::Kind::kResult:
        return std::string("the program returns ") +
               (is_between ? "a copy of it as " : "it as ") + wanted;
      default:
        break;
    }
    return fmt::format(
        "the {} of `{}`{} ends in {} layout {}", to_string(user.kind),
        user.name, is_between ? " is a copy of it and" : "",
        follows_state(user.name) ? "the optimizer state's" : "the stored",
        wanted);
  }

  // Returns "`mm_1` (model.py:53)".
  std::string named(const CopyUser& user) const {
    const auto found = nodes_.find(user.name);
    if (found == nodes_.end() || found->second->source.empty()) {
      return "`" + user.name + "`";
    }
    const std::string& source = found->second->source;
    return fmt::format("`{}` ({})", user.name,
                       source.substr(source.rfind('/') + 1));
  }

  // Returns whether the gradient of the parameter ends in the layout of the
  // optimizer's state, which differs from that of the parameter.
  bool follows_state(const std::string& parameter) const {
    const auto found = values_.find(parameter);
    return found != values_.end() && found->second->state_layout;
  }

  std::string why_no_other(const CopyReason& reason) const {
    switch (reason.cause) {
      case CopyCause::kCost:
        return alternative(*reason.alternative);
      case CopyCause::kPin:
        return "; pinned by --pin '" + to_string(*reason.pin) + "'";
      case CopyCause::kRecipe:
        return "; the recipe " + to_string(*reason.recipe) + " requires it";
      case CopyCause::kOnlyLayout:
        return "; the space of plans has no other layout for it";
      default:
        return "";
    }
  }

  std::string alternative(const CopyAlternative& other) const {
    if (std::abs(other.nanoseconds) < kLeastPrintedNanoseconds) return "";
    return fmt::format(
        "; as {} the plan would cost {:.1f} us {}", to_string(*other.layout),
        std::abs(static_cast<double>(other.nanoseconds) / 1000),
        other.nanoseconds >= 0 ? "more" : "less" + why_not_taken());
  }

  // Only one user of the copy reads another layout in the cheaper plan. So it may
  // exceed the memory limit, or have a layer unlike its equals.
  std::string why_not_taken() const {
    const bool has_equal_layers =
        plan_.free_lower_bound_nanoseconds.has_value();
    if (plan_.memory.limit_bytes && has_equal_layers) {
      return ", but may take more memory or make equal layers differ";
    }
    if (plan_.memory.limit_bytes) return ", but may take more memory";
    return has_equal_layers ? ", but make equal layers differ" : "";
  }

  const Plan& plan_;
  std::unordered_map<std::string_view, const PlannedNode*> nodes_;
  std::unordered_map<std::string_view, const PlannedValue*> values_;
};

class NoteInWords {
 public:
  std::string operator()(const GraphNote& note) const { return note.text; }
  std::string operator()(const ReportedNote& note) const { return note.text; }

  std::string operator()(const SmallBatchNote& note) const {
    return fmt::format(
        "a batch of {} does not fill {} ranks: matmuls that could shard it are "
        "replicated on the {} ranks of {}, which costs {}",
        count_text(note.batch), count_text(note.ranks), note.size,
        note.mesh_dim, time_text(note.lost_nanoseconds));
  }

  std::string operator()(const UnevenHeadsNote& note) const {
    return fmt::format(
        "{} not a multiple of {}={}: attention is replicated on "
        "its ranks, which costs {}",
        note.heads == std::vector<std::int64_t>{1}
            ? "1 head is"
            : fmt::format("{} heads are", fmt::join(note.heads, " and ")),
        note.mesh_dim, note.size, time_text(note.lost_nanoseconds));
  }

  std::string operator()(const BatchNormNote& note) const {
    return fmt::format(
        "{} of batch norm {} statistics over {}, as synchronised batch norm "
        "does and data parallel training in PyTorch does not by default: {} "
        "forward, {} backward",
        counted(note.layers, "layer"),
        note.layers == 1 ? "computes its" : "compute their",
        fmt::join(note.mesh_dims, " and "), time_text(note.forward_nanoseconds),
        time_text(note.backward_nanoseconds));
  }

  std::string operator()(const ReplicatedOpsNote& note) const {
    return fmt::format(
        "operators without a rule run replicated: {}; they take "
        "{}, and the communication before them {}",
        fmt::join(note.ops, ", "), time_text(note.compute_nanoseconds),
        time_text(note.communication_nanoseconds));
  }

  std::string operator()(const UnlikeLayersNote& note) const {
    return fmt::format(
        "parameters of equal layers have different layouts: the best plan "
        "found in which they have the same layouts costs {} more",
        time_text(note.alike_nanoseconds));
  }

  std::string operator()(const EagerActivationsNote& /*note*/) const {
    return "the memory counts the activations that eager execution keeps; the "
           "times are those of a compiled program, which keeps fewer";
  }

  std::string operator()(const PipelineDimNote& note) const {
    return fmt::format(
        "pipelines are not planned: {}={} shards tensors as any "
        "other mesh dim does",
        note.mesh_dim, note.size);
  }

  std::string operator()(const LeftOutNote& note) const {
    return "the search went on without " + note.part + ": " + note.message;
  }

  std::string operator()(const EarlierPlanNote& note) const {
    const std::string plan = "the plan of `" + note.graph + "`";
    if (!note.has_same_mesh_ndim) {
      return "the search did not start from " + plan +
             ", which has another number of mesh dims";
    }
    const std::string matched = fmt::format(
        "{} of {} operators and {} of {} tensors were matched by name",
        note.matched_operators, note.operators, note.matched_tensors,
        note.tensors);
    if (note.led_to_plan) {
      return "the search started from " + plan + ": " + matched;
    }
    return "the search did not start from " + plan + ": " + matched +
           (note.is_usable() ? ", and no plan was found with their layouts"
                             : "");
  }

  std::string operator()(const RecomputeRulesNote& note) const {
    std::string rules;
    for (const RecomputeRulesNote::Tried& tried : note.tried) {
      rules += (rules.empty() ? "" : ", ") + tried.rule;
      if (tried.nanoseconds > 0) {
        rules += " takes " + time_text(tried.nanoseconds);
      } else if (tried.needed_bytes > 0) {
        rules +=
            " needs at least " + bytes_text(tried.needed_bytes) + " a rank";
      } else {
        rules += " led to no plan";
      }
    }
    return "the memory limit binds, and " +
           counted(static_cast<std::int64_t>(note.tried.size()), "rule") +
           " of recomputation were tried: " + rules;
  }

  std::string operator()(const FailedPartNote& note) const {
    return "the plan is proven, although a part of the search failed: " +
           note.message;
  }
};

}  // namespace

std::vector<std::string> reasons_in_words(const Plan& plan) {
  const ReasonsInWords words(plan);
  std::vector<std::string> out;
  out.reserve(plan.copies.size());
  for (const PlannedCopy& copy : plan.copies) out.push_back(words.text(copy));
  return out;
}

std::string note_in_words(const PlanNote& note) {
  return std::visit(NoteInWords(), note);
}

}  // namespace shardprop
