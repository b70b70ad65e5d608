// Lowers copies: selects the source, applies its views, and redistributes it
// step by step.
#include "lower/lowering.h"

#include "base/try.h"
#include "lower/broken_plan.h"

#include <algorithm>
#include <utility>

namespace shardprop::lowering {
namespace {

// Returns the slot before which the first step of the copy runs.
std::int64_t issue_slot(const PlannedCopy& copy) {
  return copy.in_flight ? copy.in_flight->issued_at : copy.produced_at;
}

}  // namespace

Result<void> Lowering::plan_copies() {
  const std::size_t copies = plan_.copies.size();
  program_.copies.resize(copies);
  is_issued_.resize(copies, false);
  for (std::size_t c = 0; c < copies; ++c) {
    const PlannedCopy& copy = plan_.copies[c];
    if (c > 0 && copy.produced_at < plan_.copies[c - 1].produced_at) {
      return broken_plan(place_of_copy(c),
                         "it is produced before the one above it");
    }
    issue_order_.push_back(c);
    if (!copy.in_flight) continue;
    if (copy.in_flight->issued_at >= copy.in_flight->waited_at) {
      return broken_plan(place_of_copy(c),
                         "it is waited for before it is issued");
    }
    wait_order_.push_back(c);
  }
  const auto sort = [&](std::vector<std::size_t>& order, const auto& slot) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) {
                       return slot(plan_.copies[a]) < slot(plan_.copies[b]);
                     });
  };
  sort(issue_order_, issue_slot);
  sort(wait_order_,
       [](const PlannedCopy& copy) { return copy.in_flight->waited_at; });
  return plan_buckets();
}

// The waits belong to the node before the slot, after which their operands are
// freed.
void Lowering::end_transfers(std::size_t slot) {
  build_.stand_at(slot == 0 ? 0 : slot - 1);
  std::vector<std::size_t> full;
  for (; next_wait_ < wait_order_.size(); ++next_wait_) {
    const std::size_t copy = wait_order_[next_wait_];
    if (plan_.copies[copy].in_flight->waited_at >
        static_cast<std::int64_t>(slot)) {
      break;
    }
    build_.wait(copy);
    if (plan_.copies[copy].bucket == copy) full.push_back(copy);
  }
  for (const std::size_t bucket : full) empty_bucket(bucket, slot);
}

Result<void> Lowering::make_copies(std::size_t slot) {
  end_transfers(slot);
  for (; next_issue_ < issue_order_.size(); ++next_issue_) {
    const std::size_t copy = issue_order_[next_issue_];
    if (issue_slot(plan_.copies[copy]) != static_cast<std::int64_t>(slot)) {
      break;
    }
    const bool in_flight = plan_.copies[copy].in_flight.has_value();
    if (const auto& bucket = plan_.copies[copy].bucket) {
      if (*bucket != copy) continue;
      SP_CHECK(fill_bucket(copy, slot));
      if (!in_flight) empty_bucket(copy, slot);
      continue;
    }
    build_.stand_at(slot, copy, in_flight);
    SP_CHECK(make_copy(copy));
    is_issued_[copy] = true;
  }
  build_.stand_at(slot);
  return {};
}

Result<std::vector<View>> Lowering::views_of(const PlannedCopy& copy,
                                             std::size_t index) const {
  std::vector<View> out;
  std::string at = copy.of;
  const auto add = [&](const std::string& name, bool undone) -> Result<void> {
    const auto id = graph_.find_node(name);
    const Node* node = id ? &graph_.node(*id) : nullptr;
    if (node == nullptr || node->inputs.size() != 1 ||
        node->outputs.size() != 1) {
      return broken_plan(place_of_copy(index), "`" + name + "` is not a view");
    }
    const std::string& shown = graph_.value(node->inputs[0]).display_name();
    const std::string& view = graph_.value(node->outputs[0]).display_name();
    if (at != (undone ? view : shown)) {
      return broken_plan(place_of_copy(index),
                         "`" + name + "` is not a view of `" + at + "`");
    }
    at = undone ? shown : view;
    out.push_back({node, undone});
    return {};
  };
  for (const std::string& name : copy.undone) SP_CHECK(add(name, true));
  for (const std::string& name : copy.views) SP_CHECK(add(name, false));
  if (at != copy.from) {
    return broken_plan(
        place_of_copy(index),
        "it is made of `" + at + "`, not of `" + copy.from + "`");
  }
  return out;
}

