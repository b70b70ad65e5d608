// Lowers buckets: copies whose tensors one collective moves in a flat buffer.
//
//   flat   = cat(a.view(-1), b.view(-1))          each rank's shards
//   flat.0 = all_gather over dp (flat)
//   a.0, b.0 = split_with_sizes_copy(flat.0.view(ranks, -1)), viewed
#include "lower/lowering.h"

#include "base/try.h"
#include "lower/broken_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace shardprop::lowering {
namespace {

Argument sizes_argument(const Dims& sizes) {
  return Argument(std::vector<std::int64_t>(sizes.begin(), sizes.end()));
}

std::int64_t numel(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1},
                         std::multiplies<>());
}

// Returns the sizes with the dim of a flat move split into ranks and the part of
// a rank: [6,8] -> [6,4,2]. `sizes` are those before it is scattered, or after it
// is gathered.
Dims split_by_rank(const Dims& sizes, int dim, std::int64_t ranks) {
  Dims out;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    const std::int64_t size = sizes[static_cast<std::size_t>(d)];
    if (d == dim) out.push_back(ranks);
    out.push_back(d == dim ? size / ranks : size);
  }
  return out;
}

// Returns the permutation that moves dim `from` to `to`.
Argument moved_dim(std::size_t ndim, int from, int to) {
  std::vector<std::int64_t> dims(ndim);
  std::iota(dims.begin(), dims.end(), std::int64_t{0});
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, from);
  return Argument(std::move(dims));
}

}  // namespace

Result<void> Lowering::plan_buckets() {
  for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
    const PlannedCopy& copy = plan_.copies[c];
    if (!copy.bucket) continue;
    const auto broken = [&](const char* what) {
      return broken_plan(place_of_copy(c), what);
    };
    const std::size_t first = *copy.bucket;
    if (first > c || plan_.copies[first].bucket != first) {
      return broken("its bucket begins with a copy that is not in it");
    }
    const auto value = graph_values_.find(copy.from);
    if (value == graph_values_.end() || copy.source) {
      return broken("it is made of another copy and cannot be in a bucket");
    }
    auto move =
        flat_move(plan_.mesh, graph_.value(value->second).meta, copy.steps);
    if (!move) return broken("its steps cannot run in a bucket");
    const PlannedCopy& leader = plan_.copies[first];
    const bool fits =
        copy.in_flight == leader.in_flight &&
        (copy.in_flight || copy.produced_at == leader.produced_at) &&
        std::equal(copy.steps.begin(), copy.steps.end(), leader.steps.begin(),
                   leader.steps.end(), share_buffer);
    if (!fits) return broken("its steps are not those of its bucket");
    Bucket& bucket = buckets_[first];
    if (unread_copies_.contains(c)) {
      leave_copy(c);
    } else {
      bucket.members.push_back({c, *std::move(move)});
    }
  }
  return {};
}

// Returns the bucket's steps with the sums of its members. They move local
// tensors, so that they have no layouts.
std::vector<RedistributeStep> Lowering::steps_of(const Bucket& bucket) const {
  std::vector<RedistributeStep> out;
  for (const BucketMember& member : bucket.members) {
    const std::vector<RedistributeStep>& steps =
        plan_.copies[member.copy].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (s == out.size()) {
        CollectiveStep& sum = out.emplace_back();
        sum.kind = steps[s].kind;
        sum.mesh_dims = steps[s].mesh_dims;
        sum.reduce_op = steps[s].reduce_op;
        sum.dtype = steps[s].dtype;
      }
      out[s].message_bytes += steps[s].message_bytes;
      out[s].bytes_per_rank += steps[s].bytes_per_rank;
      out[s].nanoseconds += steps[s].nanoseconds;
    }
    // Results of reductions are views of the buffer.
    const bool is_copied = steps[0].kind == CollectiveKind::kAllGather;
    out[0].peak_bytes +=
        item_size(steps[0].dtype) *
        (numel(member.move.source) +
         (is_copied ? numel(member.move.result) : std::int64_t{0}));
  }
  return out;
}

ProgramValueId Lowering::bucket_op(const char* name, ProgramArguments args) {
  const ProgramValueId made = build_.local("bucket");
  build_.op(name, std::move(args), {made});
  return made;
}

// Returns the part of a copy in the flat buffer: one row for each rank if it is
// scattered, otherwise a list of elements.
Result<ProgramValueId> Lowering::row_of(const BucketMember& member) {
  const PlannedCopy& copy = plan_.copies[member.copy];
  SP_ASSIGN(ProgramValueId at, source_of(member.copy));
  if (copy.steps[0].src != build_[at].layout) {
    return broken_plan(place_of_copy(member.copy),
                       "step 1 starts at " + to_string(copy.steps[0].src) +
                           ", not at " + to_string(build_[at].layout));
  }
  if (copy.steps[0].dtype != build_[at].meta.dtype()) {
    at = bucket_op("aten._to_copy.default",
                   {{"self", at}, {"dtype", Argument(copy.steps[0].dtype)}});
  }
  const auto& [tensor_dim, ranks, source, result] = member.move;
  const std::int64_t elements = numel(source);
  if (copy.steps[0].kind != CollectiveKind::kReduceScatter) {
    return bucket_op("aten.view.default",
                     {{"self", at}, {"size", sizes_argument({elements})}});
  }
  if (*tensor_dim > 0) {
    const Dims split = split_by_rank(source, *tensor_dim, ranks);
    at = bucket_op("aten.view.default",
                   {{"self", at}, {"size", sizes_argument(split)}});
    at = bucket_op(
        "aten.permute.default",
        {{"self", at}, {"dims", moved_dim(split.size(), *tensor_dim, 0)}});
  }
  return bucket_op(
      "aten.view.default",
      {{"self", at}, {"size", sizes_argument({ranks, elements / ranks})}});
}

