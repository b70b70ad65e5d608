// `RankClock` is the virtual time of one rank in a run of a program. Operators
// and collectives take the time that they have in the plan. The time of their
// arithmetic does not count.
//
// A rank has one stream of compute and one of overlapped transfers. A collective
// starts on all ranks of its group at the same time, so that a rank that is
// early waits for the others. Ranks agree on this time by a collective of their
// own. A collective in line stops the transfers in flight on its rank.
//
//   rank 0   start all_gather 0..40   mm 0..30   wait 40   all_reduce 40..45
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/program/program_time.h>
#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::execute {

class RankClock {
 public:
  // Both must outlive it. Precondition: `prices.nodes` has an entry for every
  // node.
  RankClock(const SpmdProgram& program, const ProgramPrices& prices);

  // Advances by a step. All ranks of the group must call it for a collective.
  // Errors: kProgramValue (the step is in line and reads a value that is not
  // complete at its time), and those of Communicator::run().
  Result<void> run(const ProgramStep& step, Communicator& communicator);
  // Returns the time at which the last step of this rank ends, in nanoseconds.
  std::int64_t end();

 private:
  struct Flight {
    ProgramValueId value;
    std::int64_t complete_at = 0;
  };

  Result<void> transfer(const ProgramStep& step,
                        const ProgramCollective& collective,
                        Communicator& communicator);
  void stop(std::int64_t nanoseconds);
  void cut(std::size_t copy);
  void compute_before(const ProgramStep& step);
  void compute_until(std::size_t node);
  std::int64_t complete_at(ProgramValueId value) const;

  const SpmdProgram& program_;
  const ProgramPrices& prices_;
  std::int64_t now_ = 0;
  std::int64_t transferred_ = 0;  // end of the last overlapped transfer
  std::vector<Flight> flights_;
  std::size_t next_node_ = 0;
  std::vector<std::int64_t> boundaries_;  // by copy: not yet passed
  std::vector<std::int64_t> left_;        // by copy: overlappable time
};

}  // namespace shardprop::execute
