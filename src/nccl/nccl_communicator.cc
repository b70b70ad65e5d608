#include "nccl/nccl_communicator.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/call_check.h"
#include "collective/call_record.h"
#include "nccl/cuda_queue.h"
#include "nccl/nccl_collectives.h"

#include <utility>

namespace shardprop {
namespace nccl {
namespace {

// In checked mode, the bootstrap compares the calls before any work is queued.
Result<void> match(Communicator& bootstrap, const Group& group,
                   Group::Place place, const CollectiveCall& call) {
  const Group::Ranks ranks = group.list(place.list);
  const collective::CallRecords mine = collective::call_records(call, ranks);
  const collective::CallRecords theirs = collective::no_records(ranks);
  CollectiveCall exchange{.kind = CollectiveKind::kAllToAll,
                          .where = "check of " + to_string(call)};
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto peer = static_cast<std::int64_t>(r);
    exchange.sends.push_back({peer, {collective::record_bytes(mine, r)}});
    exchange.receives.push_back({peer, {collective::record_bytes(theirs, r)}});
  }
  if (auto met = bootstrap.run(group, std::move(exchange)); !met) {
    Error error = std::move(met).error();
    if (error.code == ErrorCode::kTimeout && error.help.empty()) {
      error.help = kOneOrder;
    }
    return fail(std::move(error));
  }
  return collective::compare_records(
      ranks, static_cast<std::size_t>(place.index), *mine, *theirs);
}

}  // namespace

NcclCommunicator::NcclCommunicator(const std::shared_ptr<NcclHub>& hub,
                                   const CommunicatorOptions& options)
    : StagedCommunicator(hub->bootstrap().rank(), hub->bootstrap().size(),
                         Engine::kNccl, options, hub) {}

MemoryOps& NcclCommunicator::memory_ops() { return hub().queue(); }

void NcclCommunicator::abort(const Error& reason) { hub().fail(reason, true); }

Result<std::shared_ptr<Work>> NcclCommunicator::do_start(const Group& group,
                                                         Group::Place place,
                                                         CollectiveCall call) {
  if (!collective::all_on(call, hub().queue().device())) {
    return fail(Error{ErrorCode::kCollectiveDevice,
                      "this NCCL communicator exchanges memory of " +
                          to_string(hub().queue().device()) + " only",
                      call.where});
  }
  if (const auto failed = failure()) return fail(*failed);
  hub().bootstrap().set_timeout(timeout());
  const auto stop = [this](const Error& error) {
    hub().fail(error, true);
    return fail(error);
  };
  if (checked()) {
    if (const auto met = match(hub().bootstrap(), group, place, call); !met) {
      return stop(met.error());
    }
  }
  const auto of = hub().group(group, place, timeout());
  if (!of) return stop(of.error());
  auto op = std::make_shared<NcclOp>(hub(), **of, std::move(call));
  hub().add(op);
  const auto done = posted([&]() -> Result<void> {
    SP_CHECK(post(*op));
    // Queues the later stages too, so that the caller's next work follows all
    // of them and peers do not wait until this rank polls.
    op->advance();
    return op->error() ? fail(*op->error()) : Result<void>();
  });
  if (!done) return stop(done.error());
  return work_of(std::move(op));
}

std::unique_ptr<Communicator> nccl_communicator_on(
    const NcclApi& api, std::unique_ptr<DeviceQueue> queue,
    std::unique_ptr<Communicator> bootstrap,
    const CommunicatorOptions& options) {
  bootstrap->set_timeout(options.timeout);
  return std::make_unique<NcclCommunicator>(
      std::make_shared<NcclHub>(api, std::move(queue), std::move(bootstrap)),
      options);
}

}  // namespace nccl

Result<std::unique_ptr<Communicator>> nccl_communicator(
    std::unique_ptr<Communicator> bootstrap, const NcclOptions& options) {
  SP_ASSIGN(const nccl::NcclApi api, nccl::load_nccl(options.library));
  SP_ASSIGN(std::unique_ptr<collective::DeviceQueue> queue,
            nccl::cuda_queue(options.device));
  return nccl::nccl_communicator_on(api, std::move(queue), std::move(bootstrap),
                                    options.common);
}

}  // namespace shardprop
