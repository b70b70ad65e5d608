// `MpiControl` sends small messages next to the data: failures, and the
// positions of all members if a member is late.
#pragma once

#include <shardprop/base/result.h>

#include "mpi/mpi_call.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shardprop::mpi {

struct ControlMessage {
  enum class Kind : std::int32_t {
    kFailure,  // `code` and `text`: I have failed, everyone stop
    kWhere,    // where are you?
    kHere,     // `call` calls of `group` started; `text`: what I wait in
    kReady,    // about to set up `group`
  };
  static constexpr std::size_t kText = 472;

  Kind kind = Kind::kFailure;
  std::int32_t code = 0;
  std::uint64_t group = 0;
  std::int64_t call = 0;
  char text[kText] = {};

  void set_text(std::string_view what);
};

class MpiControl {
 public:
  MpiControl() = default;
  explicit MpiControl(MPI_Comm communicator) : communicator_(communicator) {}

  MPI_Comm communicator() const { return communicator_; }

  // Sends without waiting. The message is kept until it has been sent.
  void send(std::int64_t rank, const ControlMessage& message);
  // Calls `take` with each message that has arrived.
  Result<void> receive(
      const std::function<void(std::int64_t, const ControlMessage&)>& take);
  // Releases messages that have been sent. Returns true if all have been sent.
  bool flush();
  // Gives up unsent messages; their memory is not freed.
  void abandon();

 private:
  struct Outgoing {
    ControlMessage message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::deque<std::unique_ptr<Outgoing>> outgoing_;
};

}  // namespace shardprop::mpi
