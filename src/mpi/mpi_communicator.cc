#include "mpi/mpi_communicator.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/call_check.h"
#include "mpi/mpi_collectives.h"
#include "mpi/mpi_match.h"

#include <utility>

namespace shardprop {
namespace mpi {
namespace {

class MpiWork final : public Work {
 public:
  MpiWork(std::shared_ptr<MpiHub> hub, std::shared_ptr<MpiOp> op,
          std::chrono::milliseconds timeout)
      : hub_(std::move(hub)), op_(std::move(op)), timeout_(timeout) {}
  ~MpiWork() override { op_->dropped = true; }

  bool is_done() override {
    if (!op_->over()) hub_->progress();
    return op_->over();
  }
  Result<void> wait() override { return hub_->wait(*op_, timeout_); }

 private:
  std::shared_ptr<MpiHub> hub_;
  std::shared_ptr<MpiOp> op_;
  std::chrono::milliseconds timeout_;
};

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiHub> hub)
    : Communicator(hub->rank(), hub->size(), Engine::kMpi,
                   hub->options().common),
      hub_(std::move(hub)) {}

void MpiCommunicator::abort(const Error& reason) {
  Error failure = reason;
  failure.code = ErrorCode::kRankFailed;
  failure.message =
      "rank " + std::to_string(rank()) + " failed: " + reason.message;
  hub_->fail(std::move(failure), true);
}

std::optional<Error> MpiCommunicator::failure() {
  hub_->progress();
  return hub_->failure();
}

Result<std::shared_ptr<Work>> MpiCommunicator::do_start(const Group& group,
                                                        Group::Place place,
                                                        CollectiveCall call) {
  SP_CHECK(hub_->check_thread());
  if (!collective::all_on(call, Device{})) {
    return fail(Error{ErrorCode::kCollectiveDevice,
                      "MPI exchanges host memory only", call.where});
  }
  hub_->progress();
  if (hub_->failure()) return fail(*hub_->failure());
  SP_ASSIGN(MpiGroup* const of, hub_->group(group, place, timeout()));
  auto op = std::make_shared<MpiOp>(*of, std::move(call),
                                    hub_->options().largest_part);
  hub_->add(op);
  const Result<void> posted =
      checked() ? post_matched(*op) : post_natively(*op, hub_->nan_ops());
  if (!posted) {
    // Part of it may be on its way.
    hub_->fail(posted.error(), true);
    return fail(posted.error());
  }
  return std::make_shared<MpiWork>(hub_, std::move(op), timeout());
}

void MpiCommunicator::add_engine_stats(CommunicatorStats& stats) const {
  hub_->add_stats(stats);
}

}  // namespace mpi

Result<std::unique_ptr<Communicator>> mpi_communicator(
    const MpiOptions& options) {
  SP_ASSIGN(std::shared_ptr<mpi::MpiHub> hub, mpi::MpiHub::create(options));
  return std::make_unique<mpi::MpiCommunicator>(std::move(hub));
}

}  // namespace shardprop
