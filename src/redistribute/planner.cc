#include <shardprop/redistribute/planner.h>

#include "base/guard.h"
#include "base/try.h"
#include "redistribute/exchange_bytes.h"
#include "redistribute/move_price.h"
#include "redistribute/planner_body.h"
#include "redistribute/same_tensor.h"
#include "redistribute/search.h"
#include "redistribute/sharding_state.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <utility>

namespace shardprop {

using redistribute::ActiveDims;
using redistribute::Alphabet;
using redistribute::LocalSize;
using redistribute::MovePrice;
using redistribute::MovePricer;
using redistribute::Path;
using redistribute::PathStep;
using redistribute::SearchProblem;

namespace {

Result<void> check_pair(const Layout& src, const Layout& dst) {
  for (int i = 0; i < src.mesh_ndim(); ++i) {
    if (src[i].is_shard() && dst[i].is_partial()) {
      return fail(ErrorCode::kShardToPartial,
                  to_string(src[i]) + " cannot become " + to_string(dst[i]) +
                      " on mesh dim " + std::to_string(i),
                  "ask for R: a shard is a part of the values, not a term");
    }
  }
  return {};
}

Result<void> check_shards(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta) {
  for (int d = 0; d < meta.rank(); ++d) {
    std::int64_t parts = 1;
    for (const std::int32_t mesh_dim : layout.cuts(d)) {
      parts *= mesh.size(mesh_dim);
    }
    if (parts > meta.size(d) && parts > 1) {
      return fail(ErrorCode::kRedistributeMeshTooLarge,
                  "`" + to_string(layout) + "` cuts dim " + std::to_string(d) +
                      " of " + to_string(meta) + " into " +
                      std::to_string(parts) +
                      " parts, more than it has elements",
                  "shard it over fewer ranks, or allow empty shards");
    }
  }
  return {};
}

// Padded to the utmost, a tensor takes its size on every rank; sizes and times
// beyond this would not fit their integers.
Result<void> check_size(const DeviceMesh& mesh, const TensorMeta& meta) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 54;
  if (meta.bytes() > kMostBytes / mesh.size()) {
    return fail(ErrorCode::kRedistributeMeshTooLarge,
                to_string(meta) + " on " + std::to_string(mesh.size()) +
                    " ranks is more than can be planned for",
                "plan for at most 2^54 bytes over all ranks");
  }
  return {};
}

std::int64_t layout_bytes(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta) {
  std::int64_t bytes = item_size(meta.dtype());
  for (const std::int64_t size : max_local_shape(layout, mesh, meta.shape())) {
    bytes *= size;
  }
  return bytes;
}

}  // namespace

