#include <shardprop/program/program_time.h>

#include "base/saturating.h"
#include "program/step_values.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace shardprop {
namespace {

// MicroBatchKind is the first micro-batch of a step, those between, and the last.
enum class MicroBatchKind : std::uint8_t { kFirst, kBetween, kLast };

// Clocks takes the time of one kind of micro-batches. All times are shares of
// one micro-batch.
class Clocks {
 public:
  Clocks(const SpmdProgram& program, const ProgramPrices& prices,
         MicroBatchKind kind)
      : program_(program),
        prices_(prices),
        kind_(kind),
        complete_at_(program.values.size(), 0),
        sent_(program.copies.size(), 0) {
    for (std::size_t c = 0; c < prices.overlappable.size(); ++c) {
      left_.push_back(is_once(c) ? prices.overlappable[c]
                                 : part_of(prices.overlappable[c]));
    }
  }

  std::int64_t run() {
    for (const ProgramStep& step : program_.steps) {
      compute_before(step);
      if (const auto* moved = std::get_if<ProgramCollective>(&step.action)) {
        transfer(step, time_of(step, moved->step.nanoseconds));
      } else if (const auto* wait = std::get_if<ProgramWait>(&step.action)) {
        for (const ProgramValueId id : wait->values) {
          computed_ = std::max(computed_, complete_at_[id.index()]);
        }
      }
      if (step.is_overlapped) {
        for_each_made(step, [&](ProgramValueId id) {
          complete_at_[id.index()] = std::max(computed_, transferred_);
        });
      }
    }
    compute_until(program_.nodes.size());
    for (const std::int64_t boundary : prices_.copies) {
      in_line_ = sat_add(in_line_, part_of(boundary));
    }
    return sat_add(computed_, in_line_);
  }

 private:
  bool is_once(std::size_t copy) const {
    return prices_.micro_batches > 1 && copy < prices_.once_a_step.size() &&
           prices_.once_a_step[copy];
  }

  // Returns the part of a time that every micro-batch takes. The parts of all
  // kinds add up to the time.
  std::int64_t part_of(std::int64_t nanoseconds) const {
    if (prices_.micro_batches == 1) return nanoseconds;
    const std::int64_t one = nanoseconds / prices_.micro_batches;
    if (kind_ == MicroBatchKind::kFirst) return one;
    if (prices_.micro_batches == 2) return nanoseconds - one;
    return kind_ == MicroBatchKind::kLast ? one : nanoseconds - 2 * one;
  }

  // The time of a copy is divided as a whole: the parts of its transfers add up to
  // the part of their sum. The part of a transfer of 1 ns may be -1 ns.
  std::int64_t time_of(const ProgramStep& step, std::int64_t nanoseconds) {
    if (!step.copy) return part_of(nanoseconds);
    if (is_once(*step.copy)) {
      return kind_ == MicroBatchKind::kLast ? nanoseconds : 0;
    }
    std::int64_t& sent = sent_[*step.copy];
    const std::int64_t before = part_of(sent);
    sent = sat_add(sent, nanoseconds);
    return part_of(sent) - before;
  }

  // A node computes at its first step other than a copy.
  void compute_before(const ProgramStep& step) {
    compute_until(step.node);
    const bool runs = std::holds_alternative<ProgramOp>(step.action) ||
                      std::holds_alternative<ProgramCollective>(step.action);
    if (runs && !step.copy) compute_until(step.node + 1);
  }

  void compute_until(std::size_t node) {
    for (; next_node_ < node; ++next_node_) {
      computed_ = sat_add(computed_, part_of(prices_.nodes[next_node_]));
    }
  }

  void transfer(const ProgramStep& step, std::int64_t nanoseconds) {
    // A part may be -1 ns (part_of()), which overlaps nothing.
    std::int64_t overlapped =
        step.is_overlapped ? std::max<std::int64_t>(nanoseconds, 0) : 0;
    if (step.copy && *step.copy < left_.size()) {
      std::int64_t& left = left_[*step.copy];
      overlapped = std::min(overlapped, left);
      left -= overlapped;
    }
    in_line_ = sat_add(in_line_, nanoseconds - overlapped);
    if (!step.is_overlapped) return;
    transferred_ = sat_add(std::max(computed_, transferred_), overlapped);
  }

  const SpmdProgram& program_;
  const ProgramPrices& prices_;
  MicroBatchKind kind_;
  // The times at which nodes and transfers end, collectives in line left out.
  std::int64_t computed_ = 0;
  std::int64_t transferred_ = 0;
  std::int64_t in_line_ = 0;
  std::size_t next_node_ = 0;
  std::vector<std::int64_t> complete_at_;  // by value
  std::vector<std::int64_t> sent_;         // by copy: time of its transfers
  std::vector<std::int64_t> left_;         // by copy: overlappable time
};

}  // namespace

std::int64_t program_time(const SpmdProgram& program,
                          const ProgramPrices& prices) {
  std::int64_t sum = Clocks(program, prices, MicroBatchKind::kLast).run();
  if (prices.micro_batches > 1) {
    sum = sat_add(sum, Clocks(program, prices, MicroBatchKind::kFirst).run());
  }
  if (prices.micro_batches > 2) {
    sum = sat_add(sum, Clocks(program, prices, MicroBatchKind::kBetween).run());
  }
  return sum;
}

}  // namespace shardprop
