// ViewMemory computes the bytes that views which pick or repeat elements, and
// results that are written in place, add to those of the buffer that they alias
// (PlanBuffer::view_of_use). Every figure is a lower bound.
//
// While a buffer is in use itself, a view of it adds nothing. Afterwards its
// views keep it alive. Each view then counts an equal share of it, by the
// number of views that may exist then. So together they count no more than the
// buffer.
//
//   qkv 96 KiB -> split -> q k v, saved when qkv is not used any more: 32 KiB
//   each, as if they had memory of their own
//   qkv 96 KiB -> slice -> q, alone: 96 KiB
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardprop {

class ViewMemory {
 public:
  // `problem` must outlive the object.
  explicit ViewMemory(const PlanProblem& problem);

  // Returns the first slot in which no buffer that this view aliases, directly
  // or through other views, is counted for its own uses.
  std::int64_t covered_until(PlanBufferId view) const {
    return views_[view.index()].covered_until;
  }
  // Returns the view's bytes from that slot on, by choice of the producer, if
  // it is kept as it was produced.
  std::int64_t share(PlanBufferId view, std::size_t choice) const {
    return views_[view.index()].by_choice[choice];
  }
  // Returns the same by state, if the view was produced in that state; else
  // kNotMade.
  static constexpr std::int64_t kNotMade =
      std::numeric_limits<std::int64_t>::max();
  std::int64_t share_in(PlanBufferId view, BufferLayout state) const {
    return views_[view.index()].by_state[state];
  }

 private:
  struct View {
    std::int64_t covered_until = 0;
    std::vector<std::int64_t> by_choice;
    std::vector<std::int64_t> by_state;
  };

  void find_lives(const PlanProblem& problem);
  void find_shares(const PlanProblem& problem);

  std::vector<View> views_;         // by buffer; empty if it aliases none
  std::vector<std::size_t> roots_;  // by buffer: the one whose memory it may be
  // By buffer: the views that may outlive it.
  std::vector<std::int64_t> keepers_;
};

}  // namespace shardprop
