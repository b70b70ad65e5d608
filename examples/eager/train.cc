// Trains two linear layers with attention between them for a few steps, on four
// ranks that are threads, with the batch sharded over one mesh dim and the
// weights over the other; and again on one rank. Both must end with the same
// weights.
//
//   h = x W1                       tokens x hidden
//   p = softmax(h h^T / sqrt(d))   by sequence
//   y = (p h) W2
//   loss = sum (y - t)^2           its gradients by hand
#include "tensor.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/mesh/topology.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using eager::Rank;
using eager::Tensor;
using eager::Value;
using shardprop::Argument;
using shardprop::Result;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSequence = 6;
constexpr std::int64_t kIn = 8;
constexpr std::int64_t kHidden = 12;
constexpr std::int64_t kOut = 5;
constexpr int kSteps = 4;

using Ints = std::vector<std::int64_t>;

// Throws where an operator fails: a rank that throws fails the others.
class Model {
 public:
  Model(Rank& rank, const std::vector<std::string>& layouts) : rank_(rank) {
    const auto tokens = std::to_string(kBatch * kSequence);
    x_ = tensor("f32[" + tokens + ",8] " + layouts[0], 0.37, 1);
    target_ = tensor("f32[" + tokens + ",5] " + layouts[0], 0.73, 1);
    w1_ = tensor("f32[8,12] " + layouts[1], 0.91, 0.4);
    w2_ = tensor("f32[12,5] " + layouts[2], 0.53, 0.4);
  }

  void step() {
    // Forward.
    const Tensor h = call("mm.default", {x_, w1_});
    const Tensor h3 = view(h, {kBatch, kSequence, kHidden});
    const Tensor h3t = transpose(h3);
    const double scale = 1 / std::sqrt(static_cast<double>(kHidden));
    const Tensor scores =
        call("mul.Tensor", {call("bmm.default", {h3, h3t}), Argument(scale)});
    const Tensor p = softmax(scores);
    const Tensor a =
        view(call("bmm.default", {p, h3}), {kBatch * kSequence, kHidden});
    const Tensor y = call("mm.default", {a, w2_});
    // Backward.
    const Tensor dy =
        call("mul.Tensor", {call("sub.Tensor", {y, target_}), Argument(2.0)});
    const Tensor dw2 = call("mm.default", {transpose(a), dy});
    const Tensor da = view(call("mm.default", {dy, transpose(w2_)}),
                           {kBatch, kSequence, kHidden});
    const Tensor dp = call("bmm.default", {da, h3t});
    const Tensor ds = call(
        "mul.Tensor",
        {call("mul.Tensor",
              {p, call("sub.Tensor", {dp, sum(call("mul.Tensor", {dp, p}))})}),
         Argument(scale)});
    Tensor dh = call("bmm.default", {transpose(p), da});
    dh = call("add.Tensor", {dh, call("bmm.default", {ds, h3})});
    dh = call("add.Tensor", {dh, call("bmm.default", {transpose(ds), h3})});
    const Tensor dw1 = call(
        "mm.default", {transpose(x_), view(dh, {kBatch * kSequence, kHidden})});
    // The weights stay as they are laid out: gradients come to them.
    w1_ = update(w1_, dw1);
    w2_ = update(w2_, dw2);
  }

  std::vector<float> weights() {
    std::vector<float> all = rank_.whole(w1_).value();
    const std::vector<float> second = rank_.whole(w2_).value();
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }

 private:
  Tensor tensor(const std::string& spec, double rate, double size) {
    return rank_
        .make(spec,
              [&](std::int64_t i) {
                return size * std::sin(rate * static_cast<double>(i + 1));
              })
        .value();
  }
  Tensor call(const std::string& op, const std::vector<Value>& arguments) {
    return rank_.call("aten." + op, arguments).value();
  }
  Tensor view(const Tensor& a, const Ints& sizes) {
    return call("view.default", {a, Argument(sizes)});
  }
  Tensor transpose(const Tensor& a) {
    const std::int64_t rank = a.spec.meta().rank();
    return call("transpose.int", {a, Argument(rank - 2), Argument(rank - 1)});
  }
  Tensor sum(const Tensor& a) {
    return call("sum.dim_IntList", {a, Argument(Ints{-1}), Argument(true)});
  }
  Tensor softmax(const Tensor& a) {
    const Tensor most =
        call("amax.default", {a, Argument(Ints{-1}), Argument(true)});
    const Tensor e = call("exp.default", {call("sub.Tensor", {a, most})});
    return call("div.Tensor", {e, sum(e)});
  }
  Tensor update(const Tensor& w, const Tensor& gradient) {
    return call("sub_.Tensor",
                {w, call("mul.Tensor", {gradient, Argument(0.01)})});
  }

  Rank& rank_;
  Tensor x_, target_, w1_, w2_;
};

struct Trained {
  std::vector<float> weights;
  std::int64_t moves = 0;
};

Result<Trained> train(const std::string& mesh_text,
                      const std::vector<std::string>& layouts) {
  const auto mesh = shardprop::DeviceMesh::parse(mesh_text);
  if (!mesh) return shardprop::fail(mesh.error());
  shardprop::Topology topology = shardprop::default_topology();
  topology.engine = shardprop::Engine::kThreads;
  auto propagator = shardprop::ShardingPropagator::create(
      *mesh, topology, shardprop::OpLibrary::standard());
  if (!propagator) return shardprop::fail(std::move(propagator).error());
  const auto cache =
      shardprop::CachingPropagator::create(*std::move(propagator));
  if (!cache) return shardprop::fail(cache.error());
  Trained out;
  const auto ends = shardprop::run_ranks(
      mesh->size(), {},
      [&](shardprop::Communicator& communicator) -> Result<void> {
        Rank rank(communicator, *cache);
        Model model(rank, layouts);
        for (int step = 0; step < kSteps; ++step) model.step();
        std::vector<float> weights = model.weights();
        if (communicator.rank() == 0) out = {std::move(weights), rank.moves()};
        return {};
      });
  for (const Result<void>& end : ends) {
    if (!end) return shardprop::fail(end.error());
  }
  const shardprop::CacheStatistics seen = cache->statistics();
  std::printf("%s: %lld moves a rank, %llu calls of which %llu were misses\n",
              mesh_text.c_str(), static_cast<long long>(out.moves),
              static_cast<unsigned long long>(seen.hits + seen.shared_hits +
                                              seen.misses + seen.waits),
              static_cast<unsigned long long>(seen.misses));
  return out;
}

}  // namespace

int main() {
  const auto alone = train("1", {"R", "R", "R"});
  // Data parallel, tensor parallel, and both with weights sharded otherwise.
  const auto both = train("dp=2,tp=2", {"S(0),R", "R,S(1)", "R,S(0)"});
  const auto uneven = train("3", {"S(0)", "S(0)", "S(1)"});
  for (const auto* sharded : {&alone, &both, &uneven}) {
    if (!*sharded) {
      std::fputs(to_string(sharded->error()).c_str(), stderr);
      return 1;
    }
    float largest = 0;
    for (std::size_t i = 0; i < alone->weights.size(); ++i) {
      largest = std::max(largest,
                         std::abs((*sharded)->weights[i] - alone->weights[i]));
    }
    std::printf("largest difference %.1e\n", static_cast<double>(largest));
    if (!(largest < 1e-4F)) return 1;
  }
  return 0;
}
