#include <shardprop/redistribute/planner.h>

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "redistribute/detour.h"
#include "redistribute/exchange_bytes.h"
#include "redistribute/move_price.h"
#include "redistribute/planner_body.h"
#include "redistribute/same_tensor.h"
#include "redistribute/search.h"
#include "redistribute/sharding_state.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <set>
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

// Returns whether some rank holds no element of dim `d`. For example, 4 over 3
// ranks is 2, 2, 0.
bool has_empty_shard(const Layout& layout, const DeviceMesh& mesh,
                     const TensorMeta& meta, int d) {
  const auto cuts = layout.cuts(d);
  if (!layout.has_strided()) {
    std::set<std::int64_t> sizes = {meta.size(d)};
    for (const std::int32_t cut : cuts) {
      std::set<std::int64_t> parts;
      for (const std::int64_t size : sizes) {
        for (std::int64_t i = 0; i < mesh.size(cut); ++i) {
          parts.insert(chunk(size, mesh.size(cut), i).size());
        }
      }
      sizes = std::move(parts);
    }
    return sizes.contains(0);
  }
  // The loop counts through the coordinates on the mesh dims that cut `d`.
  Coordinate at(static_cast<std::size_t>(mesh.ndim()), 0);
  for (;;) {
    const Dims local = local_shape(layout, mesh, meta.shape(), at);
    if (local[index(d)] == 0) return true;
    auto cut = cuts.begin();
    for (; cut != cuts.end(); ++cut) {
      std::int64_t& place = at[index(*cut)];
      if (++place < mesh.size(*cut)) break;
      place = 0;
    }
    if (cut == cuts.end()) return false;
  }
}

Result<void> check_shards(const Layout& layout, const DeviceMesh& mesh,
                          const TensorMeta& meta) {
  for (int d = 0; d < meta.rank(); ++d) {
    std::int64_t parts = 1;
    for (const std::int32_t mesh_dim : layout.cuts(d)) {
      parts *= mesh.size(mesh_dim);
    }
    if (parts == 1) continue;
    const bool too_many = parts > meta.size(d);
    if (too_many || has_empty_shard(layout, mesh, meta, d)) {
      return fail(ErrorCode::kRedistributeMeshTooLarge,
                  "`" + to_string(layout) + "` cuts dim " + std::to_string(d) +
                      " of " + to_string(meta) + " into " +
                      std::to_string(parts) +
                      (too_many ? " parts, more than it has elements"
                                : " parts, some of them empty"),
                  "shard it over fewer ranks, or allow empty shards");
    }
  }
  return {};
}

}  // namespace

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

