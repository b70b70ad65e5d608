// `MpiHub` is the state that a communicator and its operations share: MPI
// itself, duplicates of the parent communicator, and sub-communicators.
#pragma once

#include <shardprop/collective/communicator.h>
#include <shardprop/mpi/mpi_world.h>

#include "collective/staged_hub.h"
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

class MpiHub final : public collective::StagedHub {
 public:
  static Result<std::shared_ptr<MpiHub>> create(const MpiOptions& options);
  ~MpiHub() override;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  const MpiOptions& options() const { return options_; }
  const NanOps& nan_ops() const { return *nan_ops_; }

  // True if this thread may call MPI. Error: kEngine.
  Result<void> check_thread() const;

  // Returns the sub-communicator of a group. The first call sets it up, which
  // waits for all members. Errors: the failure, kTimeout, kCollectiveMismatch
  // (a member sets up another group).
  Result<MpiGroup*> group(const Group& group, Group::Place place,
                          std::chrono::milliseconds timeout);

  void progress() override;
  Result<void> wait(collective::StagedOp& op,
                    std::chrono::milliseconds timeout) override;

 private:
  explicit MpiHub(MpiOptions options);

  Result<void> open();
  Result<MPI_Comm> duplicate(MPI_Comm from);
  // Lets MPI make progress until `done` returns true. Returns false at the
  // deadline.
  bool poll(Clock::time_point deadline, const std::function<bool()>& done);
  // The call of a group that this rank waits in, or the set-up of the group.
  struct Waiting {
    std::string what;
    const Group::Ranks& ranks;
    std::uint64_t key = 0;             // of the group
    std::optional<std::int64_t> call;  // its number; empty: the set-up
    bool has_asked = false;            // and there was time to answer
  };
  // Polls like `poll`, and asks late members for their position while there is
  // time to answer. At the deadline the world fails with their answers.
  bool poll_and_ask(Waiting waiting, std::chrono::milliseconds timeout,
                    const std::function<bool()>& done);
  Result<void> meet(const Group::Ranks& ranks, std::uint64_t key,
                    const std::string& name, std::chrono::milliseconds timeout);
  void take(std::int64_t from, const ControlMessage& message);
  // Returns the other members of the current call of this rank that, as far as
  // is known, have not reached it; and the position of one of them.
  std::vector<std::int64_t> missing() const;
  std::string where_is(std::int64_t rank) const;
  // Returns the position of this rank, and the members for which it waits.
  std::string where_am_i() const;
  Error late(std::chrono::milliseconds timeout) const;
  void stop(bool tell) override;
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

  std::optional<Waiting> waiting_;
  struct Answer {
    std::int64_t call = 0;
    std::string text;
  };
  std::unordered_map<std::int64_t, Answer> answers_;  // by rank
  // Ranks that are about to set up a group, by the key of the group.
  std::unordered_map<std::uint64_t, std::set<std::int64_t>> ready_;
};

}  // namespace shardprop::mpi
