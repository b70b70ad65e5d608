// `TorchGraph` is a program of PyTorch operators on the tensors of one rank,
// from which an exported program is written. Every value has its local sizes.
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/ops/argument.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstddef>
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
  }

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
  const OpLibrary& library_;
  std::vector<TorchValue> values_;
  std::vector<TorchCall> calls_;
  std::unordered_map<std::string, std::size_t> taken_;
  mutable std::unordered_map<std::string, std::shared_ptr<const FunctionSchema>>
      functions_;
  std::size_t node_ = 0;
  std::optional<std::size_t> copy_;
};

// Returns the meta of a contiguous tensor of these sizes.
TensorMeta dense(Dims shape, DType dtype);

}  // namespace shardprop::emit