RedistributePlanner::RedistributePlanner(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

Result<RedistributePlanner> RedistributePlanner::create(
    DeviceMesh mesh, const Topology& topology,
    const RedistributeOptions& options) {
  const ActiveDims active(mesh);
  if (active.count > kMaxPlannedDims) {
    return fail(ErrorCode::kRedistributeMeshTooLarge,
                "mesh " + to_string(mesh) + " has " +
                    std::to_string(active.count) +
                    " dims larger than 1, more than the " +
                    std::to_string(kMaxPlannedDims) + " planned for",
                "merge mesh dims that always act together");
  }
  return RedistributePlanner(
      std::make_shared<const Body>(std::move(mesh), topology, options));
}

const DeviceMesh& RedistributePlanner::mesh() const { return body_->mesh; }
const RedistributeOptions& RedistributePlanner::options() const {
  return body_->options;
}

namespace {

struct Found {
  Alphabet alphabet;
  Path path;
};

// What both plan() and cost() need: the path, in states.
template <class Body>
Result<Found> find_path(const Body& body, const Layout& src, const Layout& dst,
                        const TensorMeta& meta) {
  SP_CHECK(check_pair(src, dst));
  SP_CHECK(check_size(body.mesh, meta));
  if (!body.options.allow_empty_shards) {
    SP_CHECK(check_shards(src, body.mesh, meta));
    SP_CHECK(check_shards(dst, body.mesh, meta));
  }
  const Layout endpoints[] = {src, dst};
  SP_ASSIGN(Alphabet alphabet, Alphabet::create(body.active, meta, endpoints,
                                                body.options.split_factors));
  const auto source = to_state(src, body.active, alphabet);
  const auto target = to_state(dst, body.active, alphabet);
  if (!source || !target) {
    throw InternalError("an endpoint lies outside its own alphabet");
  }
  const auto graph = body.graphs.get(body.active, alphabet);
  auto path =
      shortest_path(SearchProblem{body.active, alphabet, body.times, body.mesh,
                                  meta, body.options.memory_limit, graph.get()},
                    *source, *target);
  if (!path) {
    if (!body.options.memory_limit) {
      throw InternalError("no path between two layouts");
    }
    const std::int64_t least =
        layout_bytes(src, body.mesh, meta) + layout_bytes(dst, body.mesh, meta);
    return fail(Error{
        ErrorCode::kRedistributeMemory,
        "`" + to_string(src) + "` becomes `" + to_string(dst) +
            "` on no path within " +
            std::to_string(*body.options.memory_limit) + " bytes a rank",
        {},
        {"source and target alone take " + std::to_string(least) + " bytes"},
        "raise the memory limit"});
  }
  return Found{std::move(alphabet), *std::move(path)};
}

}  // namespace

Result<std::int64_t> RedistributePlanner::cost(const Layout& src,
                                               const Layout& dst,
                                               const TensorMeta& meta) const {
  const Layout from = canonical(src, body_->mesh, meta.shape());
  const Layout to = canonical(dst, body_->mesh, meta.shape());
  SP_ASSIGN(const Found found, find_path(*body_, from, to, meta));
  return found.path.nanoseconds;
}

Result<RedistributePlan> RedistributePlanner::plan(
    const Layout& src, const Layout& dst, const TensorMeta& meta) const {
  const Body& body = *body_;
  const Layout from = canonical(src, body.mesh, meta.shape());
  const Layout to = canonical(dst, body.mesh, meta.shape());
  SP_ASSIGN(const Found found, find_path(body, from, to, meta));

  RedistributePlan plan;
  const std::int64_t source_bytes = layout_bytes(from, body.mesh, meta);
  plan.peak_bytes = source_bytes;
  plan.nanoseconds = found.path.nanoseconds;
  MovePricer pricer(body.times, body.active, found.alphabet, meta);
  // On the way, mesh dims of size 1 are as in the target, but for partials,
  // which need not go with those still to be reduced.
  Layout others = to;
  for (int i = 0; i < body.mesh.ndim(); ++i) {
    if (body.mesh.size(i) == 1 && to[i].is_partial()) {
      SP_ASSIGN(others, others.with(i, Placement::replicate()));
    }
  }
  Layout at = from;
  for (const PathStep& taken : found.path.steps) {
    RedistributeStep step;
    step.src = at;
    step.dst = to_layout(taken.to, body.active, found.alphabet, others);
    LocalSize from_size = pricer.local_size(taken.from);
    LocalSize to_size = pricer.local_size(taken.to);
    const auto priced = [&] {
      return pricer.price(taken.move, taken.group, taken.from, from_size,
                          taken.to, to_size);
    };
    MovePrice price = priced();
    step.nanoseconds = price.nanoseconds;
    if (found.alphabet.has_strided()) {
      // The search took the origin's shards for the largest.
      from_size.elements =
          redistribute::largest_shard(step.src, body.mesh, meta);
      to_size.elements = redistribute::largest_shard(step.dst, body.mesh, meta);
      price = priced();
    }
    step.collective = price.collective;
    for (int i = 0; i < body.active.count; ++i) {
      if ((taken.group >> i & 1U) == 0) continue;
      step.mesh_dims.push_back(
          body.active.mesh_dims[static_cast<std::size_t>(i)]);
    }
    step.bytes_per_rank = price.bytes_per_rank;
    if (!price.exact) {
      step.bytes_per_rank =
          redistribute::exchanged_bytes(step.src, step.dst, body.mesh, meta);
    }
    step.peak_bytes =
        price.held_bytes + (plan.steps.empty() ? 0 : source_bytes);
    plan.peak_bytes = std::max(plan.peak_bytes, step.peak_bytes);
    plan.bytes_per_rank += step.bytes_per_rank;
    at = step.dst;
    plan.steps.push_back(std::move(step));
  }
  if (plan.steps.empty() && from != to) {
    // Only mesh dims of size 1 differ.
    RedistributeStep step;
    for (std::int32_t i = 0; i < body.mesh.ndim(); ++i) {
      if (from[i] != to[i]) step.mesh_dims.push_back(i);
    }
    step.src = from;
    step.dst = to;
    step.peak_bytes = 2 * source_bytes;
    plan.peak_bytes = step.peak_bytes;
    plan.steps.push_back(std::move(step));
  } else if (!plan.steps.empty()) {
    // Equal but for how cuts over mesh dims of size 1 are counted.
    plan.steps.back().dst = to;
  }
  return plan;
}

Result<RedistributePlan> plan_redistribution(
    const TensorSpec& src, const TensorSpec& dst, const Topology& topology,
    const RedistributeOptions& options) {
  SP_CHECK(redistribute::check_same_tensor(src, dst));
  if (src.mesh() != dst.mesh()) {
    return fail(ErrorCode::kRedistributeMeshes,
                "source is on mesh " + to_string(src.mesh()) +
                    ", target is on mesh " + to_string(dst.mesh()),
                "plan it with plan_between_meshes()");
  }
  return guarded([&]() -> Result<RedistributePlan> {
    SP_ASSIGN(const RedistributePlanner planner,
              RedistributePlanner::create(src.mesh(), topology, options));
    return planner.plan(src.layout(), dst.layout(), src.meta());
  });
}

}  // namespace shardprop
