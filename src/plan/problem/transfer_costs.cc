#include "plan/problem/transfer_costs.h"

#include "base/index.h"
#include "base/saturating.h"
#include "plan/problem/buffer.h"
#include "plan/tuning.h"
#include "redistribute/planner_body.h"

#include <shardprop/base/hash.h>
#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <new>

namespace shardprop {
namespace {

// If planning a move runs out of memory, planning the program does, too. The
// move is not unreachable.
void throw_without_memory(const Error& error) {
  if (error.code == ErrorCode::kOutOfMemory) throw std::bad_alloc();
}

// Counts the layouts without partials: some of the mesh dims, in any order,
// shard the tensor dims. The formula takes k of m mesh dims in order and splits
// them into r lists:
//   m (m-1) ... (m-k+1) * r (r+1) ... (r+k-1) / k!
double count_sharded(int mesh_dims, int tensor_dims) {
  double all = 0;
  double with_k = 1;
  for (int k = 0; k <= mesh_dims; ++k) {
    all += with_k;
    with_k *= static_cast<double>(mesh_dims - k) * (tensor_dims + k) / (k + 1);
  }
  return all;
}

}  // namespace

std::size_t TransferCosts::KeyHash::operator()(const Key& key) const {
  return hash_mix(hash_mix(key.tensor, key.src.index()), key.dst.index());
}

std::size_t TransferCosts::TensorHash::operator()(const Tensor& tensor) const {
  return hash_mix(std::hash<TensorMeta>{}(tensor.meta),
                  std::size_t{tensor.in_buckets});
}

std::int64_t bucket_bytes(const Graph& graph) {
  WideInt all = 1;
  for (const GraphInput& input : graph.inputs()) {
    const TensorMeta& meta = graph.value(input.value).meta;
    if (input.kind == InputKind::kParameter) {
      all += WideInt{meta.numel()} * item_size(meta.dtype());
    }
  }
  return std::min(tuning::kBucketBytes, saturated(all));
}

TransferCosts::TransferCosts(RedistributePlanner planner,
                             RedistributePlanner bucketed,
                             const Topology& topology,
                             const LayoutTable& layouts, bool merge)
    : planner_(std::move(planner)),
      bucketed_(std::move(bucketed)),
      merged_(topology, planner_.options()),
      merged_bucketed_(topology, bucketed_.options()),
      layouts_(layouts),
      merge_(merge) {}

TransferCosts::~TransferCosts() = default;

std::uint32_t TransferCosts::tensor_class(const TensorMeta& meta,
                                          bool in_buckets) {
  // Strides do not affect a move.
  const auto plain = TensorMeta::contiguous(meta.shape(), meta.dtype());
  const Tensor tensor{plain ? *plain : meta, in_buckets};
  if (const auto known = ids_.find(tensor); known != ids_.end()) {
    return known->second;
  }
  const auto id = static_cast<std::uint32_t>(tensors_.size());
  is_too_large_.resize(id + 1, false);
  is_too_large_[id] = !check_size(planner_.mesh(), tensor.meta);
  tensors_.push_back(tensor);
  ids_.emplace(tensor, id);
  return id;
}

MergedTransfers::Ties TransferCosts::ties_of(LayoutId src, LayoutId dst) const {
  if (!merge_) return 0;
  for (std::size_t i = uniform_.size(); i < layouts_.size(); ++i) {
    uniform_.push_back(MergedTransfers::uniform(layouts_[LayoutId(i)]));
  }
  return uniform_[src.index()] & uniform_[dst.index()];
}

TransferCosts::Rows& TransferCosts::rows_of(
    std::uint32_t tensor, Ties ties, std::vector<Placement> partials) const {
  if (rows_.size() <= tensor) rows_.resize(tensor + 1);
  for (Rows& rows : rows_[tensor]) {
    if (rows.ties == ties && rows.partials == partials) return rows;
  }
  Rows& fresh = rows_[tensor].emplace_back();
  fresh.ties = ties;
  fresh.partials = std::move(partials);
  return fresh;
}

std::vector<Placement> TransferCosts::own_partials(LayoutId src,
                                                   LayoutId dst) const {
  std::vector<Placement> out;
  for (const LayoutId id : {src, dst}) {
    const Layout& layout = layouts_[id];
    if (layout.has_strided() || is_on_single_rank(id)) return {};
    for (const Placement& placement : layout.placements()) {
      if (placement.is_partial()) out.push_back(placement);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::int32_t TransferCosts::place(Rows& rows, std::uint32_t tensor,
                                  LayoutId layout) const {
  if (rows.refused) return kElsewhere;
  if (!rows.rows) {
    const RedistributePlanner& with = planner(tensor, rows.ties);
    std::vector<Layout> ends;
    for (const Placement partial : rows.partials) {
      auto all = Layout::create(
          Placements(static_cast<std::size_t>(with.mesh().ndim()), partial));
      if (!all) throw InternalError("one partial does not mix with itself");
      ends.push_back(*std::move(all));
    }
    const TensorMeta& meta = tensors_[tensor].meta;
    auto produced = ends.empty()
                        ? RedistributeRows::create(with, meta)
                        : RedistributeRows::create_between(with, meta, ends);
    if (!produced) {
      throw_without_memory(produced.error());
      rows.refused = std::move(produced).error();
      return kElsewhere;
    }
    rows.costs.resize(produced->layouts().size());
    rows.rows = *std::move(produced);
  }
  if (rows.place.size() <= layout.index()) {
    rows.place.resize(layouts_.size(), kUnasked);
  }
  std::int32_t& known = rows.place[layout.index()];
  const auto find = [&]() -> std::int32_t {
    // The rows treat mesh dims of size 1 as replicated.
    if (is_on_single_rank(layout)) return kElsewhere;
    const auto found = rows.rows->index_of(merged(layout, rows.ties));
    return found ? static_cast<std::int32_t>(*found) : kElsewhere;
  };
  // Set only once it is known, since find() may throw.
  if (known == kUnasked) known = find();
  return known;
}

// Returns whether a mesh dim of size 1 is not replicated.
bool TransferCosts::is_on_single_rank(LayoutId layout) const {
  const DeviceMesh& mesh = planner_.mesh();
  for (int i = 0; i < mesh.ndim(); ++i) {
    if (mesh.size(i) == 1 && !layouts_[layout][i].is_replicate()) return true;
  }
  return false;
}

std::optional<std::int64_t> TransferCosts::strided(std::uint32_t tensor,
                                                   LayoutId src,
                                                   LayoutId dst) const {
  const Layout endpoints[] = {layouts_[src], layouts_[dst]};
  std::pair<std::uint32_t, std::vector<Placement>> key{tensor, {}};
  for (const Layout& layout : endpoints) {
    for (const Placement& placement : layout.placements()) {
      if (placement.is_strided()) key.second.push_back(placement);
    }
  }
  if (key.second.empty()) return std::nullopt;
  std::sort(key.second.begin(), key.second.end());
  key.second.erase(std::unique(key.second.begin(), key.second.end()),
                   key.second.end());
  const auto [it, is_new] = strided_.try_emplace(std::move(key));
  Strided& known = it->second;
  const TensorMeta& meta = tensors_[tensor].meta;
  if (is_new) {
    known.costs = StridedCosts::create(planner(tensor, 0), meta, endpoints);
  }
  if (!known.costs) return std::nullopt;
  const auto place = [&](LayoutId layout) {
    if (known.place.size() <= layout.index()) {
      known.place.resize(layouts_.size(), kUnasked);
    }
    std::int32_t& at = known.place[layout.index()];
    if (at != kUnasked) return at;
    const auto number = is_on_single_rank(layout)
                            ? std::nullopt
                            : known.costs->number(layouts_[layout]);
    return at = number ? static_cast<std::int32_t>(*number) : kElsewhere;
  };
  const std::int32_t from = place(src);
  const std::int32_t to = place(dst);
  if (from < 0 || to < 0) return std::nullopt;
  return std::min(known.costs
                      ->nanoseconds(static_cast<std::uint32_t>(from),
                                    static_cast<std::uint32_t>(to))
                      .value_or(kUnreachable),
                  kUnreachable);
}

bool TransferCosts::is_refused(const Rows& rows, std::uint32_t tensor) const {
  if (!rows.refused) return false;
  const DeviceMesh& mesh = planner(tensor, rows.ties).mesh();
  return count_sharded(mesh.num_active_dims(), tensors_[tensor].meta.rank()) >
             tuning::kMostSearchedLayouts ||
         ++lone_pairs_ > tuning::kMostLonePairs;
}

std::optional<std::int64_t> TransferCosts::listed(Rows& rows,
                                                  std::uint32_t tensor,
                                                  LayoutId src,
                                                  LayoutId dst) const {
  const std::int32_t from = place(rows, tensor, src);
  const std::int32_t to = from < 0 ? kElsewhere : place(rows, tensor, dst);
  if (to < 0) return std::nullopt;
  std::vector<std::int64_t>& costs = rows.costs[index(from)];
  if (costs.empty()) {
    costs = rows.rows->costs_from(static_cast<std::size_t>(from));
  }
  return std::min(costs[index(to)], kUnreachable);
}

std::int64_t TransferCosts::nanoseconds(std::uint32_t tensor, LayoutId src,
                                        LayoutId dst) const {
  if (src == dst) return 0;
  if (refusal_ || is_too_large_[tensor]) return kUnreachable;
  const Ties ties = ties_of(src, dst);
  Rows& rows = rows_of(tensor, ties);
  if (const auto cost = listed(rows, tensor, src, dst)) return *cost;
  if (!rows.refused) {
    if (const auto cost = strided(tensor, src, dst)) return *cost;
    std::vector<Placement> partials = own_partials(src, dst);
    if (!partials.empty()) {
      Rows& own = rows_of(tensor, ties, std::move(partials));
      if (const auto cost = listed(own, tensor, src, dst)) return *cost;
    }
  }
  // A cost is cached once it is known, so an exception before that adds no
  // entry.
  const Key key{tensor, src, dst};
  if (const auto known = moves_.find(key); known != moves_.end()) {
    return known->second;
  }
  if (is_refused(rows, tensor)) {
    refusal_ = rows.refused;
    return kUnreachable;
  }
  const auto cost =
      planner(tensor, ties)
          .cost(merged(src, ties), merged(dst, ties), tensors_[tensor].meta);
  if (!cost) throw_without_memory(cost.error());
  const std::int64_t price =
      cost ? std::min(*cost, kUnreachable) : kUnreachable;
  moves_.emplace(key, price);
  return price;
}

RedistributePlan TransferCosts::plan(std::uint32_t tensor, LayoutId src,
                                     LayoutId dst) const {
  const Ties ties = ties_of(src, dst);
  const TensorMeta& meta = tensors_[tensor].meta;
  auto produced =
      planner(tensor, ties).plan(merged(src, ties), merged(dst, ties), meta);
  if (!produced) {
    throw_without_memory(produced.error());
    throw InternalError("a plan has a move that there is none for: " +
                        to_string(produced.error()));
  }
  RedistributePlan plan = MergedTransfers::unmerged(*std::move(produced), ties,
                                                    planner_.mesh(), meta);
  if (ties != 0 && !plan.steps.empty()) {
    plan.steps.front().src = layouts_[src];
    plan.steps.back().dst = layouts_[dst];
  }
  return plan;
}

const std::vector<RedistributeStep>& TransferCosts::steps(std::uint32_t tensor,
                                                          LayoutId src,
                                                          LayoutId dst) const {
  const Key key{tensor, src, dst};
  const auto known = steps_.find(key);
  if (known != steps_.end()) return known->second;
  return steps_.emplace(key, plan(tensor, src, dst).steps).first->second;
}

std::int64_t TransferCosts::peak_bytes(std::uint32_t tensor, LayoutId src,
                                       LayoutId dst) const {
  const Key key{tensor, src, dst};
  if (const auto known = peaks_.find(key); known != peaks_.end()) {
    return known->second;
  }
  const std::int64_t bytes = plan(tensor, src, dst).peak_bytes;
  peaks_.emplace(key, bytes);
  return bytes;
}

std::int64_t TransferCosts::local_bytes(std::uint32_t tensor,
                                        LayoutId layout) const {
  const Key key{tensor, layout, layout};
  if (const auto known = bytes_.find(key); known != bytes_.end()) {
    return known->second;
  }
  const std::int64_t bytes =
      max_local_bytes(layouts_[layout], planner_.mesh(), tensors_[tensor].meta);
  bytes_.emplace(key, bytes);
  return bytes;
}

}  // namespace shardprop
