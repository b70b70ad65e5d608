#include <shardprop/redistribute/cross_mesh.h>

#include "base/try.h"
#include "redistribute/same_tensor.h"

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using Piece = InlineVector<Interval, 4>;

// Ranks that hold the same shard.
struct Shard {
  LocalRegion region;
  std::vector<std::int64_t> ranks;
};

// The different shards of a layout, each with its holders. Mesh dims that do
// not shard only multiply holders.
std::vector<Shard> shards_of(const TensorSpec& spec) {
  const DeviceMesh& mesh = spec.mesh();
  std::map<Coordinate, std::size_t> index;
  std::vector<Shard> shards;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    Coordinate cut = at;
    for (int d = 0; d < mesh.ndim(); ++d) {
      if (!spec.placement(d).is_shard()) cut[static_cast<std::size_t>(d)] = 0;
    }
    const auto [found, made] = index.emplace(cut, shards.size());
    if (made) shards.push_back({local_region(spec, at), {}});
    shards[found->second].ranks.push_back(mesh.rank_at(at));
  }
  std::erase_if(shards,
                [](const Shard& shard) { return shard.region.empty(); });
  return shards;
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals out;
  for (const Interval& x : a) {
    for (const Interval& y : b) {
      const Interval both{std::max(x.begin, y.begin), std::min(x.end, y.end)};
      if (both.size() > 0) out.push_back(both);
    }
  }
  std::sort(out.begin(), out.end(), [](const Interval& x, const Interval& y) {
    return x.begin < y.begin;
  });
  return out;
}

// The boxes that both regions hold, in row-major order.
std::vector<Piece> common(const LocalRegion& a, const LocalRegion& b) {
  std::vector<Piece> pieces{Piece{}};
  for (std::size_t d = 0; d < a.dims().size() && !pieces.empty(); ++d) {
    const Intervals runs = common(a.dims()[d], b.dims()[d]);
    std::vector<Piece> longer;
    for (const Piece& start : pieces) {
      for (const Interval& run : runs) {
        longer.push_back(start);
        longer.back().push_back(run);
      }
    }
    pieces = std::move(longer);
  }
  return pieces;
}

std::int64_t elements(const std::vector<Piece>& pieces) {
  std::int64_t count = 0;
  for (const Piece& piece : pieces) {
    std::int64_t size = 1;
    for (const Interval& run : piece) size *= run.size();
    count += size;
  }
  return count;
}

// A receiver's want of one shard.
struct Want {
  std::size_t shard;
  std::int64_t dst_rank;
  std::vector<Piece> pieces;
  std::int64_t bytes;
};

std::vector<Want> wants_of(const std::vector<Shard>& held,
                           const std::vector<Shard>& wanted,
                           std::int64_t item) {
  std::vector<Want> wants;
  for (std::size_t s = 0; s < held.size(); ++s) {
    for (const Shard& target : wanted) {
      std::vector<Piece> pieces = common(held[s].region, target.region);
      const std::int64_t bytes = elements(pieces) * item;
      if (bytes == 0) continue;
      for (const std::int64_t rank : target.ranks) {
        const auto& holders = held[s].ranks;
        if (std::find(holders.begin(), holders.end(), rank) != holders.end()) {
          continue;
        }
        wants.push_back({s, rank, pieces, bytes});
      }
    }
  }
  return wants;
}

struct Load {
  std::int64_t near = 0;  // bytes inside the node
  std::int64_t far = 0;
};

struct Sends {
  std::vector<MeshTransfer> transfers;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::int64_t nanoseconds = 0;
};

