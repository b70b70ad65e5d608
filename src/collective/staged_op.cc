#include "collective/staged_op.h"

#include "base/guard.h"
#include "base/try.h"
#include "collective/never_free.h"

#include <memory>

namespace shardprop::collective {

Result<void> StagedOp::begin(const Stage& stage) {
  SP_CHECK(open_posts());
  // Without this, an open group of posts would include all later calls of this
  // thread.
  struct DiscardUnlessClosed {
    StagedOp* op;
    ~DiscardUnlessClosed() {
      if (op != nullptr) op->discard_posts();
    }
  } posts{this};
  SP_CHECK(guarded([&] { return stage(*this); }));
  posts.op = nullptr;
  return close_posts();
}

Result<LocalTensor> StagedOp::stage_memory(const Dims& sizes, DType dtype) {
  SP_ASSIGN(LocalTensor memory, memory_.allocate(sizes, dtype));
  staging_.push_back(memory);
  return memory;
}

Result<LocalTensor> StagedOp::packed(const LocalTensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  SP_ASSIGN(LocalTensor out, stage_memory(tensor.sizes(), tensor.dtype()));
  SP_CHECK(memory_.copy(tensor, out));
  return out;
}

Result<LocalTensor> StagedOp::landing(const LocalTensor& output) {
  if (output.is_contiguous()) return output;
  SP_ASSIGN(LocalTensor out, stage_memory(output.sizes(), output.dtype()));
  unpack(out, output);
  return out;
}

void StagedOp::advance() {
  while (!over_) {
    Result<bool> done = through();
    if (done && !*done) return;
    Result<void> next;
    if (!done) {
      next = fail(std::move(done).error());
    } else if (!stages_.empty()) {
      const Stage stage = std::move(stages_.front());
      stages_.pop_front();
      ++stage_;
      next = begin(stage);
    } else if (!unpack_.empty()) {
      const auto unpack = std::move(unpack_);
      unpack_.clear();
      for (const auto& [from, to] : unpack) {
        next = memory_.copy(from, to);
        if (!next) break;
      }
    } else {
      over_ = true;
    }
    if (!next) {
      error_ = std::move(next).error();
      over_ = true;
    }
  }
  if (!busy()) release();
}

void StagedOp::release() {
  call_.inputs.clear();
  call_.outputs.clear();
  call_.sends.clear();
  call_.receives.clear();
  stages_.clear();
  staging_.clear();
  kept_.clear();
  unpack_.clear();
}

std::int64_t StagedOp::abandon(const Error& error) {
  if (!error_) error_ = error;
  over_ = true;
  std::int64_t bytes = 0;
  if (busy()) {
    std::vector<LocalTensor> held = std::move(staging_);
    held.insert(held.end(), call_.inputs.begin(), call_.inputs.end());
    held.insert(held.end(), call_.outputs.begin(), call_.outputs.end());
    for (const auto* messages : {&call_.sends, &call_.receives}) {
      for (const Message& message : *messages) {
        held.insert(held.end(), message.pieces.begin(), message.pieces.end());
      }
    }
    for (const LocalTensor& tensor : held) bytes += tensor.bytes();
    // Messages in flight cannot be recalled.
    never_free(std::make_unique<std::vector<LocalTensor>>(std::move(held)));
    if (!kept_.empty()) {
      never_free(std::make_unique<std::vector<std::shared_ptr<const void>>>(
          std::move(kept_)));
    }
  }
  forget();
  release();
  return bytes;
}

std::string StagedOp::describe() const {
  return "call " + std::to_string(number_) + " of group " + to_string(ranks_) +
         ", " + to_string(call_);
}

}  // namespace shardprop::collective
