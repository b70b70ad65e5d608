#include "mpi/mpi_communicator.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/call_check.h"
#include "mpi/mpi_collectives.h"
#include "mpi/mpi_match.h"

#include <utility>

namespace shardprop {
namespace mpi {
MpiCommunicator::MpiCommunicator(const std::shared_ptr<MpiHub>& hub)
    : StagedCommunicator(hub->rank(), hub->size(), Engine::kMpi,
                         hub->options().common, hub) {}

void MpiCommunicator::abort(const Error& reason) {
  Error failure = reason;
  failure.code = ErrorCode::kRankFailed;
  failure.message =
      "rank " + std::to_string(rank()) + " failed: " + reason.message;
  hub().fail(std::move(failure), true);
}

Result<std::shared_ptr<Work>> MpiCommunicator::do_start(const Group& group,
                                                        Group::Place place,
                                                        CollectiveCall call) {
  SP_CHECK(hub().check_thread());
  if (!collective::all_on(call, Device{})) {
    return fail(Error{ErrorCode::kCollectiveDevice,
                      "MPI exchanges host memory only", call.where});
  }
  hub().progress();
  if (hub().failure()) return fail(*hub().failure());
  SP_ASSIGN(MpiGroup* const of, hub().group(group, place, timeout()));
  auto op = std::make_shared<MpiOp>(*of, std::move(call),
                                    hub().options().largest_part);
  hub().add(op);
  const Result<void> done = posted([&] {
    return checked() ? post_matched(*op) : post_natively(*op, hub().nan_ops());
  });
  if (!done) {
    // Some messages of the operation may be in flight.
    hub().fail(done.error(), true);
    return fail(done.error());
  }
  return work_of(std::move(op));
}

}  // namespace mpi

Result<std::unique_ptr<Communicator>> mpi_communicator(
    const MpiOptions& options) {
  SP_ASSIGN(std::shared_ptr<mpi::MpiHub> hub, mpi::MpiHub::create(options));
  return std::make_unique<mpi::MpiCommunicator>(std::move(hub));
}

}  // namespace shardprop
