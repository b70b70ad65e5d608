#include "collective/thread_tasks.h"

#include <shardprop/base/error.h>
#include <shardprop/collective/kernel_view.h>

#include "base/try.h"
#include "collective/call_check.h"
#include "collective/reduction.h"

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop::collective {
namespace {

// A block of every input and the result stay in the second-level cache.
constexpr std::int64_t kBlockBytes = 64 << 10;

using Calls = std::span<const CollectiveCall>;

Result<void> copy_piece(const LocalTensor& from, const LocalTensor& to) {
  if (from.numel() == 0) return {};
  return copy(from, to);
}

Result<void> reduce_piece(ReduceOp op, std::span<const LocalTensor> terms,
                          const LocalTensor& out) {
  const kernels::Status status = reduce_terms(op, terms, out);
  if (status.ok()) return {};
  return fail(ErrorCode::kEngine, status.message());
}

Result<void> gather(Calls calls, std::size_t me) {
  const std::size_t n = calls.size();
  const CollectiveCall& mine = calls[me];
  for (std::size_t t = 0; t < mine.inputs.size(); ++t) {
    // From the next member on, so that readers spread over sources.
    for (std::size_t k = 1; k <= n; ++k) {
      const std::size_t source = (me + k) % n;
      SP_CHECK(
          copy_piece(calls[source].inputs[t], mine.outputs[t * n + source]));
    }
  }
  return {};
}

Result<void> reduce_scatter(Calls calls, std::size_t me) {
  const std::size_t n = calls.size();
  const CollectiveCall& mine = calls[me];
  std::vector<LocalTensor> terms(n);
  for (std::size_t t = 0; t < mine.outputs.size(); ++t) {
    if (mine.outputs[t].numel() == 0) continue;
    for (std::size_t r = 0; r < n; ++r) terms[r] = calls[r].inputs[t * n + me];
    SP_CHECK(reduce_piece(mine.op, terms, mine.outputs[t]));
  }
  return {};
}

Result<void> broadcast(Calls calls, std::size_t me) {
  const CollectiveCall& mine = calls[me];
  const CollectiveCall& root = calls[static_cast<std::size_t>(mine.root)];
  for (std::size_t t = 0; t < mine.outputs.size(); ++t) {
    SP_CHECK(copy_piece(root.inputs[t], mine.outputs[t]));
  }
  return {};
}

Result<void> exchange(Calls calls, std::size_t me) {
  for (const Message& message : calls[me].receives) {
    const CollectiveCall& peer = calls[static_cast<std::size_t>(message.peer)];
    const Message* sent =
        find_message(peer.sends, static_cast<std::int64_t>(me));
    for (std::size_t i = 0; i < message.pieces.size(); ++i) {
      SP_CHECK(copy_piece(sent->pieces[i], message.pieces[i]));
    }
  }
  return {};
}

// Views without owners: threads that share a counter of owners slow each other.
LocalTensor unowned(const LocalTensor& tensor) {
  return LocalTensor::wrap(tensor.data(), tensor.sizes(), tensor.strides(),
                           tensor.dtype());
}

LocalTensor flat(const LocalTensor& tensor) {
  return LocalTensor::wrap(tensor.data(), {tensor.numel()}, tensor.dtype());
}

Result<void> all_reduce(Calls calls, std::size_t t, std::size_t part) {
  const LocalTensor& like = calls[0].inputs[t];
  if (like.numel() == 0) return {};
  const bool contiguous =
      std::all_of(calls.begin(), calls.end(), [t](const CollectiveCall& call) {
        return call.inputs[t].is_contiguous() &&
               call.outputs[t].is_contiguous();
      });
  std::vector<LocalTensor> ins;
  std::vector<LocalTensor> outs;
  for (const CollectiveCall& call : calls) {
    ins.push_back(contiguous ? flat(call.inputs[t]) : unowned(call.inputs[t]));
    outs.push_back(contiguous ? flat(call.outputs[t])
                              : unowned(call.outputs[t]));
  }
  const Dims& sizes = ins[0].sizes();
  if (sizes.empty()) {
    if (part != 0) return {};
    SP_CHECK(reduce_piece(calls[0].op, ins, outs[0]));
    for (std::size_t r = 1; r < outs.size(); ++r) {
      SP_CHECK(copy_piece(outs[0], outs[r]));
    }
    return {};
  }
  const auto dim = static_cast<int>(
      std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
  const std::int64_t length = ins[0].size(dim);
  const auto n = static_cast<std::int64_t>(calls.size());
  const auto at = static_cast<std::int64_t>(part);
  const std::int64_t begin = length * at / n;
  const std::int64_t end = length * (at + 1) / n;
  const std::int64_t row = like.bytes() / length;
  const std::int64_t step = std::max<std::int64_t>(1, kBlockBytes / row);
  std::vector<LocalTensor> terms(calls.size());
  for (std::int64_t i = begin; i < end; i += step) {
    const std::int64_t count = std::min(step, end - i);
    for (std::size_t r = 0; r < calls.size(); ++r) {
      terms[r] = ins[r].narrow(dim, i, count);
    }
    const LocalTensor first = outs[0].narrow(dim, i, count);
    SP_CHECK(reduce_piece(calls[0].op, terms, first));
    for (std::size_t r = 1; r < calls.size(); ++r) {
      SP_CHECK(copy_piece(first, outs[r].narrow(dim, i, count)));
    }
  }
  return {};
}

}  // namespace

std::int64_t task_bytes(Calls calls) {
  std::int64_t bytes = 0;
  for (const CollectiveCall& call : calls) {
    for (const LocalTensor& output : call.outputs) bytes += output.bytes();
    for (const Message& message : call.receives) {
      for (const LocalTensor& piece : message.pieces) bytes += piece.bytes();
    }
    if (call.kind == CollectiveKind::kReduceScatter ||
        call.kind == CollectiveKind::kAllReduce) {
      for (const LocalTensor& input : call.inputs) bytes += input.bytes();
    }
  }
  return bytes;
}

Result<void> run_task(Calls calls, std::size_t task) {
  switch (calls[0].kind) {
    case CollectiveKind::kAllGather:
      return gather(calls, task);
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(calls, task);
    case CollectiveKind::kAllReduce:
      for (std::size_t t = 0; t < calls[0].inputs.size(); ++t) {
        SP_CHECK(all_reduce(calls, t, task));
      }
      return {};
    case CollectiveKind::kBroadcast:
      return broadcast(calls, task);
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kPermute:
    case CollectiveKind::kSendRecv:
      return exchange(calls, task);
    case CollectiveKind::kSlice:
      break;
  }
  throw InternalError("a slice has no tasks");
}

}  // namespace shardprop::collective
