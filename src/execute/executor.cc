#include <shardprop/execute/executor.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "collective/device_queue.h"
#include "collective/never_free.h"
#include "execute/local_ops.h"
#include "execute/program_body.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using execute::MoveStep;
using execute::PeerCopies;
using execute::RegionCopy;

// Counts bytes allocated and not yet freed. It outlives the run if an engine
// still holds buffers.
struct Meter {
  std::atomic<std::int64_t> live{0};
  std::int64_t most = 0;
  std::int64_t count = 0;
};

// `QueuedMemory` keeps the memory that queued work of a run may touch until the
// run has waited for this work. A run that ends earlier, with an error or an
// exception, would return the memory to its owner under the work.
class QueuedMemory {
 public:
  // Waits at most `patience` in settle().
  QueuedMemory(MemoryOps& memory, std::chrono::milliseconds patience)
      : memory_(memory),
        patience_(patience),
        kept_(std::make_unique<std::vector<LocalTensor>>()) {}
  ~QueuedMemory() { settle(); }
  QueuedMemory(const QueuedMemory&) = delete;
  QueuedMemory& operator=(const QueuedMemory&) = delete;

  // Must be called before work on the tensors is queued. Work of the host is
  // complete at once.
  void keep(const LocalTensor& from, const LocalTensor& to) {
    if (memory_.stream() == nullptr) return;
    kept_->reserve(kept_->size() + 2);
    kept_->push_back(from);
    kept_->push_back(to);
  }
  // The work is done.
  void release() { kept_->clear(); }

  // Waits for the work. If it does not end, the memory is never freed. Returns
  // the bytes of this memory.
  std::int64_t settle() noexcept {
    if (kept_ == nullptr || kept_->empty()) return 0;
    if (has_ended()) {
      release();
      return 0;
    }
    std::int64_t bytes = 0;
    for (const LocalTensor& tensor : *kept_) bytes += tensor.bytes();
    collective::never_free(std::move(kept_));
    return bytes;
  }

 private:
  bool has_ended() const noexcept {
    try {
      return collective::drains(memory_, patience_);
    } catch (const std::exception&) {
      return false;
    }
  }

  MemoryOps& memory_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<std::vector<LocalTensor>> kept_;
};

class Run {
 public:
  Run(const RedistributeProgram& program, Communicator& communicator,
      const LocalTensor& source, const RunOptions& options, RunReport* report)
      : program_(program.body()),
        communicator_(communicator),
        memory_(communicator.memory_ops()),
        source_(source),
        options_(options),
        report_(report),
        queued_(memory_, communicator.timeout() / 4) {}

  // Returns once no queued work touches memory of the run.
  Result<LocalTensor> operator()() {
    Result<LocalTensor> made = guarded([&] { return run_steps(); });
    if (made) return made;
    const std::int64_t bytes = queued_.settle();
    if (bytes == 0) return made;
    return fail(Error(std::move(made).error())
                    .with_note(std::to_string(bytes) +
                               " bytes stay allocated, since the device has "
                               "not ended its work on them"));
  }

