// `TorchGraph` is a program of PyTorch operators on the tensors of one rank,
// from which an exported program is written. Every value has its local sizes.
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/ops/argument.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop::emit {

using TorchId = StrongId<struct TorchValueTag>;

struct TorchValue {
  std::string name;  // an identifier of Python
  TensorMeta meta;
};

// Tensors are given by id; an invalid id is None.
using TorchArgument = std::variant<Argument, TorchId, std::vector<TorchId>>;
using TorchArguments = std::vector<std::pair<std::string, TorchArgument>>;

struct TorchCall {
  std::shared_ptr<const FunctionSchema> function;
  TorchArguments args;
  std::vector<TorchId> outputs;  // one per tensor returned, or invalid
  // The node of the program for which the call runs, and the copy that it
  // produces, as indices.
  std::size_t node = 0;
  std::optional<std::size_t> copy;
};

class TorchGraph {
 public:
  explicit TorchGraph(const OpLibrary& library);

  // Sets the node and the copy to which the next calls belong.
  void stand_at(std::size_t node, std::optional<std::size_t> copy) {
    node_ = node;
    copy_ = copy;
    queue_.reset();
  }

  // Calls of an overlapped step. The program runs those up to the first transfer
  // at once, and the calls that need its result when it waits:
  //
  //   stand_at_overlapped(0, 3, 3)   stand_at(0, {})    finish_queue(3)
  //   all_gather_into_tensor         relu               wait_tensor
  //
  // The steps of one queue run one after another (transfer_queues.h).
  void stand_at_overlapped(std::size_t node, std::size_t copy,
                           std::size_t queue);
  // Notes that the last call started a transfer.
  void note_started();
  // Adds the calls of a queue that need its first transfer that is not finished,
  // up to the start of the next transfer.
  void continue_queue(std::size_t queue);
  // Adds the remaining calls of a queue.
  void finish_queue(std::size_t queue);

  // Adds a value under this name, or a similar name if the name is in use.
  TorchId value(std::string_view name, TensorMeta meta);
  void call(std::string_view op, TorchArguments args,
            std::vector<TorchId> outputs);
  // Adds an operator that returns one tensor, of this meta or of the inferred
  // one.
  TorchId op(std::string_view op, TorchArguments args, TensorMeta meta);
  Result<TorchId> op(std::string_view op, TorchArguments args);
  // Returns the metas of the results of a call, by shape inference.
  Result<std::vector<std::optional<TensorMeta>>> infer(
      std::string_view op, const TorchArguments& args) const;

  const TorchValue& operator[](TorchId id) const { return values_[id.index()]; }
  const TensorMeta& meta(TorchId id) const { return values_[id.index()].meta; }
  const Dims& shape(TorchId id) const { return meta(id).shape(); }
  DType dtype(TorchId id) const { return meta(id).dtype(); }

  const std::vector<TorchValue>& values() const { return values_; }
  const std::vector<TorchCall>& calls() const { return calls_; }
  // Null if no operator of that name is declared.
  std::shared_ptr<const FunctionSchema> find(std::string_view op) const;

 private:
  void add_first(std::deque<std::vector<TorchCall>>& lists);

  const OpLibrary& library_;
  std::vector<TorchValue> values_;
  std::vector<TorchCall> calls_;
  std::unordered_map<std::string, std::size_t> taken_;
  mutable std::unordered_map<std::string, std::shared_ptr<const FunctionSchema>>
      functions_;
  std::size_t node_ = 0;
  std::optional<std::size_t> copy_;
  std::optional<std::size_t> queue_;
  // Calls that need the result of a transfer, by queue. Each list ends with the
  // start of the next transfer, and the last list with the queue.
  std::map<std::size_t, std::deque<std::vector<TorchCall>>> waiting_;
};

// Returns the meta of a contiguous tensor of these sizes.
TensorMeta dense(Dims shape, DType dtype);

}  // namespace shardprop::emit
