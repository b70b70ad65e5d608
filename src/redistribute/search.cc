#include "redistribute/search.h"

#include <shardprop/base/hash.h>
#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>

namespace shardprop::redistribute {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

// Nanoseconds above steps in one number, so that one comparison says which of
// two paths is better. 64 steps are more than any path of distinct layouts
// that wins can have; times stay below 2^57 ns, four years.
using Label = std::int64_t;
constexpr Label kUnreached = std::numeric_limits<Label>::max() / 4;
constexpr Label label_of(std::int64_t nanoseconds, std::int64_t steps) {
  return nanoseconds * 64 + steps;
}
constexpr std::int64_t nanoseconds_of(Label label) { return label / 64; }

struct Node {
  LocalSize size;
  Label label = kUnreached;  // of the best path from the source so far
  Label ahead = 0;           // no path on to the target is shorter
  std::uint32_t before = kNone;
  Move move = Move::kSlice;
  Mask group = 0;
  bool done = false;
};

struct Waiting {
  Label whole;  // label and what is at least ahead
  std::uint32_t node;
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.whole, a.node) > std::tie(b.whole, b.node);
  }
};

// What a layout at least has ahead of it: latencies plus bytes.
//
// A shard or partial that is not as the target wants it must take part in some
// collective, and so must one behind a cut that has to change. The least that
// collectives over a set of mesh dims can take is the cheapest way to cover
// the set by groups, by their latencies alone. And what a rank needs and does
// not hold it must receive, at no more than the best rate of any group.
//
// A collective changes no standing but of its own group and brings a rank no
// byte for free, so both bounds are consistent and so is their sum: the search
// by it (A*) is exact.
class Ahead {
 public:
  Ahead(const SearchProblem& problem, const State& target)
      : problem_(problem), target_(target) {
    const int count = problem.active.count;
    for (Mask set = 1; set < Mask{1} << count; ++set) {
      cover_[set] = kUnreached;
      const Mask first = set & (~set + 1);
      for (Mask group = 1; group < Mask{1} << count; ++group) {
        if ((group & first) == 0) continue;
        const std::int64_t least = problem.times.least_nanoseconds(group);
        cover_[set] =
            std::min(cover_[set], cover_[set & ~group] + label_of(least, 1));
      }
    }
    if (problem.alphabet.has_strided()) return;
    per_byte_ = problem.times.least_nanoseconds_per_byte();
    item_ = static_cast<double>(item_size(problem.meta.dtype()));
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      wanted_[probe] = held_by(target, probe);
    }
  }

  // The part that latencies have.
  Label latencies(const State& state) const {
    // With strided shards a collective may change how others are written.
    if (problem_.alphabet.has_strided()) return 0;
    const int count = problem_.active.count;
    Mask unsettled = 0;
    for (int i = 0; i < count; ++i) {
      if (state.symbol[i] == 0) continue;
      const Alphabet& alphabet = problem_.alphabet;
      // Sums and averages turn into one another without a collective.
      const bool settled = alphabet[state.symbol[i]].partial
                               ? alphabet[target_.symbol[i]].partial
                               : state.symbol[i] == target_.symbol[i] &&
                                     state.order[i] == target_.order[i];
      if (!settled) unsettled |= Mask{1} << i;
    }
    if (unsettled == 0) return 0;
    Mask behind = 0;
    for (int i = 0; i < count; ++i) {
      const std::int16_t dim = problem_.alphabet[state.symbol[i]].dim;
      if ((unsettled >> i & 1U) == 0 || dim < 0) continue;
      for (int j = 0; j < count; ++j) {
        if (problem_.alphabet[state.symbol[j]].dim == dim &&
            state.order[j] > state.order[i]) {
          behind |= Mask{1} << j;
        }
      }
    }
    return cover_[unsettled | behind];
  }

  // Both parts.
  Label operator()(const State& state) const {
    if (problem_.alphabet.has_strided()) return 0;
    const bool terms = holds_terms(state);
    double most = 0;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const Block held = held_by(state, probe);
      double needed = 1;
      double kept = terms ? 0 : 1;
      for (std::size_t d = 0; d < held.dims.size(); ++d) {
        const Interval& want = wanted_[probe].dims[d];
        const Interval& have = held.dims[d];
        needed *= static_cast<double>(want.size());
        kept *= static_cast<double>(std::max(
            std::int64_t{0},
            std::min(want.end, have.end) - std::max(want.begin, have.begin)));
      }
      most = std::max(most, needed - kept);
    }
    // Rounded down by more than rounding of times can make up for.
    const double least = most * item_ * per_byte_ * (1 - 1e-9) - 64;
    const Label bytes =
        least > 0 ? label_of(static_cast<std::int64_t>(least), 0) : 0;
    return latencies(state) + bytes;
  }

 private:
  // Two ranks far apart, whose shards change with any order of cuts.
  static constexpr std::size_t kProbes = 2;
  struct Block {
    InlineVector<Interval, 6> dims;
  };

  // Terms of a reduction that the target wants reduced.
  bool holds_terms(const State& state) const {
    for (int i = 0; i < problem_.active.count; ++i) {
      if (problem_.alphabet[state.symbol[i]].partial &&
          !problem_.alphabet[target_.symbol[i]].partial) {
        return true;
      }
    }
    return false;
  }

  Block held_by(const State& state, std::size_t probe) const {
    Block block;
    for (const std::int64_t size : problem_.meta.shape()) {
      block.dims.push_back({0, size});
    }
    const int count = problem_.active.count;
    for (int place = 0; place < count; ++place) {
      for (int i = 0; i < count; ++i) {
        const Alphabet::Symbol& symbol = problem_.alphabet[state.symbol[i]];
        if (!symbol.shard() || state.order[i] != place) continue;
        const std::int64_t parts =
            problem_.active.sizes[static_cast<std::size_t>(i)];
        const bool last = (static_cast<std::size_t>(i) + probe) % 2 == 1;
        Interval& held = block.dims[static_cast<std::size_t>(symbol.dim)];
        const Interval part = chunk(held.size(), parts, last ? parts - 1 : 0);
        held = {held.begin + part.begin, held.begin + part.end};
      }
    }
    return block;
  }

  const SearchProblem& problem_;
  State target_;
  double per_byte_ = 0;
  double item_ = 0;
  std::array<Block, kProbes> wanted_;
  std::array<Label, std::size_t{1} << kMaxPlannedDims> cover_{};
};

