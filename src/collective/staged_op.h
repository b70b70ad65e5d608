// StagedOp is one rank's part of one collective on an engine that sends
// messages: the posts on their way, the stages to run when those are through,
// and the memory that the engine may touch until then.
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

  // `ranks` and `memory`, in order with the posts, outlive it; `number` counts
  // the calls of the group.
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
  // The operations on this rank's memory, in order with the posts.
  MemoryOps& memory() const { return memory_; }

  // Posts between members. The tensors are contiguous and live until the
  // operation is over. Empty tensors are not sent.
  virtual Result<void> send(std::int64_t peer, const LocalTensor& from) = 0;
  virtual Result<void> receive(std::int64_t peer, const LocalTensor& into) = 0;

  // To be run, in order, when all that was posted before is through.
  void then(Stage stage) { stages_.push_back(std::move(stage)); }
  // Runs the first stage now. An exception of the stage that stands for missing
  // memory becomes an error.
  Result<void> begin(const Stage& stage);

  // Keeps memory of the engine until the operation is over, and for ever if the
  // engine may still touch it then.
  void keep(std::shared_ptr<const void> kept) {
    kept_.push_back(std::move(kept));
  }
  // Memory that lives as long as the operation.
  Result<LocalTensor> stage_memory(const Dims& sizes, DType dtype);
  // The tensor itself, or a contiguous copy of it.
  Result<LocalTensor> packed(const LocalTensor& tensor);
  // Where `output` can be received: itself, or staging that is copied to it in
  // the end.
  Result<LocalTensor> landing(const LocalTensor& output);
  // Copies staging to where it belongs, in the end.
  void unpack(const LocalTensor& from, const LocalTensor& to) {
    unpack_.emplace_back(from, to);
  }

  // Goes as far as it can without waiting.
  void advance();
  bool over() const { return over_; }
  // Precondition: over().
  const std::optional<Error>& error() const { return error_; }
  // Ends it with an error. Bytes that the engine may touch still, which are
  // never freed.
  std::int64_t abandon(const Error& error);

  // "call 5 of group {0,1}, all_reduce(sum) of f32[8]".
  std::string describe() const;

  bool dropped = false;  // nobody will wait for it

 protected:
  // Around the posts of one stage. If the stage fails or throws,
  // discard_posts() takes the place of close_posts().
  virtual Result<void> open_posts() { return {}; }
  virtual Result<void> close_posts() { return {}; }
  virtual void discard_posts() noexcept {}
  // Whether the next stage may run; when none is left, whether all is through.
  virtual Result<bool> through() = 0;
  // Whether the engine may still touch memory of the operation.
  virtual bool busy() const = 0;
  // Forgets the posts on their way, without waiting.
  virtual void forget() = 0;

  int stage() const { return stage_; }
  // Whether through() is asked for the last time.
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
