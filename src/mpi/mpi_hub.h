// MpiHub: what a communicator and its operations share: MPI itself, duplicates
// of the parent, sub-communicators, what is under way, and the failure.
#pragma once

#include <shardprop/collective/communicator.h>
#include <shardprop/mpi/mpi_world.h>

#include "mpi/mpi_control.h"
#include "mpi/mpi_op.h"
#include "mpi/mpi_types.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardprop::mpi {

class MpiHub {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::shared_ptr<MpiHub>> create(const MpiOptions& options);
  ~MpiHub();
  MpiHub(const MpiHub&) = delete;
  MpiHub& operator=(const MpiHub&) = delete;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  const MpiOptions& options() const { return options_; }
  const NanOps& nan_ops() const { return *nan_ops_; }

  // Whether this thread may call MPI. Error: kEngine.
  Result<void> check_thread() const;

  // Set up on first use, which waits for all members. Errors: the failure,
  // kTimeout, kCollectiveMismatch (a member sets up another group).
  Result<MpiGroup*> group(const Group& group, Group::Place place,
                          std::chrono::milliseconds timeout);

  // Keeps the operation until it is over.
  void add(const std::shared_ptr<MpiOp>& op) { pending_.push_back(op); }
  // Moves everything along that is under way, and hears what others say.
  void progress();
  // Until the operation is over, or the timeout.
  Result<void> wait(MpiOp& op, std::chrono::milliseconds timeout);

  const std::optional<Error>& failure() const { return failure_; }
  // Stops this rank for good; `tell` all others.
  void fail(Error failure, bool tell);

  void add_stats(CommunicatorStats& stats) const;

 private:
  explicit MpiHub(const MpiOptions& options) : options_(options) {}

  Result<void> open();
  Result<void> duplicate(MPI_Comm from, MPI_Comm& to);
  // Calls `done` and lets MPI run until it is true; false at the deadline.
  bool poll(Clock::time_point deadline, const std::function<bool()>& done);
  Result<void> meet(const Group::Ranks& ranks, std::uint64_t key,
                    const std::string& name, std::chrono::milliseconds timeout);
  void take(std::int64_t from, const ControlMessage& message);
  void ask_where(const MpiOp& op);
  Error late(const MpiOp& op, std::chrono::milliseconds timeout) const;
  void close();

  const MpiOptions options_;
  bool initialised_ = false;  // by us
  bool main_thread_only_ = false;
  std::int64_t rank_ = 0;
  std::int64_t size_ = 1;
  MPI_Comm world_ = MPI_COMM_NULL;
  MpiControl control_;
  std::unique_ptr<NanOps> nan_ops_;
  std::unordered_map<Group, std::unique_ptr<MpiGroup>> groups_;
  std::vector<std::shared_ptr<MpiOp>> pending_;
  std::optional<Error> failure_;
  std::int64_t abandoned_ = 0;
  std::int64_t abandoned_bytes_ = 0;

  const MpiOp* waited_for_ = nullptr;
  struct Answer {
    std::uint64_t group = 0;
    std::int64_t call = 0;
    std::string text;
  };
  std::unordered_map<std::int64_t, Answer> answers_;
  // Ranks about to set up a group, by its key.
  std::unordered_map<std::uint64_t, std::set<std::int64_t>> ready_;
};

}  // namespace shardprop::mpi
