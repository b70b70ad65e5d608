// `MpiCommunicator` is the communicator of this process in a world of
// processes.
#pragma once

#include "collective/staged_communicator.h"
#include "mpi/mpi_hub.h"

#include <memory>

namespace shardprop::mpi {

class MpiCommunicator final : public collective::StagedCommunicator<MpiHub> {
 public:
  explicit MpiCommunicator(const std::shared_ptr<MpiHub>& hub);

  void abort(const Error& reason) override;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group& group, Group::Place place,
                                         CollectiveCall call) override;
};

}  // namespace shardprop::mpi