Sends assign(const std::vector<Shard>& held, std::vector<Want> wants,
             const Topology& topology) {
  const std::int64_t node = topology.node_size();
  // Largest first spreads evenest; the rest of the order makes it the same
  // every time.
  std::stable_sort(wants.begin(), wants.end(),
                   [](const Want& a, const Want& b) {
                     return std::tie(b.bytes, a.shard, a.dst_rank) <
                            std::tie(a.bytes, b.shard, b.dst_rank);
                   });
  std::unordered_map<std::int64_t, Load> out;
  std::unordered_map<std::int64_t, Load> in;
  std::map<std::pair<std::int64_t, std::int64_t>, MeshTransfer> batches;
  const auto total = [](const Load& load) { return load.near + load.far; };
  for (Want& want : wants) {
    const std::vector<std::int64_t>& holders = held[want.shard].ranks;
    const auto rank_of = [&](std::int64_t rank) {
      const bool far = rank / node != want.dst_rank / node;
      return std::make_tuple(far, total(out[rank]), rank);
    };
    const std::int64_t sender = *std::min_element(
        holders.begin(), holders.end(), [&](std::int64_t a, std::int64_t b) {
          return rank_of(a) < rank_of(b);
        });
    const bool far = sender / node != want.dst_rank / node;
    (far ? out[sender].far : out[sender].near) += want.bytes;
    (far ? in[want.dst_rank].far : in[want.dst_rank].near) += want.bytes;
    MeshTransfer& batch = batches[{sender, want.dst_rank}];
    batch.src_rank = sender;
    batch.dst_rank = want.dst_rank;
    batch.bytes += want.bytes;
    batch.pieces.insert(batch.pieces.end(), want.pieces.begin(),
                        want.pieces.end());
  }
  Sends sends;
  for (auto& [pair, batch] : batches) {
    sends.transfers.push_back(std::move(batch));
  }
  // Ranks send and receive at once; a rank's links inside and outside its
  // node work side by side.
  const auto timed = [&](const Load& load) {
    const auto part = [&](std::int64_t bytes, std::int64_t nodes) {
      return bytes == 0 ? std::int64_t{0}
                        : collective_nanoseconds(
                              topology, CollectiveKind::kSendRecv,
                              {2, nodes == 1 ? 2 : 1, nodes}, bytes);
    };
    return std::max(part(load.near, 1), part(load.far, 2));
  };
  for (const auto& [rank, load] : out) {
    sends.sent = std::max(sends.sent, total(load));
    sends.nanoseconds = std::max(sends.nanoseconds, timed(load));
  }
  for (const auto& [rank, load] : in) {
    sends.received = std::max(sends.received, total(load));
    sends.nanoseconds = std::max(sends.nanoseconds, timed(load));
  }
  return sends;
}

// Layouts without partials that reductions of `layout` can lead to at once.
std::vector<Layout> reduced_layouts(const TensorSpec& spec) {
  std::vector<Layout> out;
  const auto with_all = [&](Placement placement) {
    Layout made = spec.layout();
    for (int i = 0; i < made.mesh_ndim(); ++i) {
      if (!made[i].is_partial()) continue;
      auto next = made.with(i, placement);
      if (!next) throw InternalError("a partial cannot be replaced");
      made = *std::move(next);
    }
    return made;
  };
  out.push_back(with_all(Placement::replicate()));
  for (int d = 0; d < spec.meta().rank(); ++d) {
    out.push_back(with_all(Placement::shard(d)));
  }
  return out;
}

}  // namespace

Result<CrossMeshPlan> plan_between_meshes(const TensorSpec& src,
                                          const TensorSpec& dst,
                                          const Topology& topology,
                                          const RedistributeOptions& options) {
  SP_CHECK(redistribute::check_same_tensor(src, dst));
  if (dst.layout().has_partial()) {
    return fail(
        ErrorCode::kRedistributeMeshes,
        "target `" + to_string(dst.layout()) + "` is partial on another mesh",
        "send to R or a shard, and go on to a partial there");
  }
  const std::int64_t item = item_size(src.meta().dtype());
  const std::vector<Shard> wanted = shards_of(dst);
  const std::vector<Layout> starts = src.layout().has_partial()
                                         ? reduced_layouts(src)
                                         : std::vector<Layout>{src.layout()};
  SP_ASSIGN(const RedistributePlanner planner,
            RedistributePlanner::create(src.mesh(), topology, options));
  std::optional<CrossMeshPlan> best;
  std::optional<Error> refused;
  for (const Layout& start : starts) {
    auto before = planner.plan(src.layout(), start, src.meta());
    if (!before) {
      refused = before.error();
      continue;
    }
    SP_ASSIGN(const TensorSpec from,
              TensorSpec::create(src.mesh(), start, src.meta()));
    const std::vector<Shard> held = shards_of(from);
    Sends sends = assign(held, wants_of(held, wanted, item), topology);
    CrossMeshPlan plan;
    plan.before = *std::move(before);
    plan.sent_layout = from.layout();
    plan.transfers = std::move(sends.transfers);
    plan.sent_bytes = sends.sent;
    plan.received_bytes = sends.received;
    plan.nanoseconds = plan.before.nanoseconds + sends.nanoseconds;
    // Source, what is sent from, the target, and messages packed and waiting.
    const std::int64_t reduced =
        plan.before.steps.empty() ? 0 : max_local_bytes(from);
    plan.peak_bytes =
        std::max(plan.before.peak_bytes,
                 max_local_bytes(src) + reduced + max_local_bytes(dst) +
                     plan.sent_bytes + plan.received_bytes);
    if (options.memory_limit && plan.peak_bytes > *options.memory_limit) {
      refused = Error{ErrorCode::kRedistributeMemory,
                      "the sends hold " + std::to_string(plan.peak_bytes) +
                          " bytes on a rank, over the limit of " +
                          std::to_string(*options.memory_limit),
                      {},
                      {},
                      "raise the memory limit"};
      continue;
    }
    if (!best || plan.nanoseconds < best->nanoseconds) best = std::move(plan);
  }
  if (!best) return fail(*std::move(refused));
  return *std::move(best);
}

}  // namespace shardprop