using Queue =
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

class Search {
 public:
  Search(const SearchProblem& problem, const State& source, const State& target)
      : problem_(problem),
        table_(problem.active, problem.alphabet),
        pricer_(problem.times, problem.active, problem.alphabet, problem.meta),
        ahead_(problem, target) {
    nodes_.reserve(64);
    source_ = node_of(source);
    target_ = node_of(target);
  }

  std::optional<Path> run() {
    nodes_[source_].label = 0;
    queue_.push({nodes_[source_].ahead, source_});
    while (!queue_.empty()) {
      const std::uint32_t at = queue_.top().node;
      queue_.pop();
      if (at == target_) return path();
      if (nodes_[at].done) continue;
      nodes_[at].done = true;
      expand(at);
    }
    return std::nullopt;
  }

 private:
  std::uint32_t node_of(const State& state) {
    const auto [number, made] = index_.insert(state);
    if (made) {
      nodes_.emplace_back();
      nodes_.back().size = pricer_.local_size(state);
      nodes_.back().ahead = ahead_(state);
    }
    return number;
  }

  void expand(std::uint32_t at) {
    const State state = index_.states()[at];
    const Label here = nodes_[at].label;
    table_.for_each(state, [&](Move move, Mask group, const State& raw) {
      const Label least =
          here + label_of(problem_.times.least_nanoseconds(move, group), 1);
      if (least >= nodes_[target_].label) return;
      if (!problem_.alphabet.has_strided()) {
        relax(at, state, here, move, group, raw, least);
        return;
      }
      const auto form = canonical_state(raw, problem_.active, problem_.alphabet,
                                        problem_.mesh, problem_.meta.shape());
      if (form && !(*form == state)) {
        relax(at, state, here, move, group, *form, least);
      }
    });
  }

  void relax(std::uint32_t at, const State& state, Label here, Move move,
             Mask group, const State& to, Label least) {
    if (least + ahead_.latencies(to) >= nodes_[target_].label) return;
    const std::uint32_t number = node_of(to);
    if (least >= nodes_[number].label ||
        least + nodes_[number].ahead >= nodes_[target_].label) {
      return;
    }
    const MovePrice price = pricer_.price(move, group, state, nodes_[at].size,
                                          to, nodes_[number].size);
    if (problem_.memory_limit) {
      const std::int64_t source =
          at == source_ ? 0 : pricer_.bytes(nodes_[source_].size);
      if (price.held_bytes + source > *problem_.memory_limit) return;
    }
    const Label label = here + label_of(price.nanoseconds, 1);
    Node& node = nodes_[number];
    if (label >= node.label || label + node.ahead >= nodes_[target_].label) {
      return;
    }
    node.label = label;
    node.before = at;
    node.move = move;
    node.group = group;
    queue_.push({label + node.ahead, number});
  }

  Path path() const {
    Path path;
    path.nanoseconds = nanoseconds_of(nodes_[target_].label);
    const auto& states = index_.states();
    for (std::uint32_t at = target_; nodes_[at].before != kNone;
         at = nodes_[at].before) {
      path.steps.push_back({nodes_[at].move, nodes_[at].group,
                            states[nodes_[at].before], states[at]});
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

  const SearchProblem& problem_;
  MoveTable table_;
  MovePricer pricer_;
  Ahead ahead_;
  StateIndex index_;
  std::vector<Node> nodes_;
  Queue queue_;
  std::uint32_t source_ = kNone;
  std::uint32_t target_ = kNone;
};

}  // namespace

std::pair<std::uint32_t, bool> StateIndex::insert(const State& state) {
  if (2 * states_.size() >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) {
      slots_[at] = static_cast<std::uint32_t>(states_.size());
      states_.push_back(state);
      return {slots_[at], true};
    }
    if (states_[slots_[at]] == state) return {slots_[at], false};
  }
}

std::optional<std::uint32_t> StateIndex::find(const State& state) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_mix(0, state.code()) & mask;;
       at = (at + 1) & mask) {
    if (slots_[at] == kEmpty) return std::nullopt;
    if (states_[slots_[at]] == state) return slots_[at];
  }
}

void StateIndex::grow() {
  slots_.assign(slots_.size() * 4, kEmpty);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    std::size_t at = hash_mix(0, states_[i].code()) & mask;
    while (slots_[at] != kEmpty) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target) {
  return Search(problem, source, target).run();
}

}  // namespace shardprop::redistribute
