#include <shardprop/redistribute/cross_mesh.h>

#include "base/guard.h"
#include "base/try.h"
#include "redistribute/same_tensor.h"
#include "redistribute/shards.h"

#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

using redistribute::Shard;
using redistribute::ShardIndex;
using redistribute::shards_of;
using Piece = InlineVector<Interval, 4>;

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

// Returns the boxes of elements that both regions hold, in row-major order.
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

// The most messages of a plan.
constexpr std::size_t kMostWants = std::size_t{1} << 18;

Error too_many_messages() {
  return Error{ErrorCode::kRedistributeMeshTooLarge,
               "the ranks would send each other more than " +
                   std::to_string(kMostWants) + " messages",
               {},
               {},
               "shard the target alike, and redistribute on its own mesh"};
}

// Want is one shard that has elements for a receiver.
struct Want {
  std::size_t shard;
  std::int64_t dst_rank;
  std::size_t pieces;  // index into Wants::pieces
  std::int64_t bytes;
};

struct Wants {
  std::vector<Want> wants;
  std::vector<std::vector<Piece>> pieces;
};

Result<Wants> wants_of(const std::vector<Shard>& held,
                       const std::vector<Shard>& wanted, std::int64_t item) {
  const ShardIndex index(held);
  std::unordered_map<std::int64_t, std::size_t> shard_of;  // by rank
  for (std::size_t s = 0; s < held.size(); ++s) {
    for (const std::int64_t rank : held[s].ranks) shard_of.emplace(rank, s);
  }
  Wants out;
  for (const Shard& target : wanted) {
    const std::vector<std::size_t> shards = index.overlapping(target.region);
    if (shards.size() * target.ranks.size() >
        kMostWants + target.ranks.size()) {
      return fail(too_many_messages());
    }
    for (const std::size_t s : shards) {
      std::vector<Piece> pieces = common(held[s].region, target.region);
      const std::int64_t bytes = elements(pieces) * item;
      if (bytes == 0) continue;
      for (const std::int64_t rank : target.ranks) {
        const auto own = shard_of.find(rank);
        if (own != shard_of.end() && own->second == s) continue;
        out.wants.push_back({s, rank, out.pieces.size(), bytes});
      }
      out.pieces.push_back(std::move(pieces));
      if (out.wants.size() > kMostWants) return fail(too_many_messages());
    }
  }
  return out;
}

struct Load {
  std::int64_t near = 0;  // bytes inside the node
  std::int64_t far = 0;
};

std::int64_t total(const Load& load) { return load.near + load.far; }

// Senders are the holders of one shard, the least busy first. Loads only grow,
// so an entry with an outdated load is inserted again with the current one.
class Senders {
 public:
  using Loads = std::unordered_map<std::int64_t, Load>;

  void add(std::int64_t rank) { line_.emplace(0, rank); }

  // Returns the rank with the least load; on a tie the smallest rank.
  std::int64_t least_busy(const Loads& loads) {
    while (true) {
      const auto [load, rank] = line_.top();
      const auto now = loads.find(rank);
      if (now == loads.end() || total(now->second) == load) return rank;
      line_.pop();
      line_.emplace(total(now->second), rank);
    }
  }

 private:
  using Entry = std::pair<std::int64_t, std::int64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> line_;
};

// SendersOfShards stores the holders of each shard that is sent and that
// several ranks hold. It stores all holders, and the holders on each node.
class SendersOfShards {
 public:
  // `held` must outlive the object.
  SendersOfShards(const std::vector<Shard>& held, std::int64_t node_size)
      : held_(held), node_size_(node_size) {}

  // Prefers a holder on the receiver's node, then the least busy holder.
  std::int64_t pick(std::size_t shard, std::int64_t receiver,
                    const Senders::Loads& loads) {
    const std::vector<std::int64_t>& ranks = held_[shard].ranks;
    if (ranks.size() == 1) return ranks[0];
    const auto [of_shard, fresh] = lines_.try_emplace(shard);
    Lines& lines = of_shard->second;
    if (fresh) {
      for (const std::int64_t rank : ranks) {
        lines.all.add(rank);
        lines.on_node[rank / node_size_].add(rank);
      }
    }
    const auto near = lines.on_node.find(receiver / node_size_);
    return (near == lines.on_node.end() ? lines.all : near->second)
        .least_busy(loads);
  }

