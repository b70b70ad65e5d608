// `MpiOp` is one pending collective of one rank, as MPI requests.
#pragma once

#include "collective/staged_op.h"
#include "mpi/mpi_call.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop::mpi {

// The group of a collective on this rank.
struct MpiGroup {
  MPI_Comm communicator = MPI_COMM_NULL;
  Group::Ranks ranks;
  std::int64_t index = 0;
  std::uint64_t key = 0;   // of the whole partition, alike on all ranks
  std::int64_t calls = 0;  // started on this rank
};

class MpiOp final : public collective::StagedOp {
 public:
  MpiOp(MpiGroup& group, CollectiveCall call, std::int64_t largest_part)
      : StagedOp(group.ranks, group.index, group.calls++, std::move(call),
                 host_memory_ops()),
        group_(group),
        largest_part_(largest_part) {}

  const MpiGroup& group() const { return group_; }
  std::int64_t largest_part() const { return largest_part_; }

  // Large tensors are sent in parts.
  Result<void> send(std::int64_t peer, const LocalTensor& from) override;
  Result<void> receive(std::int64_t peer, const LocalTensor& into) override;
  // Takes ownership of a request of a collective call.
  void add(MPI_Request request) { requests_.push_back(request); }

 protected:
  Result<bool> through() override;
  bool busy() const override { return !requests_.empty(); }
  void forget() override { requests_.clear(); }

 private:
  int tag() const;

  const MpiGroup& group_;
  std::int64_t largest_part_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;  // room for those of the requests
};

}  // namespace shardprop::mpi
