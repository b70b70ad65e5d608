#include <shardprop/program/program_time.h>

#include "base/saturating.h"
#include "program/step_values.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace shardprop {
namespace {

class Clocks {
 public:
  Clocks(const SpmdProgram& program, const ProgramPrices& prices)
      : program_(program),
        prices_(prices),
        complete_at_(program.values.size(), 0),
        left_(prices.overlappable) {}

  std::int64_t run() {
    for (const ProgramStep& step : program_.steps) {
      compute_before(step);
      if (const auto* moved = std::get_if<ProgramCollective>(&step.action)) {
        transfer(step, moved->step.nanoseconds);
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
      in_line_ = sat_add(in_line_, boundary);
    }
    return sat_add(computed_, in_line_);
  }

 private:
  // A node computes at its first step other than a copy.
  void compute_before(const ProgramStep& step) {
    compute_until(step.node);
    const bool runs = std::holds_alternative<ProgramOp>(step.action) ||
                      std::holds_alternative<ProgramCollective>(step.action);
    if (runs && !step.copy) compute_until(step.node + 1);
  }

  void compute_until(std::size_t node) {
    for (; next_node_ < node; ++next_node_) {
      computed_ = sat_add(computed_, prices_.nodes[next_node_]);
    }
  }

  void transfer(const ProgramStep& step, std::int64_t nanoseconds) {
    std::int64_t overlapped = step.is_overlapped ? nanoseconds : 0;
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
  // The times at which nodes and transfers end, collectives in line left out.
  std::int64_t computed_ = 0;
  std::int64_t transferred_ = 0;
  std::int64_t in_line_ = 0;
  std::size_t next_node_ = 0;
  std::vector<std::int64_t> complete_at_;  // by value
  std::vector<std::int64_t> left_;         // by copy: overlappable time
};

}  // namespace

std::int64_t program_time(const SpmdProgram& program,
                          const ProgramPrices& prices) {
  return Clocks(program, prices).run();
}

}  // namespace shardprop
