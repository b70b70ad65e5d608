#include "mpi/mpi_op.h"

#include <shardprop/base/error.h>
#include <shardprop/collective/kernel_view.h>

#include "base/try.h"

#include <algorithm>
#include <memory>

namespace shardprop::mpi {
namespace {

// MPI promises tags up to 32767. Messages are posted in the first stages only,
// and no more than this many calls of a group are under way at once.
constexpr std::int64_t kStages = 4;
constexpr std::int64_t kCallsInFlight = 8192;

}  // namespace

int MpiOp::tag() const {
  return static_cast<int>(number_ % kCallsInFlight * kStages + stage_);
}

Result<void> MpiOp::send(std::int64_t peer, const LocalTensor& from) {
  const auto* at = from.data_as<const char>();
  for (std::int64_t sent = 0; sent < from.bytes(); sent += largest_part_) {
    const auto count =
        static_cast<int>(std::min(largest_part_, from.bytes() - sent));
    MPI_Request request = MPI_REQUEST_NULL;
    SP_CHECK(
        checked(MPI_Isend(at + sent, count, MPI_BYTE, static_cast<int>(peer),
                          tag(), group_.communicator, &request),
                "MPI_Isend"));
    requests_.push_back(request);
  }
  return {};
}

Result<void> MpiOp::receive(std::int64_t peer, const LocalTensor& into) {
  auto* at = into.data_as<char>();
  for (std::int64_t done = 0; done < into.bytes(); done += largest_part_) {
    const auto count =
        static_cast<int>(std::min(largest_part_, into.bytes() - done));
    MPI_Request request = MPI_REQUEST_NULL;
    SP_CHECK(
        checked(MPI_Irecv(at + done, count, MPI_BYTE, static_cast<int>(peer),
                          tag(), group_.communicator, &request),
                "MPI_Irecv"));
    requests_.push_back(request);
  }
  return {};
}

Result<LocalTensor> MpiOp::stage_memory(const Dims& sizes, DType dtype) {
  SP_ASSIGN(LocalTensor memory, LocalTensor::empty(sizes, dtype));
  staging_.push_back(memory);
  return memory;
}

Result<LocalTensor> MpiOp::packed(const LocalTensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  SP_ASSIGN(LocalTensor out, stage_memory(tensor.sizes(), tensor.dtype()));
  SP_CHECK(copy(tensor, out));
  return out;
}

Result<LocalTensor> MpiOp::landing(const LocalTensor& output) {
  if (output.is_contiguous()) return output;
  SP_ASSIGN(LocalTensor out, stage_memory(output.sizes(), output.dtype()));
  unpack(out, output);
  return out;
}

Result<bool> MpiOp::requests_done() {
  if (requests_.empty()) return true;
  int done = 0;
  std::vector<MPI_Status> statuses(requests_.size());
  const int code = MPI_Testall(static_cast<int>(requests_.size()),
                               requests_.data(), &done, statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR == MPI_ERR_PENDING) continue;
      SP_CHECK(checked(status.MPI_ERROR, "MPI_Testall"));
    }
  }
  SP_CHECK(checked(code, "MPI_Testall"));
  if (done != 0) requests_.clear();
  return done != 0;
}

Result<void> MpiOp::finish() {
  for (const auto& [from, to] : unpack_) SP_CHECK(copy(from, to));
  return {};
}

void MpiOp::advance() {
  while (!over_) {
    const Result<bool> done = requests_done();
    if (done && !*done) return;
    Result<void> next;
    if (!done) {
      next = fail(done.error());
    } else if (stages_.empty()) {
      next = finish();
      over_ = true;
    } else {
      const Stage stage = std::move(stages_.front());
      stages_.pop_front();
      ++stage_;
      next = stage(*this);
    }
    if (!next) {
      error_ = std::move(next).error();
      over_ = true;
    }
    // With requests under way after an error memory is not to be freed; the
    // hub abandons it.
    if (over_ && requests_.empty()) {
      call_.inputs.clear();
      call_.outputs.clear();
      call_.sends.clear();
      call_.receives.clear();
      staging_.clear();
      unpack_.clear();
    }
  }
}

std::int64_t MpiOp::abandon(const Error& error) {
  if (!error_) error_ = error;
  over_ = true;
  stages_.clear();
  if (requests_.empty()) return 0;
  std::int64_t bytes = 0;
  std::vector<LocalTensor> held = std::move(staging_);
  held.insert(held.end(), call_.inputs.begin(), call_.inputs.end());
  held.insert(held.end(), call_.outputs.begin(), call_.outputs.end());
  for (const auto* messages : {&call_.sends, &call_.receives}) {
    for (const Message& message : *messages) {
      held.insert(held.end(), message.pieces.begin(), message.pieces.end());
    }
  }
  for (const LocalTensor& tensor : held) bytes += tensor.bytes();
  // Requests of collectives cannot be cancelled: what they may touch has to
  // outlive them, and nothing tells when they end.
  auto leaked = std::make_unique<std::vector<LocalTensor>>(std::move(held));
  static_cast<void>(leaked.release());
  requests_.clear();
  return bytes;
}

std::string MpiOp::describe() const {
  return "call " + std::to_string(number_) + " of group " +
         to_string(group_.ranks) + ", " + to_string(call_);
}

}  // namespace shardprop::mpi
