#include "collective/thread_tasks.h"

#include <shardprop/base/error.h>

#include "base/index.h"
#include "base/try.h"
#include "collective/bulk_copy.h"
#include "collective/call_check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardprop::collective {
namespace {

// A block of every input and the result stay in the second-level cache.
constexpr std::int64_t kBlockBytes = 64 << 10;

using Calls = std::span<const CollectiveCall>;

// `Task` is one task of one collective.
class Task {
 public:
  Task(Calls calls, std::size_t task, MemoryOps& memory, bool bulk)
      : calls_(calls),
        n_(calls.size()),
        me_(task),
        memory_(memory),
        on_host_(memory.device().type == DeviceType::kHost),
        bulk_(bulk) {}

  Result<void> run() const {
    switch (calls_[0].kind) {
      case CollectiveKind::kAllGather:
        return gather();
      case CollectiveKind::kReduceScatter:
        return reduce_scatter();
      case CollectiveKind::kAllReduce:
        for (std::size_t t = 0; t < calls_[0].inputs.size(); ++t) {
          SP_CHECK(all_reduce(t));
        }
        return {};
      case CollectiveKind::kBroadcast:
        return broadcast();
      case CollectiveKind::kAllToAll:
      case CollectiveKind::kPermute:
      case CollectiveKind::kSendRecv:
        return exchange();
      case CollectiveKind::kSlice:
        break;
    }
    throw InternalError("a slice has no tasks");
  }

 private:
  Result<void> copy_piece(const LocalTensor& from,
                          const LocalTensor& to) const {
    if (from.numel() == 0) return {};
    return on_host_ ? copy_part(from, to, bulk_) : memory_.copy(from, to);
  }

  Result<void> gather() const {
    const CollectiveCall& mine = calls_[me_];
    for (std::size_t t = 0; t < mine.inputs.size(); ++t) {
      // Starts at the next member, so that readers spread over the sources.
      for (std::size_t k = 1; k <= n_; ++k) {
        const std::size_t source = (me_ + k) % n_;
        SP_CHECK(copy_piece(calls_[source].inputs[t],
                            mine.outputs[t * n_ + source]));
      }
    }
    return {};
  }

  Result<void> reduce_scatter() const {
    const CollectiveCall& mine = calls_[me_];
    std::vector<LocalTensor> terms(n_);
    for (std::size_t t = 0; t < mine.outputs.size(); ++t) {
      if (mine.outputs[t].numel() == 0) continue;
      for (std::size_t r = 0; r < n_; ++r) {
        terms[r] = calls_[r].inputs[t * n_ + me_];
      }
      SP_CHECK(memory_.reduce(mine.op, terms, mine.outputs[t]));
    }
    return {};
  }

  Result<void> broadcast() const {
    const CollectiveCall& mine = calls_[me_];
    const CollectiveCall& root = calls_[index(mine.root)];
    for (std::size_t t = 0; t < mine.outputs.size(); ++t) {
      SP_CHECK(copy_piece(root.inputs[t], mine.outputs[t]));
    }
    return {};
  }

  Result<void> exchange() const {
    for (const Message& message : calls_[me_].receives) {
      const CollectiveCall& peer = calls_[index(message.peer)];
      const Message* sent =
          find_message(peer.sends, static_cast<std::int64_t>(me_));
      for (std::size_t i = 0; i < message.pieces.size(); ++i) {
        SP_CHECK(copy_piece(sent->pieces[i], message.pieces[i]));
      }
    }
    return {};
  }

  // Returns a view without an owner, because threads that share an owner count
  // slow each other down. If all tensors are contiguous, the view is flat, so
  // that the parts are equal for any shape.
  static LocalTensor plain(const LocalTensor& tensor, bool flat) {
    if (flat) {
      return LocalTensor::wrap(tensor.data(), {tensor.numel()}, tensor.dtype(),
                               nullptr, tensor.device());
    }
    return LocalTensor::wrap(tensor.data(), tensor.sizes(), tensor.strides(),
                             tensor.dtype(), nullptr, tensor.device());
  }

  Result<void> all_reduce(std::size_t t) const {
    const LocalTensor& like = calls_[0].inputs[t];
    if (like.numel() == 0) return {};
    const bool flat =
        like.rank() == 0 ||
        std::all_of(calls_.begin(), calls_.end(), [t](const auto& call) {
          return call.inputs[t].is_contiguous() &&
                 call.outputs[t].is_contiguous();
        });
    std::vector<LocalTensor> ins;
    std::vector<LocalTensor> outs;
    for (const CollectiveCall& call : calls_) {
      ins.push_back(plain(call.inputs[t], flat));
      outs.push_back(plain(call.outputs[t], flat));
    }
    const Dims& sizes = ins[0].sizes();
    const auto dim = static_cast<int>(
        std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    const std::int64_t length = ins[0].size(dim);
    const auto n = static_cast<std::int64_t>(n_);
    const auto part = static_cast<std::int64_t>(me_);
    const std::int64_t end = length * (part + 1) / n;
    const std::int64_t row = like.bytes() / length;
    const std::int64_t step =
        on_host_ ? std::max<std::int64_t>(1, kBlockBytes / row) : length;
    LocalTensor block;
    if (on_host_) {
      SP_ASSIGN(block, block_for(ins[0], dim, step));
    }
    std::vector<LocalTensor> terms(n_);
    for (std::int64_t i = length * part / n; i < end; i += step) {
      const std::int64_t count = std::min(step, end - i);
      for (std::size_t r = 0; r < n_; ++r) {
        terms[r] = ins[r].narrow(dim, i, count);
      }
      const LocalTensor sum = on_host_ ? block.narrow(dim, 0, count)
                                       : outs[me_].narrow(dim, i, count);
      SP_CHECK(memory_.reduce(calls_[0].op, terms, sum));
      for (const LocalTensor& out : outs) {
        SP_CHECK(copy_piece(sum, out.narrow(dim, i, count)));
      }
    }
    return {};
  }

  // Returns the block in which terms are reduced before they are written to
  // every output.
  static Result<LocalTensor> block_for(const LocalTensor& like, int dim,
                                       std::int64_t step) {
    Dims sizes = like.sizes();
    auto& length = sizes[index(dim)];
    length = std::min(length, step);
    return LocalTensor::empty(std::move(sizes), like.dtype());
  }

  Calls calls_;
  std::size_t n_;
  std::size_t me_;
  MemoryOps& memory_;
  bool on_host_;
  bool bulk_;
};

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

Result<void> run_task(Calls calls, std::size_t task, MemoryOps& memory,
                      bool bulk) {
  return Task(calls, task, memory, bulk).run();
}

}  // namespace shardprop::collective