RedistributePlanner::RedistributePlanner(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

Result<RedistributePlanner> RedistributePlanner::create(
    DeviceMesh mesh, const Topology& topology,
    const RedistributeOptions& options) {
  return guarded([&]() -> Result<RedistributePlanner> {
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
  });
}

const DeviceMesh& RedistributePlanner::mesh() const { return body_->mesh; }
const RedistributeOptions& RedistributePlanner::options() const {
  return body_->options;
}

namespace {

// This limit allows a second or two of search among strided shards. On meshes
// of many dims, this time rarely finds a path and callers request several
// plans, so the limit is lower.
std::size_t most_strided_moves(const redistribute::ActiveDims& active) {
  return active.count > 3 ? 500'000 : 4'000'000;
}

struct Found {
  Alphabet alphabet;
  Path path;
};

// Found is the result that plan() and cost() share: the path as states.
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
  SearchProblem problem{body.active, alphabet, body.times,
                        body.mesh,   meta,     body.options.memory_limit,
                        graph.get()};
  if (alphabet.has_strided()) {
    problem.most_moves = most_strided_moves(body.active);
  }
  auto path = shortest_path(problem, *source, *target);
  if (alphabet.has_strided() && (!path || !path->is_least)) {
    auto around = redistribute::path_around_strides(problem, *source, *target);
    const auto fits = [&] {  // the detour may exceed the memory limit
      return !body.options.memory_limit ||
             body.along(*around, alphabet, src, dst, meta).peak_bytes <=
                 *body.options.memory_limit;
    };
    const bool is_less =
        around && (!path || around->nanoseconds < path->nanoseconds);
    if (is_less && fits()) path = std::move(around);
  }
  if (!path) {
    if (!body.options.memory_limit) {
      throw InternalError("no path between two layouts");
    }
    const std::int64_t least = max_local_bytes(src, body.mesh, meta) +
                               max_local_bytes(dst, body.mesh, meta);
    return fail(Error{
        ErrorCode::kRedistributeMemory,
        "`" + to_string(src) + "` becomes `" + to_string(dst) +
            "` on no path " +
            (alphabet.has_strided() ? "that was found " : "") + "within " +
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
  return guarded([&]() -> Result<std::int64_t> {
    const Layout from = canonical(src, body_->mesh, meta.shape());
    const Layout to = canonical(dst, body_->mesh, meta.shape());
    SP_ASSIGN(const Found found, find_path(*body_, from, to, meta));
    return found.path.nanoseconds;
  });
}

Result<RedistributePlan> RedistributePlanner::plan(
    const Layout& src, const Layout& dst, const TensorMeta& meta) const {
  return guarded([&]() -> Result<RedistributePlan> {
    const Layout from = canonical(src, body_->mesh, meta.shape());
    const Layout to = canonical(dst, body_->mesh, meta.shape());
    SP_ASSIGN(const Found found, find_path(*body_, from, to, meta));
    return body_->along(found.path, found.alphabet, from, to, meta);
  });
}

namespace {

// On the way, mesh dims of size 1 have the placements of the target, except
// partials. These may not mix with partials that are still to be reduced.
Layout idle_dims_of(const Layout& target, const DeviceMesh& mesh) {
  Layout others = target;
  for (int i = 0; i < mesh.ndim(); ++i) {
    if (mesh.size(i) > 1 || !target[i].is_partial()) continue;
    auto without = others.with(i, Placement::replicate());
    if (!without) throw InternalError("R does not fit a layout");
    others = *std::move(without);
  }
  return others;
}

// Returns the step of a plan in which only mesh dims of size 1 differ.
RedistributeStep idle_step(const DeviceMesh& mesh, const Layout& from,
                           const Layout& to, DType dtype,
                           std::int64_t peak_bytes) {
  RedistributeStep step;
  for (std::int32_t i = 0; i < mesh.ndim(); ++i) {
    if (from[i] != to[i]) step.mesh_dims.push_back(i);
  }
  step.dtype = dtype;
  step.src = from;
  step.dst = to;
  step.peak_bytes = peak_bytes;
  return step;
}

}  // namespace

RedistributePlan RedistributePlanner::Body::along(
    const Path& path, const Alphabet& alphabet, const Layout& from,
    const Layout& to, const TensorMeta& meta) const {
  RedistributePlan plan;
  const std::int64_t source_bytes = max_local_bytes(from, mesh, meta);
  plan.peak_bytes = source_bytes;
  plan.nanoseconds = path.nanoseconds;
  plan.steps.reserve(path.steps.size());
  MovePricer pricer(times, active, alphabet, meta);
  const Layout others = idle_dims_of(to, mesh);
  Layout at = from;
  for (const PathStep& taken : path.steps) {
    const Layout next = to_layout(taken.to, active, alphabet, others);
    LocalSize from_size = pricer.local_size(taken.from);
    LocalSize to_size = pricer.local_size(taken.to);
    const auto priced = [&] {
      return pricer.price(taken.move, taken.group, taken.from, from_size,
                          taken.to, to_size);
    };
    MovePrice price = priced();
    const std::int64_t nanoseconds = price.nanoseconds;
    if (alphabet.has_strided()) {
      // The search assumed that the origin holds the largest shards.
      from_size.elements = redistribute::largest_shard(at, mesh, meta);
      to_size.elements = redistribute::largest_shard(next, mesh, meta);
      price = priced();
    }
    RedistributeStep step{price, at, next};
    step.nanoseconds = nanoseconds;
    for (int i = 0; i < active.count; ++i) {
      if ((taken.group >> i & 1U) == 0) continue;
      step.mesh_dims.push_back(active.mesh_dims[index(i)]);
    }
    if (!price.exact) {
      step.bytes_per_rank =
          redistribute::exchanged_bytes(step.src, step.dst, mesh, meta);
    }
    step.peak_bytes =
        price.held_bytes + (plan.steps.empty() ? 0 : source_bytes);
    plan.peak_bytes = std::max(plan.peak_bytes, step.peak_bytes);
    plan.bytes_per_rank += step.bytes_per_rank;
    at = step.dst;
    plan.steps.push_back(std::move(step));
  }
  if (plan.steps.empty() && from != to) {
    plan.peak_bytes = 2 * source_bytes;
    plan.steps.push_back(
        idle_step(mesh, from, to, meta.dtype(), plan.peak_bytes));
  } else if (!plan.steps.empty()) {
    // The two layouts differ only in the order of cuts over mesh dims of size
    // 1.
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
