#include "nccl/nccl_collectives.h"

#include <shardprop/base/error.h>

#include "base/index.h"
#include "base/try.h"
#include "collective/direct_collectives.h"
#include "collective/stretch.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace shardprop::nccl {
namespace {

// Returns the ncclDataType_t of a dtype that NCCL reduces as this library does.
std::optional<int> reduced_type(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 0;
    case DType::kU8:
      return 1;
    case DType::kI32:
      return 2;
    case DType::kU32:
      return 3;
    case DType::kI64:
      return 4;
    case DType::kU64:
      return 5;
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 9;
    default:
      return std::nullopt;
  }
}

// ncclRedOp_t.
std::optional<int> reduce_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return 0;
    case ReduceOp::kProduct:
      return 1;
    case ReduceOp::kMax:
      return 2;
    case ReduceOp::kMin:
      return 3;
    case ReduceOp::kAvg:
      return 4;
    default:
      return std::nullopt;
  }
}

bool all_native(const CollectiveCall& call) {
  // NCCL's fminf and fmaxf drop NaN; the other engines and the kernels keep it.
  const bool drops_nan = call.op == ReduceOp::kMin || call.op == ReduceOp::kMax;
  return reduce_op(call.op) &&
         std::all_of(call.inputs.begin(), call.inputs.end(),
                     [drops_nan](const LocalTensor& input) {
                       return reduced_type(input.dtype()).has_value() &&
                              !(drops_nan && is_floating(input.dtype()));
                     });
}

// True if all members have equal shards, as NCCL requires. `shards` has one
// shard of each tensor per member.
bool all_even(const NcclOp& op, const std::vector<LocalTensor>& shards) {
  const auto n = static_cast<std::size_t>(op.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].sizes() != shards[i / n * n].sizes()) return false;
  }
  return true;
}

std::size_t count_of(const LocalTensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

Result<void> all_reduce(NcclOp& op) {
  const NcclApi& api = op.hub().api();
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    SP_ASSIGN(const LocalTensor in, op.packed(call.inputs[t]));
    SP_ASSIGN(const LocalTensor out, op.landing(call.outputs[t]));
    if (in.numel() == 0) continue;
    SP_CHECK(op.checked(
        api.all_reduce(in.data(), out.data(), count_of(in),
                       *reduced_type(in.dtype()), *reduce_op(call.op),
                       op.group().comm, op.hub().queue().stream()),
        "ncclAllReduce"));
  }
  return {};
}

Result<void> reduce_scatter(NcclOp& op) {
  const NcclApi& api = op.hub().api();
  const CollectiveCall& call = op.call();
  const auto n = static_cast<std::size_t>(op.size());
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    const LocalTensor& output = call.outputs[t];
    if (output.numel() == 0) continue;
    const std::span<const LocalTensor> terms(&call.inputs[t * n], n);
    std::optional<LocalTensor> in = collective::one_stretch(terms);
    if (!in) {
      SP_ASSIGN(in,
                op.stage_memory({output.numel() * op.size()}, output.dtype()));
      for (std::size_t r = 0; r < n; ++r) {
        const LocalTensor place = in->narrow(
            0, output.numel() * static_cast<std::int64_t>(r), output.numel());
        SP_CHECK(op.memory().copy(terms[r], place.reshaped(output.sizes())));
      }
    }
    SP_ASSIGN(const LocalTensor out, op.landing(output));
    SP_CHECK(op.checked(
        api.reduce_scatter(in->data(), out.data(), count_of(out),
                           *reduced_type(out.dtype()), *reduce_op(call.op),
                           op.group().comm, op.hub().queue().stream()),
        "ncclReduceScatter"));
  }
  return {};
}

Result<void> all_gather(NcclOp& op) {
  const NcclApi& api = op.hub().api();
  const CollectiveCall& call = op.call();
  const auto n = static_cast<std::size_t>(op.size());
  for (std::size_t t = 0; t < call.inputs.size(); ++t) {
    if (call.inputs[t].numel() == 0) continue;
    SP_ASSIGN(const LocalTensor in, op.packed(call.inputs[t]));
    const std::span<const LocalTensor> outs(&call.outputs[t * n], n);
    std::optional<LocalTensor> out = collective::one_stretch(outs);
    if (!out) {
      SP_ASSIGN(out, op.stage_memory({in.numel() * op.size()}, in.dtype()));
      for (std::size_t r = 0; r < n; ++r) {
        const LocalTensor place = out->narrow(
            0, in.numel() * static_cast<std::int64_t>(r), in.numel());
        op.unpack(place.reshaped(outs[r].sizes()), outs[r]);
      }
    }
    SP_CHECK(op.checked(
        api.all_gather(in.data(), out->data(),
                       static_cast<std::size_t>(in.bytes()), kNcclUint8,
                       op.group().comm, op.hub().queue().stream()),
        "ncclAllGather"));
  }
  return {};
}

Result<void> broadcast(NcclOp& op) {
  const NcclApi& api = op.hub().api();
  const CollectiveCall& call = op.call();
  for (std::size_t t = 0; t < call.outputs.size(); ++t) {
    SP_ASSIGN(const LocalTensor out, op.landing(call.outputs[t]));
    if (out.numel() == 0) continue;
    LocalTensor in = out;
    if (!call.inputs.empty()) {
      SP_ASSIGN(in, op.packed(call.inputs[t]));
    }
    SP_CHECK(
        op.checked(api.broadcast(in.data(), out.data(),
                                 static_cast<std::size_t>(out.bytes()),
                                 kNcclUint8, static_cast<int>(call.root),
                                 op.group().comm, op.hub().queue().stream()),
                   "ncclBroadcast"));
  }
  return {};
}

}  // namespace

Result<void> post(NcclOp& op) {
  const CollectiveCall& call = op.call();
  return op.begin([&](collective::StagedOp& staged) -> Result<void> {
    switch (call.kind) {
      case CollectiveKind::kAllReduce:
        if (all_native(call)) return all_reduce(op);
        break;
      case CollectiveKind::kReduceScatter:
        if (all_native(call) && all_even(op, call.inputs))
          return reduce_scatter(op);
        break;
      case CollectiveKind::kAllGather:
        if (all_even(op, call.outputs)) return all_gather(op);
        break;
      case CollectiveKind::kBroadcast:
        return broadcast(op);
      default:
        break;
    }
    return collective::post_directly(staged);
  });
}

}  // namespace shardprop::nccl
