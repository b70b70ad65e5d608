// A small eager tensor: a spec, and what this rank holds of it. Every operator
// asks the propagator how it runs on its inputs as they are laid out, moves
// those that must be moved, runs on what this rank holds, and wraps the result
// in the spec that comes out.
//
//   Rank rank(communicator, cache);
//   Tensor y = rank.call("aten.mm.default", {x, w}).value();
#pragma once

#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/propagate/caching_propagator.h>

#include <string_view>
#include <variant>
#include <vector>

namespace eager {

struct Tensor {
  shardprop::TensorSpec spec;
  shardprop::LocalTensor local;  // row-major f32
};

// An argument by position.
using Value = std::variant<Tensor, shardprop::Argument>;

class Rank {
 public:
  Rank(shardprop::Communicator& communicator,
       const shardprop::CachingPropagator& cache);

  // This rank's part of a tensor whose element i (row-major) is value(i).
  template <class F>
  shardprop::Result<Tensor> make(std::string_view spec, F&& value);

  // One operator; of those that local_ops.cc can run.
  shardprop::Result<Tensor> call(std::string_view op,
                                 const std::vector<Value>& arguments);
  shardprop::Result<Tensor> redistribute(const Tensor& tensor,
                                         const shardprop::Layout& layout);
  // All elements, on every rank.
  shardprop::Result<std::vector<float>> whole(const Tensor& tensor);

  // Collectives so far: those of moves.
  std::int64_t moves() const { return moves_; }

 private:
  shardprop::Result<Tensor> move(const Tensor& tensor,
                                 const shardprop::RedistributePlan& plan,
                                 const shardprop::TensorSpec& to);
  shardprop::Result<Tensor> cut(const shardprop::TensorSpec& spec,
                                const std::vector<float>& whole);

  shardprop::Communicator& communicator_;
  shardprop::ShardingPropagator propagator_;
  shardprop::CachingPropagator::Reader reader_;
  std::int64_t moves_ = 0;
};

template <class F>
shardprop::Result<Tensor> Rank::make(std::string_view spec, F&& value) {
  auto parsed = shardprop::TensorSpec::parse(spec, propagator_.mesh());
  if (!parsed) return shardprop::fail(std::move(parsed).error());
  std::vector<float> whole(static_cast<std::size_t>(parsed->meta().numel()));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    whole[i] = static_cast<float>(value(static_cast<std::int64_t>(i)));
  }
  return cut(*parsed, whole);
}

// Runs one operator on what a rank holds. `arguments` are the declared ones,
// with those in place that differ on the ranks; what it writes in place is the
// first tensor.
shardprop::Result<shardprop::LocalTensor> run_locally(
    std::string_view op, const std::vector<shardprop::LocalTensor>& tensors,
    const std::vector<shardprop::Argument>& arguments);

}  // namespace eager
