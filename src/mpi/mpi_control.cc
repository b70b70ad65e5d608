#include "mpi/mpi_control.h"

#include "base/try.h"
#include "collective/never_free.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardprop::mpi {
namespace {

constexpr int kTag = 1;

}  // namespace

void ControlMessage::set_text(std::string_view what) {
  const std::size_t count = std::min(what.size(), kText - 1);
  std::memcpy(text, what.data(), count);
  text[count] = '\0';
}

void MpiControl::send(std::int64_t rank, const ControlMessage& message) {
  auto outgoing = std::make_unique<Outgoing>();
  outgoing->message = message;
  // An error here means that the peer is gone, which the message reports
  // anyway.
  MPI_Isend(&outgoing->message, sizeof(ControlMessage), MPI_BYTE,
            static_cast<int>(rank), kTag, communicator_, &outgoing->request);
  outgoing_.push_back(std::move(outgoing));
}

Result<void> MpiControl::receive(
    const std::function<void(std::int64_t, const ControlMessage&)>& take) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    SP_CHECK(checked(
        MPI_Iprobe(MPI_ANY_SOURCE, kTag, communicator_, &there, &status),
        "MPI_Iprobe"));
    if (there == 0) return {};
    ControlMessage message;
    // The message has arrived, so this call does not wait.
    SP_CHECK(
        checked(MPI_Recv(&message, sizeof(message), MPI_BYTE, status.MPI_SOURCE,
                         kTag, communicator_, MPI_STATUS_IGNORE),
                "MPI_Recv"));
    take(status.MPI_SOURCE, message);
  }
}

bool MpiControl::flush() {
  std::erase_if(outgoing_, [](const std::unique_ptr<Outgoing>& outgoing) {
    int done = 0;
    return MPI_Test(&outgoing->request, &done, MPI_STATUS_IGNORE) !=
               MPI_SUCCESS ||
           done != 0;
  });
  return outgoing_.empty();
}

void MpiControl::abandon() {
  for (std::unique_ptr<Outgoing>& outgoing : outgoing_) {
    collective::never_free(std::move(outgoing));
  }
  outgoing_.clear();
}

}  // namespace shardprop::mpi