 private:
  Result<LocalTensor> run_steps() {
    if (program_.source_shape) SP_CHECK(check_source());
    if (report_ != nullptr) {
      *report_ = {};
      meter_ = std::make_shared<Meter>();
    }
    LocalTensor at = source_;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      if (options_.before_step) options_.before_step(i);
      const std::int64_t before = payload();
      if (program_.steps[i].takes_part) {
        SP_ASSIGN(at, run_step(program_.steps[i], at,
                               i + 1 == program_.steps.size()));
      }
      if (report_ != nullptr) {
        report_->step_payload_bytes.push_back(payload() - before);
      }
    }
    if (report_ != nullptr) {
      report_->allocations = meter_->count;
      report_->peak_bytes =
          meter_->most + (program_.source_shape ? source_.bytes() : 0);
    }
    return at;
  }

  Result<void> check_source() const {
    if (source_.sizes() == *program_.source_shape &&
        source_.dtype() == program_.dtype) {
      return {};
    }
    return fail(ErrorCode::kLocalTensor,
                "rank " + std::to_string(program_.rank) + " gives " +
                    to_string(source_) + " where its layout says " +
                    to_string(LocalTensor::wrap(nullptr, *program_.source_shape,
                                                program_.dtype)),
                "give the shard of the plan's source, without padding");
  }

  std::int64_t payload() const {
    return report_ != nullptr ? communicator_.stats().payload_bytes : 0;
  }

  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) {
    SP_ASSIGN(LocalTensor made, options_.allocate
                                    ? options_.allocate(sizes, dtype)
                                    : communicator_.allocate(sizes, dtype));
    if (!meter_) return made;
    const std::int64_t bytes = made.bytes();
    meter_->most = std::max(meter_->most, meter_->live += bytes);
    ++meter_->count;
    std::shared_ptr<void> counted(
        made.data(), [meter = meter_, owner = made.owner(), bytes](void*) {
          meter->live -= bytes;
        });
    return LocalTensor::wrap(made.data(), made.sizes(), made.strides(),
                             made.dtype(), std::move(counted), made.device());
  }

  Result<LocalTensor> run_step(const MoveStep& step, const LocalTensor& at,
                               bool last) {
    switch (step.kind) {
      case CollectiveKind::kSlice:
        return slice(step, at, last);
      case CollectiveKind::kAllGather:
        return step.staged ? staged_gather(step, at) : gather(step, at);
      case CollectiveKind::kReduceScatter:
        return step.staged ? staged_reduce_scatter(step, at)
                           : reduce_scatter(step, at);
      case CollectiveKind::kAllReduce:
        return all_reduce(step, at);
      default:
        return exchange(step, at);
    }
  }

  // A slice of the source allocates no memory: the result views the source.
  Result<LocalTensor> slice(const MoveStep& step, const LocalTensor& at,
                            bool last) {
    const bool changes = step.neutral || step.scale != 1;
    if (step.slice_start && !changes && !last && at.data() == source_.data()) {
      LocalTensor part = at;
      for (int d = 0; d < part.rank(); ++d) {
        const auto i = index(d);
        part = part.narrow(d, (*step.slice_start)[i], step.shape[i]);
      }
      return part;
    }
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    if (step.neutral) {
      queued_.keep(out, out);
      SP_CHECK(execute::fill_neutral(memory_, out, step.op));
    } else {
      SP_CHECK(run_copies(step.local, at, out, step.scale));
    }
    return finished(out);
  }

  // Returns the result of a step when it is ready. The operands may be freed
  // then, since nothing reads them any more.
  Result<LocalTensor> finished(LocalTensor out) {
    SP_CHECK(memory_.finish());
    queued_.release();
    return out;
  }

  // These queue work on the memory of both tensors.
  Result<void> copy(const LocalTensor& from, const LocalTensor& to,
                    double scale = 1) {
    queued_.keep(from, to);
    return memory_.copy(from, to, scale);
  }
  Result<void> run_copies(const execute::RegionCopies& copies,
                          const LocalTensor& from, const LocalTensor& to,
                          double scale = 1) {
    queued_.keep(from, to);
    return execute::run_copies(memory_, copies, from, to, scale);
  }
  Result<void> scale_in_place(const LocalTensor& tensor, double scale) {
    queued_.keep(tensor, tensor);
    return execute::scale_in_place(memory_, tensor, scale);
  }

  CollectiveCall call_of(const MoveStep& step) const {
    CollectiveCall call;
    call.kind = step.kind;
    call.op = step.op;
    call.padded = step.padded;
    call.where = step.where;
    return call;
  }

  Result<void> carry_out(const MoveStep& step, CollectiveCall call) {
    SP_CHECK(communicator_.run(*step.group, std::move(call)));
    // The collective was queued behind the work on its operands.
    queued_.release();
    return {};
  }

  // Returns the box of the tensor that a message is, or an empty tensor.
  static LocalTensor box_from(const LocalTensor& tensor,
                              const PeerCopies& peer) {
    return peer.copies.empty()
               ? nothing(tensor)
               : execute::from_view(tensor, peer.copies.front());
  }
  static LocalTensor box_to(const LocalTensor& tensor, const PeerCopies& peer) {
    return peer.copies.empty() ? nothing(tensor)
                               : execute::to_view(tensor, peer.copies.front());
  }
  static LocalTensor nothing(const LocalTensor& like) {
    return LocalTensor::wrap(nullptr, Dims{0}, like.dtype(), nullptr,
                             like.device());
  }

  Result<LocalTensor> gather(const MoveStep& step, const LocalTensor& at) {
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    CollectiveCall call = call_of(step);
    if (step.along) {
      call.inputs = {at.numel() == 0 ? nothing(at) : at};
    } else {
      call.inputs = {box_from(at, step.sends.front())};
    }
    for (const Interval& part : step.parts) {
      call.outputs.push_back(
          part.size() == 0 ? nothing(out)
                           : out.narrow(*step.along, part.begin, part.size()));
    }
    for (const PeerCopies& peer : step.receives) {
      call.outputs.push_back(box_to(out, peer));
    }
    SP_CHECK(carry_out(step, std::move(call)));
    return out;
  }

  // Allocates a buffer for the chunks of a step. Returns the chunks as slices
  // of it.
  Result<std::vector<LocalTensor>> chunks(const MoveStep& step, DType dtype,
                                          LocalTensor& whole) {
    std::int64_t all = 0;
    for (const std::int64_t size : step.chunks) all += size;
    SP_ASSIGN(whole, allocate(Dims{all}, dtype));
    std::vector<LocalTensor> out;
    std::int64_t offset = 0;
    for (const std::int64_t size : step.chunks) {
      out.push_back(whole.narrow(0, offset, size));
      offset += size;
    }
    return out;
  }

  // Returns the elements in row-major order as one dim, without a copy if the
  // tensor is contiguous.
  Result<LocalTensor> flat(const LocalTensor& tensor) {
    if (tensor.is_contiguous()) return tensor.reshaped(Dims{tensor.numel()});
    SP_ASSIGN(LocalTensor packed, allocate(tensor.sizes(), tensor.dtype()));
    SP_CHECK(copy(tensor, packed));
    return packed.reshaped(Dims{packed.numel()});
  }

  Result<LocalTensor> staged_gather(const MoveStep& step,
                                    const LocalTensor& at) {
    LocalTensor buffer;
    {
      CollectiveCall call = call_of(step);
      SP_ASSIGN(LocalTensor sent, flat(at));
      call.inputs = {std::move(sent)};
      SP_ASSIGN(call.outputs, chunks(step, at.dtype(), buffer));
      SP_CHECK(carry_out(step, std::move(call)));
    }
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    SP_CHECK(run_copies(step.local, buffer, out));
    return finished(out);
  }

  Result<LocalTensor> reduce_scatter(const MoveStep& step,
                                     const LocalTensor& at) {
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    CollectiveCall call = call_of(step);
    for (const PeerCopies& peer : step.sends) {
      call.inputs.push_back(box_from(at, peer));
    }
    const auto own = index(step.index);
    call.outputs = {box_to(out, step.sends[own])};
    SP_CHECK(carry_out(step, std::move(call)));
    if (step.scale == 1) return out;
    SP_CHECK(scale_in_place(out, step.scale));
    return finished(out);
  }

  Result<LocalTensor> staged_reduce_scatter(const MoveStep& step,
                                            const LocalTensor& at) {
    const bool casts = step.reduce_dtype != at.dtype();
    LocalTensor buffer;
    CollectiveCall call = call_of(step);
    SP_ASSIGN(call.inputs, chunks(step, step.reduce_dtype, buffer));
    SP_CHECK(run_copies(step.local, at, buffer));
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    const LocalTensor flat_out = out.reshaped(Dims{out.numel()});
    // If the result must still be cast, it is written to this rank's own chunk.
    const LocalTensor result =
        casts ? call.inputs[index(step.index)] : flat_out;
    call.outputs = {result};
    SP_CHECK(carry_out(step, std::move(call)));
    if (casts) {
      SP_CHECK(copy(result, flat_out, step.scale));
    } else if (step.scale != 1) {
      SP_CHECK(scale_in_place(out, step.scale));
    }
    return finished(out);
  }

  Result<LocalTensor> all_reduce(const MoveStep& step, const LocalTensor& at) {
    CollectiveCall call = call_of(step);
    if (step.reduce_dtype != at.dtype()) {
      SP_ASSIGN(const LocalTensor terms,
                allocate(step.shape, step.reduce_dtype));
      SP_CHECK(copy(at, terms));
      call.inputs = {terms};
      call.outputs = {terms};
      SP_CHECK(carry_out(step, std::move(call)));
      SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
      SP_CHECK(copy(terms, out, step.scale));
      return finished(out);
    }
    SP_ASSIGN(LocalTensor out, allocate(step.shape, at.dtype()));
    call.inputs = {at};
    call.outputs = {out};
    SP_CHECK(carry_out(step, std::move(call)));
    if (step.scale == 1) return out;
    SP_CHECK(scale_in_place(out, step.scale));
    return finished(out);
  }

  // Runs messages among the ranks of a group, or between meshes.
  Result<LocalTensor> exchange(const MoveStep& step, const LocalTensor& at) {
    LocalTensor out;
    if (step.kind != CollectiveKind::kSendRecv || program_.result_shape) {
      SP_ASSIGN(out, allocate(step.shape, program_.dtype));
    }
    if (step.group) {
      CollectiveCall call = call_of(step);
      for (const PeerCopies& peer : step.sends) {
        Message& message = call.sends.emplace_back(Message{peer.peer, {}});
        for (const RegionCopy& copy : peer.copies) {
          message.pieces.push_back(execute::from_view(at, copy));
        }
      }
      for (const PeerCopies& peer : step.receives) {
        Message& message = call.receives.emplace_back(Message{peer.peer, {}});
        for (const RegionCopy& copy : peer.copies) {
          message.pieces.push_back(execute::to_view(out, copy));
        }
      }
      SP_CHECK(carry_out(step, std::move(call)));
    }
    SP_CHECK(run_copies(step.local, at, out));
    return finished(out);
  }

  const RedistributeProgram::Body& program_;
  Communicator& communicator_;
  MemoryOps& memory_;
  const LocalTensor& source_;
  const RunOptions& options_;
  RunReport* report_;
  std::shared_ptr<Meter> meter_;
  QueuedMemory queued_;
};

}  // namespace

Result<LocalTensor> run(const RedistributeProgram& program,
                        Communicator& communicator, const LocalTensor& source,
                        const RunOptions& options, RunReport* report) {
  if (communicator.rank() != program.rank()) {
    return fail(ErrorCode::kLocalTensor,
                "the program of rank " + std::to_string(program.rank()) +
                    " on the communicator of rank " +
                    std::to_string(communicator.rank()),
                "make a program for each rank");
  }
  return guarded(
      [&] { return Run(program, communicator, source, options, report)(); });
}

}  // namespace shardprop
