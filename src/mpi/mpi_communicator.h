// MpiCommunicator: this process's end of a world of processes.
#pragma once

#include "mpi/mpi_hub.h"

#include <memory>
#include <optional>

namespace shardprop::mpi {

class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(std::shared_ptr<MpiHub> hub);

  void abort(const Error& reason) override;
  std::optional<Error> failure() override;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group& group, Group::Place place,
                                         CollectiveCall call) override;
  void add_engine_stats(CommunicatorStats& stats) const override;

 private:
  std::shared_ptr<MpiHub> hub_;
};

}  // namespace shardprop::mpi