// Fills the buffer and starts the collectives.
Result<void> Lowering::fill_bucket(std::size_t first, std::size_t slot) {
  Bucket& bucket = buckets_.at(first);
  if (bucket.members.empty()) return {};
  const bool in_flight = plan_.copies[first].in_flight.has_value();
  const std::vector<RedistributeStep> steps = steps_of(bucket);
  std::vector<ProgramValueId> rows;
  build_.stand_at(slot, first);
  for (const BucketMember& member : bucket.members) {
    SP_ASSIGN(const ProgramValueId row, row_of(member));
    rows.push_back(row);
  }
  const bool scatters = steps[0].kind == CollectiveKind::kReduceScatter;
  bucket.flat = bucket_op("aten.cat.default",
                          {{"tensors", std::move(rows)},
                           {"dim", Argument(std::int64_t{scatters ? 1 : 0})}});
  if (scatters) {
    std::int64_t elements = 0;
    for (const BucketMember& member : bucket.members) {
      elements += numel(member.move.source);
    }
    bucket.flat = bucket_op(
        "aten.view.default",
        {{"self", bucket.flat}, {"size", sizes_argument({elements})}});
  }
  build_.stand_at(slot, first, in_flight);
  for (const RedistributeStep& step : steps) {
    const ProgramValueId moved = build_.local("bucket");
    build_.collective(step, bucket.flat, moved);
    bucket.flat = moved;
  }
  return {};
}

// Returns a part of the buffer as the value of the copy.
void Lowering::finish_copy(const BucketMember& member, ProgramValueId part,
                           std::size_t slot) {
  const PlannedCopy& copy = plan_.copies[member.copy];
  const TensorMeta& meta = graph_.value(graph_values_.at(copy.from)).meta;
  const bool is_cast = copy.steps.back().dtype != meta.dtype();
  const ProgramValueId made = build_.value(
      copy.from + "." + std::to_string(member.copy), meta, copy.dst);
  const ProgramValueId viewed = is_cast ? build_.local("bucket") : made;
  build_.op("aten.view.default",
            {{"self", part}, {"size", sizes_argument(member.move.result)}},
            {viewed});
  if (is_cast) {
    build_.op("aten._to_copy.default",
              {{"self", viewed}, {"dtype", Argument(meta.dtype())}}, {made});
  }
  program_.copies[member.copy] = {copy.from, made, slot,
                                  static_cast<std::size_t>(copy.freed_at)};
  is_issued_[member.copy] = true;
}

// Makes the copies of the buffer's content.
void Lowering::empty_bucket(std::size_t first, std::size_t slot) {
  const Bucket& bucket = buckets_.at(first);
  if (bucket.members.empty()) return;
  build_.stand_at(slot, first);
  if (plan_.copies[first].steps[0].kind != CollectiveKind::kAllGather) {
    std::int64_t begin = 0;
    for (const BucketMember& member : bucket.members) {
      const std::int64_t end = begin + numel(member.move.result);
      build_.stand_at(slot, member.copy);
      const ProgramValueId part =
          bucket_op("aten.slice.Tensor", {{"self", bucket.flat},
                                          {"dim", Argument(std::int64_t{0})},
                                          {"start", Argument(begin)},
                                          {"end", Argument(end)}});
      finish_copy(member, part, slot);
      begin = end;
    }
    return;
  }
  const std::int64_t ranks = bucket.members[0].move.ranks;
  std::vector<std::int64_t> sizes;
  std::vector<ProgramValueId> parts;
  for (const BucketMember& member : bucket.members) {
    sizes.push_back(numel(member.move.source));
    parts.push_back(build_.local("bucket"));
  }
  const std::int64_t row =
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const ProgramValueId rows = bucket_op(
      "aten.view.default",
      {{"self", bucket.flat}, {"size", sizes_argument({ranks, row})}});
  build_.op("aten.split_with_sizes_copy.default",
            {{"self", rows},
             {"split_sizes", Argument(std::move(sizes))},
             {"dim", Argument(std::int64_t{1})}},
            parts);
  for (std::size_t m = 0; m < parts.size(); ++m) {
    const BucketMember& member = bucket.members[m];
    build_.stand_at(slot, member.copy);
    ProgramValueId part = parts[m];
    const int dim = *member.move.tensor_dim;
    if (dim > 0) {
      Dims split = split_by_rank(member.move.result, dim, ranks);
      split.erase(split.begin() + dim);
      split.insert(split.begin(), ranks);
      const std::size_t ndim = split.size();
      part = bucket_op("aten.view.default",
                       {{"self", part}, {"size", sizes_argument(split)}});
      part = bucket_op("aten.permute.default",
                       {{"self", part}, {"dims", moved_dim(ndim, 0, dim)}});
    }
    finish_copy(member, part, slot);
  }
}

}  // namespace shardprop::lowering