Result<ProgramValueId> Lowering::through(const ViewLink& link,
                                         ProgramValueId at,
                                         const std::string& name) {
  const Node& node = *link.view.node;
  if (!link.view.undone) {
    SP_ASSIGN(const LocalCall call, calls_.of_view(node.op, link.strategy));
    SP_ASSIGN(
        const auto made,
        run_call(call, {at}, {{name, node.op.outputs[0], link.layout, at}},
                 nullptr, node.name));
    return made[0];
  }
  const TensorMeta& operand = node.op.inputs[0];
  SP_ASSIGN(const Inverse inverse, inverse_of(node, *link.strategy.space));
  const ProgramValueId back = build_.value(name, operand, link.layout, at);
  if (!inverse.permutation.empty()) {
    build_.op("aten.permute.default",
              {{"self", at}, {"dims", Argument(inverse.permutation)}}, {back});
    return back;
  }
  std::vector<RankInt> size;
  for (int d = 0; d < operand.rank(); ++d) {
    size.push_back(RankInt::of(RankInt::Kind::kLocalSize, operand.size(d),
                               link.layout, d));
  }
  build_.op("aten.view.default", {{"self", at}, {"size", std::move(size)}},
            {back});
  return back;
}

// Returns the value that the copy redistributes: the value `at`, viewed as
// `copy.from`, in the layout `copy.src`.
Result<ProgramValueId> Lowering::seen_through(const PlannedCopy& copy,
                                              ProgramValueId at,
                                              std::size_t index) {
  SP_ASSIGN(const std::vector<View> views, views_of(copy, index));
  if (views.empty()) {
    if (build_[at].layout == copy.src) return at;
    return broken_plan(place_of_copy(index),
                       "`" + copy.of + "` is not laid out as " +
                           to_string(copy.src) + " but as " +
                           to_string(build_[at].layout));
  }
  SP_ASSIGN(const std::vector<ViewLink> links,
            chains_.between(views, build_[at].layout, copy.src,
                            place_of_copy(index)));
  const std::string name = copy.from + "." + std::to_string(index);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool last = i + 1 == links.size() && copy.steps.empty();
    SP_ASSIGN(at, through(links[i], at,
                          last ? name : name + ".v" + std::to_string(i)));
  }
  return at;
}

// Returns the value that the steps of the copy redistribute.
Result<ProgramValueId> Lowering::source_of(std::size_t index) {
  const PlannedCopy& copy = plan_.copies[index];
  ProgramValueId at;
  if (copy.source) {
    if (*copy.source >= index || !is_issued_[*copy.source]) {
      return broken_plan(place_of_copy(index), "it is made of a later copy");
    }
    at = program_.copies[*copy.source].value;
  } else {
    SP_ASSIGN(at, made(copy.of, place_of_copy(index)));
  }
  return seen_through(copy, at, index);
}

// Lowers a copy that nothing reads: it keeps its number, without a value.
void Lowering::leave_copy(std::size_t index) {
  const PlannedCopy& copy = plan_.copies[index];
  program_.copies[index] = {copy.from,
                            {},
                            static_cast<std::size_t>(copy.produced_at),
                            static_cast<std::size_t>(copy.freed_at)};
  is_issued_[index] = true;
}

Result<void> Lowering::make_copy(std::size_t index) {
  const PlannedCopy& copy = plan_.copies[index];
  const auto broken = [&](const std::string& what) {
    return broken_plan(place_of_copy(index), what);
  };
  if (copy.freed_at < copy.produced_at) {
    return broken("it is freed before it is made");
  }
  if (unread_copies_.contains(index)) {
    leave_copy(index);
    return {};
  }
  SP_ASSIGN(ProgramValueId at, source_of(index));
  const TensorMeta meta = build_[at].meta;
  const std::string name = copy.from + "." + std::to_string(index);
  for (std::size_t s = 0; s < copy.steps.size(); ++s) {
    const RedistributeStep& step = copy.steps[s];
    if (step.src != build_[at].layout) {
      return broken("step " + std::to_string(s + 1) + " starts at " +
                    to_string(step.src) + ", not at " +
                    to_string(build_[at].layout));
    }
    const bool last = s + 1 == copy.steps.size();
    const ProgramValueId next = build_.value(
        last ? name : name + ".s" + std::to_string(s), meta, step.dst);
    build_.collective(step, at, next);
    at = next;
  }
  if (build_[at].layout != copy.dst) {
    return broken("its steps do not lead to " + to_string(copy.dst));
  }
  program_.copies[index] = {copy.from, at,
                            static_cast<std::size_t>(issue_slot(copy)),
                            static_cast<std::size_t>(copy.freed_at)};
  return {};
}

}  // namespace shardprop::lowering
