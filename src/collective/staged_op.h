// `StagedOp` is one rank's part of one collective on an engine that sends
// messages. It has the pending posts, the stages that run when those posts are
// done, and the memory that the engine may access until then.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/group.h>
#include <shardprop/collective/memory_ops.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::collective {

class StagedOp {
 public:
  using Stage = std::function<Result<void>(StagedOp&)>;

  // `ranks` and `memory` must outlive the operation; `memory` is ordered with
  // the posts. `number` counts the calls of the group.
  StagedOp(const Group::Ranks& ranks, std::int64_t index, std::int64_t number,
           CollectiveCall call, MemoryOps& memory)
      : ranks_(ranks),
        index_(index),
        number_(number),
        call_(std::move(call)),
        memory_(memory) {}
  StagedOp(const StagedOp&) = delete;
  StagedOp& operator=(const StagedOp&) = delete;
  virtual ~StagedOp() = default;

  const Group::Ranks& ranks() const { return ranks_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  std::int64_t index() const { return index_; }
  std::int64_t number() const { return number_; }
  const CollectiveCall& call() const { return call_; }
  // The operations on this rank's memory, which are ordered with the posts.
  MemoryOps& memory() const { return memory_; }

  // Posts messages between members. The tensors are contiguous and live until
  // the operation is over. Empty tensors are not sent.
  virtual Result<void> send(std::int64_t peer, const LocalTensor& from) = 0;
  virtual Result<void> receive(std::int64_t peer, const LocalTensor& into) = 0;

  // Adds a stage. Stages run in order, each when all earlier posts are done.
  void then(Stage stage) { stages_.push_back(std::move(stage)); }
  // Runs the first stage now. If the stage throws because memory is exhausted,
  // the exception becomes an error.
  Result<void> begin(const Stage& stage);

  // Keeps memory of the engine until the operation is over. The memory is never
  // freed if the engine may still access it then.
  void keep(std::shared_ptr<const void> kept) {
    kept_.push_back(std::move(kept));
  }
  // Returns memory that lives as long as the operation.
  Result<LocalTensor> stage_memory(const Dims& sizes, DType dtype);
  // Returns the tensor itself, or a contiguous copy of it.
  Result<LocalTensor> packed(const LocalTensor& tensor);
  // Returns memory that can receive `output`: `output` itself, or staging
  // memory that is copied to it at the end.
  Result<LocalTensor> landing(const LocalTensor& output);
  // Copies staging memory to its destination at the end.
  void unpack(const LocalTensor& from, const LocalTensor& to) {
    unpack_.emplace_back(from, to);
  }

  // Advances as far as possible without waiting.
  void advance();
  bool over() const { return over_; }
  // Precondition: over().
  const std::optional<Error>& error() const { return error_; }
  // Ends the operation with an error. Returns the bytes that the engine may
  // still access, which are never freed.
  std::int64_t abandon(const Error& error);

  // "call 5 of group {0,1}, all_reduce(sum) of f32[8]".
  std::string describe() const;

  bool dropped = false;  // nobody will wait for it

 protected:
  // `open_posts` and `close_posts` are called before and after the posts of one
  // stage. If the stage fails or throws, discard_posts() is called instead of
  // close_posts().
  virtual Result<void> open_posts() { return {}; }
  virtual Result<void> close_posts() { return {}; }
  virtual void discard_posts() noexcept {}
  // True if the next stage may run. If no stage remains, true if all posts are
  // done.
  virtual Result<bool> through() = 0;
  // True if the engine may still touch memory of the operation.
  virtual bool busy() const = 0;
  // Drops the pending posts without waiting.
  virtual void forget() = 0;

  int stage() const { return stage_; }
  // True if the next call of through() is the last one.
  bool is_last() const { return stages_.empty() && unpack_.empty(); }

 private:
  void release();

  const Group::Ranks& ranks_;
  std::int64_t index_;
  std::int64_t number_;
  CollectiveCall call_;
  MemoryOps& memory_;
  int stage_ = 0;
  std::deque<Stage> stages_;
  std::vector<LocalTensor> staging_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<std::pair<LocalTensor, LocalTensor>> unpack_;
  bool over_ = false;
  std::optional<Error> error_;
};

}  // namespace shardprop::collective
