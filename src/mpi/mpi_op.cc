#include "mpi/mpi_op.h"

#include <shardprop/base/error.h>

#include "base/try.h"

#include <algorithm>

// Requests outlive the functions that make them: MpiOp tests them.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)

namespace shardprop::mpi {
namespace {

// MPI allows tags up to 32767. Only the first stages post messages, and at
// most this many calls of a group are pending at once.
constexpr std::int64_t kStages = 4;
constexpr std::int64_t kCallsInFlight = 8192;

}  // namespace

int MpiOp::tag() const {
  return static_cast<int>(number() % kCallsInFlight * kStages + stage());
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

Result<bool> MpiOp::through() {
  if (requests_.empty()) return true;
  int done = 0;
  statuses_.resize(requests_.size());
  const int code = MPI_Testall(static_cast<int>(requests_.size()),
                               requests_.data(), &done, statuses_.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses_) {
      if (status.MPI_ERROR == MPI_ERR_PENDING) continue;
      SP_CHECK(checked(status.MPI_ERROR, "MPI_Testall"));
    }
  }
  SP_CHECK(checked(code, "MPI_Testall"));
  if (done != 0) requests_.clear();
  return done != 0;
}

}  // namespace shardprop::mpi

// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
