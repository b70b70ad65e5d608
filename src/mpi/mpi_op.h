// MpiOp: one collective of one rank on its way: requests under way, what is to
// be done when they are through, and the memory that MPI may touch until then.
#pragma once

#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>

#include "mpi/mpi_call.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::mpi {

// What a collective needs to know of its group.
struct MpiGroup {
  MPI_Comm communicator = MPI_COMM_NULL;
  Group::Ranks ranks;
  std::int64_t index = 0;
  std::uint64_t key = 0;   // of the whole partition, alike on all ranks
  std::int64_t calls = 0;  // started on this rank
};

class MpiOp {
 public:
  using Stage = std::function<Result<void>(MpiOp&)>;

  MpiOp(const MpiGroup& group, CollectiveCall call, std::int64_t number,
        std::int64_t largest_part)
      : group_(group),
        call_(std::move(call)),
        number_(number),
        largest_part_(largest_part) {}

  const MpiGroup& group() const { return group_; }
  const CollectiveCall& call() const { return call_; }
  std::int64_t number() const { return number_; }
  std::int64_t largest_part() const { return largest_part_; }
  std::int64_t ranks() const {
    return static_cast<std::int64_t>(group_.ranks.size());
  }

  // To be run, in order, when all that was posted before is through.
  void then(Stage stage) { stages_.push_back(std::move(stage)); }

  // Posts between members, in parts where large. The tensors are contiguous
  // and kept; what is empty is not sent.
  Result<void> send(std::int64_t peer, const LocalTensor& from);
  Result<void> receive(std::int64_t peer, const LocalTensor& into);
  // Takes over a request of a collective call.
  void add(MPI_Request request) { requests_.push_back(request); }

  // Memory that lives as long as the operation.
  Result<LocalTensor> stage_memory(const Dims& sizes, DType dtype);
  // The tensor itself, or a contiguous copy of it.
  Result<LocalTensor> packed(const LocalTensor& tensor);
  // Where `output` can be received: itself, or staging that is copied to it in
  // the end.
  Result<LocalTensor> landing(const LocalTensor& output);
  // Copies staging to where it belongs, in the end.
  void unpack(const LocalTensor& from, const LocalTensor& to) {
    unpack_.emplace_back(from, to);
  }

  // Goes as far as it can without waiting.
  void advance();
  bool over() const { return over_; }
  // Precondition: over().
  const std::optional<Error>& error() const { return error_; }
  // Ends it with an error; what MPI may still touch is never freed. Bytes of
  // that.
  std::int64_t abandon(const Error& error);

  // "call 5 of group {0,1}, all_reduce(sum) of f32[8]".
  std::string describe() const;

  bool dropped = false;  // nobody will wait for it

 private:
  int tag() const;
  Result<bool> requests_done();
  Result<void> finish();

  const MpiGroup& group_;
  CollectiveCall call_;
  std::int64_t number_;
  std::int64_t largest_part_;
  int stage_ = 0;
  std::vector<MPI_Request> requests_;
  std::deque<Stage> stages_;
  std::vector<LocalTensor> staging_;
  std::vector<std::pair<LocalTensor, LocalTensor>> unpack_;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace shardprop::mpi