 private:
  struct Lines {
    Senders all;
    std::unordered_map<std::int64_t, Senders> on_node;
  };

  const std::vector<Shard>& held_;
  std::int64_t node_size_;
  std::unordered_map<std::size_t, Lines> lines_;
};

struct Sends {
  std::vector<MeshTransfer> transfers;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  std::int64_t nanoseconds = 0;
};

Sends assign(const std::vector<Shard>& held, Wants of,
             const Topology& topology) {
  std::vector<Want>& wants = of.wants;
  const std::int64_t node = topology.node_size();
  // Largest first balances the loads best. The other keys make the order
  // deterministic.
  std::stable_sort(wants.begin(), wants.end(),
                   [](const Want& a, const Want& b) {
                     return std::tie(b.bytes, a.shard, a.dst_rank) <
                            std::tie(a.bytes, b.shard, b.dst_rank);
                   });
  std::unordered_map<std::int64_t, Load> out;
  std::unordered_map<std::int64_t, Load> in;
  std::map<std::pair<std::int64_t, std::int64_t>, MeshTransfer> batches;
  SendersOfShards senders(held, node);
  for (const Want& want : wants) {
    const std::int64_t sender = senders.pick(want.shard, want.dst_rank, out);
    const bool far = sender / node != want.dst_rank / node;
    (far ? out[sender].far : out[sender].near) += want.bytes;
    (far ? in[want.dst_rank].far : in[want.dst_rank].near) += want.bytes;
    MeshTransfer& batch = batches[{sender, want.dst_rank}];
    batch.src_rank = sender;
    batch.dst_rank = want.dst_rank;
    batch.bytes += want.bytes;
    const std::vector<Piece>& pieces = of.pieces[want.pieces];
    batch.pieces.insert(batch.pieces.end(), pieces.begin(), pieces.end());
  }
  Sends sends;
  for (auto& [pair, batch] : batches) {
    sends.transfers.push_back(std::move(batch));
  }
  // Ranks send and receive at the same time. The links of a rank inside its
  // node and outside of it work in parallel.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  const auto timed = [&](const Load& load) {
    const auto part = [&](std::int64_t bytes, std::int64_t nodes) {
      if (bytes == 0) return std::int64_t{0};
      const auto [time, fresh] = known.try_emplace({bytes, nodes}, 0);
      if (fresh) {
        time->second =
            collective_nanoseconds(topology, CollectiveKind::kSendRecv,
                                   {2, nodes == 1 ? 2 : 1, nodes}, bytes);
      }
      return time->second;
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

// Returns the layouts without partials that reductions of the spec's layout can
// reach in one step.
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

Result<CrossMeshPlan> least_sends(const TensorSpec& src, const TensorSpec& dst,
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
    auto wants = wants_of(held, wanted, item);
    if (!wants) {
      refused = std::move(wants).error();
      continue;
    }
    Sends sends = assign(held, *std::move(wants), topology);
    CrossMeshPlan plan;
    plan.before = *std::move(before);
    plan.sent_layout = from.layout();
    plan.transfers = std::move(sends.transfers);
    plan.sent_bytes = sends.sent;
    plan.received_bytes = sends.received;
    plan.nanoseconds = plan.before.nanoseconds + sends.nanoseconds;
    // The peak counts the source, the reduced source, the target, and the
    // packed and waiting messages.
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

}  // namespace

Result<CrossMeshPlan> plan_between_meshes(const TensorSpec& src,
                                          const TensorSpec& dst,
                                          const Topology& topology,
                                          const RedistributeOptions& options) {
  return guarded([&] { return least_sends(src, dst, topology, options); });
}

}  // namespace shardprop
