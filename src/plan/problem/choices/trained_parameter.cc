#include "plan/problem/choices/trained_parameter.h"

#include "base/try.h"
#include "plan/problem/layout_relations.h"
#include "plan/problem/transfer_costs.h"
#include "plan/transfer_time.h"

#include <shardprop/mesh/update_cost.h>

namespace shardprop {
namespace {

constexpr double kF32Bytes = 4;

// Returns the number of phases in which the program reads the parameter. Each
// phase casts a parameter that is kept in f32 to 16 bits.
std::uint32_t phases_of_use(const Graph& graph, ValueId parameter) {
  bool forward = false;
  bool backward = false;
  for (const ValueId value :
       graph.buffer(graph.value(parameter).buffer).values) {
    for (const Use& use : graph.value(value).consumers) {
      const bool is_forward = graph.node(use.node).phase == Phase::kForward;
      (is_forward ? forward : backward) = true;
    }
  }
  return (forward ? 1U : 0U) + (backward ? 1U : 0U);
}

class TrainedParameter {
 public:
  TrainedParameter(const ProblemData& data, ValueId parameter,
                   const std::vector<GraphOutput>& ties,
                   const TrainedLayouts& layouts)
      : data_(data),
        value_(data.values[parameter.index()]),
        ties_(ties),
        layouts_(layouts),
        item_(static_cast<double>(
            item_size(data.graph.value(parameter).meta.dtype()))),
        is_wide_(keeps_f32(data.options) && item_ == 2),
        casts_(phases_of_use(data.graph, parameter)) {}

  Result<std::shared_ptr<const ChoiceSet>> choices() {
    set_->num_uses = ties_.size();
    for (const GraphOutput& tie : ties_) {
      set_->layouts.push_back(
          tie.kind == OutputKind::kGradient ? layouts_.states : layouts_.own);
    }
    set_->layouts.push_back(layouts_.own);
    for (std::size_t state = 0; state < layouts_.states.size(); ++state) {
      SP_CHECK(data_.check_stop());
      for (std::size_t own = 0; own < layouts_.own.size(); ++own) {
        if (!may_lie(state, own)) continue;
        add(state, own, false);
        if (data_.options.accumulate > 1) add(state, own, true);
      }
    }
    return set_;
  }

 private:
  // Smaller shards are parts of the parameter's shards only if the mesh dims
  // shard in that order. Slicing them then sends nothing.
  bool may_lie(std::size_t state, std::size_t own) const {
    const LayoutId from = layouts_.states[state];
    const LayoutId to = layouts_.own[own];
    return gathers(data_.layouts[from], data_.layouts[to]) &&
           data_.moves.nanoseconds(value_.tensor, to, from) <= 0;
  }

  void add(std::size_t state, std::size_t own, bool reduced_late) {
    for (const GraphOutput& tie : ties_) {
      set_->picks.push_back(static_cast<std::uint32_t>(
          tie.kind == OutputKind::kGradient ? state : own));
    }
    set_->picks.push_back(static_cast<std::uint32_t>(own));
    const LayoutId from = layouts_.states[state];
    const LayoutId to = layouts_.own[own];
    const TransferTime gather = share_of_step(
        data_.options, {data_.move_nanoseconds(value_, from, to),
                        data_.overlappable_nanoseconds(value_, from, to)});
    set_->costs.push_back(data_.share_of_step(step_nanoseconds(from, to)) +
                          gather.waited);
    set_->overlapped.push_back(gather.overlappable);
    set_->state_layouts.push_back(from);
    if (data_.options.accumulate > 1) {
      set_->reduced_late.push_back(reduced_late);
    }
  }

  // The step reads and writes parameter, gradient and state once. A parameter
  // that is kept in f32 is also written in 16 bits. This happens after the
  // update if the parameter is gathered. If its layout is that of its state, it
  // happens for each phase of use.
  std::int64_t step_nanoseconds(LayoutId state, LayoutId own) const {
    const UpdateCost& update = data_.options.optimizer == Optimizer::kAdamW
                                   ? kAdamWUpdate
                                   : kSgdUpdate;
    const double elements =
        static_cast<double>(data_.moves.local_bytes(value_.tensor, state)) /
        item_;
    double bytes = update.passes * (is_wide_ ? kF32Bytes : item_);
    if (is_wide_) bytes += own == state ? casts_ * (kF32Bytes + item_) : item_;
    return update_nanoseconds(data_.topology, update.flops * elements,
                              bytes * elements);
  }

  const ProblemData& data_;
  const PlanValue& value_;
  const std::vector<GraphOutput>& ties_;
  const TrainedLayouts& layouts_;
  double item_;
  bool is_wide_;  // kept in f32
  std::uint32_t casts_;
  std::shared_ptr<ChoiceSet> set_ = std::make_shared<ChoiceSet>();
};

}  // namespace

Result<std::shared_ptr<const ChoiceSet>> trained_parameter(
    const ProblemData& data, ValueId parameter,
    const std::vector<GraphOutput>& ties, const TrainedLayouts& layouts) {
  return TrainedParameter(data, parameter, ties, layouts).choices();
}

std::uint32_t class_of_trained(const ProblemData& data, ValueId parameter) {
  constexpr std::uint32_t kMostPhases = 2;
  return 1 + data.values[parameter.index()].tensor * (kMostPhases + 1) +
         phases_of_use(data.graph, parameter);
}

}  // namespace shardprop
