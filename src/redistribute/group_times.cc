#include "redistribute/group_times.h"

#include "base/saturating.h"

#include <cmath>

namespace shardprop::redistribute {
namespace {

// Returns whether frameworks group collectives of this kind into buckets.
bool is_bucketed(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllReduce;
}

}  // namespace

GroupTimes::GroupTimes(const Topology& topology, const DeviceMesh& mesh,
                       const ActiveDims& active, std::int64_t bucket_bytes)
    : engine_(topology.engine),
      memory_gbps_(topology.memory_rate() * 1e-9),
      bucket_bytes_(bucket_bytes) {
  all_ = (Mask{1} << active.count) - 1;
  const MeshPlaces all(topology, mesh);
  for (Mask group = 1; group < Mask{1} << active.count; ++group) {
    Mask mesh_dims = 0;
    for (int i = 0; i < active.count; ++i) {
      if ((group >> i & 1U) != 0) {
        mesh_dims |= Mask{1} << active.mesh_dims[index(i)];
      }
    }
    places_[group] = all.of_mask(mesh_dims);
    const auto least = [&](CollectiveKind kind) {
      return nanoseconds(kind, group, 1);
    };
    for (const CollectiveKind kind : kAllCollectiveKinds) {
      lines_[index(kind)][group] =
          collective_algorithms(topology, kind, places_[group]);
      if (bucket_bytes_ == 0 || !is_bucketed(kind)) continue;
      bucket_times_[index(kind)][group] =
          line_nanoseconds(lines(kind, group), places_[group], bucket_bytes_);
    }
    const auto set = [&](Move move, std::int64_t value) {
      least_[index(move)][group] = value;
    };
    const std::int64_t exchange = least(CollectiveKind::kAllToAll);
    set(Move::kGather, least(CollectiveKind::kAllGather));
    set(Move::kExchange, std::min(exchange, least(CollectiveKind::kPermute)));
    // If the engine cannot reduce, the reduction starts with an exchange.
    set(Move::kReduceScatter,
        std::min(exchange, least(CollectiveKind::kReduceScatter)));
    set(Move::kReduce, std::min(exchange, least(CollectiveKind::kAllReduce)));
    if (places_[group].nodes > 1 && (group & (group - 1)) == 0) {
      crossing_ |= group;
    }
  }
}

double GroupTimes::least_per_byte(Mask outer, bool reduces) const {
  const auto size_of = [&](Mask dims) {
    return dims == 0 ? 1.0 : static_cast<double>(places_[dims].ranks);
  };
  double most = 0;
  for (Mask group = 1; group <= all_; ++group) {
    if ((group & outer) == 0) continue;
    const double ranks = size_of(group);
    const double cells = size_of(group & outer);
    const double cell = size_of(all_ & ~outer);
    const double groups = cell / size_of(group & ~outer);
    // Adds the share of S or B that is new to a cell.
    const auto add = [&](CollectiveKind kind, double share) {
      for (const AlgorithmLine& line : lines(kind, group)) {
        most = std::max(most, share * line.bandwidth_gbps);
      }
    };
    add(CollectiveKind::kAllGather, groups * (1 - 1 / cells));
    add(CollectiveKind::kAllToAll, cell * (1 - 1 / ranks));
    add(CollectiveKind::kPermute, cell);
    if (!reduces) continue;
    add(CollectiveKind::kReduceScatter, groups / cells);
    add(CollectiveKind::kAllReduce, groups);
    // If the engine cannot reduce, an all-reduce ends in an all-gather.
    add(CollectiveKind::kAllGather, groups);
  }
  return 1 / most;
}

std::int64_t GroupTimes::nanoseconds(CollectiveKind kind, Mask group,
                                     std::int64_t bytes) const {
  if (bytes == 0) return 0;
  const std::int64_t alone =
      line_nanoseconds(lines(kind, group), places_[group], bytes);
  if (bytes >= bucket_bytes_ || !is_bucketed(kind)) return alone;
  const std::int64_t bucket = bucket_times_[index(kind)][group];
  const double share =
      static_cast<double>(bytes) / static_cast<double>(bucket_bytes_);
  return std::min(
      alone, whole_nanoseconds(std::ceil(share * static_cast<double>(bucket))));
}

std::int64_t GroupTimes::memory_pass(std::int64_t bytes) const {
  return whole_nanoseconds(2 * static_cast<double>(bytes) / memory_gbps_,
                           kMostTransferNanoseconds);
}

}  // namespace shardprop::redistribute
