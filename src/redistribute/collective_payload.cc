// Computes the bytes that collectives send, and which reductions each engine
// supports.
#include <shardprop/redistribute/collective_cost.h>

namespace shardprop {

std::int64_t collective_bytes_per_rank(CollectiveKind kind, std::int64_t ranks,
                                       std::int64_t bytes) {
  if (ranks <= 1) return 0;
  const auto share = [&](std::int64_t times) {
    return (times * bytes * (ranks - 1) + ranks - 1) / ranks;
  };
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return share(1);
    case CollectiveKind::kAllReduce:
      return share(2);
    case CollectiveKind::kPermute:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendRecv:
      return bytes;
    case CollectiveKind::kSlice:
      return 0;
  }
  throw InternalError("a collective kind outside its enumeration");
}

bool reduces_natively(Engine engine, ReduceOp op, DType dtype) {
  const bool bitwise =
      op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  switch (engine) {
    case Engine::kThreads:
      return true;
    case Engine::kNccl:
      // A sum of complex numbers is a sum of pairs of floats.
      if (is_complex(dtype)) {
        return dtype != DType::kC32 &&
               (op == ReduceOp::kSum || op == ReduceOp::kAvg);
      }
      return !bitwise && dtype != DType::kBool && dtype != DType::kI16 &&
             dtype != DType::kU16 && dtype != DType::kF8E4M3FNUZ &&
             dtype != DType::kF8E5M2FNUZ && dtype != DType::kF8E8M0FNU;
    case Engine::kMpi:
      if (op == ReduceOp::kAvg) return false;
      if (is_floating(dtype)) return item_size(dtype) >= 4 && !bitwise;
      if (is_complex(dtype)) return dtype != DType::kC32;
      return true;
  }
  throw InternalError("an engine outside its enumeration");
}

}  // namespace shardprop
