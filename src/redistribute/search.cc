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
// that wins can have; times stay below 2^55 ns, a year.
using Label = std::int64_t;
constexpr Label kUnreached = std::numeric_limits<Label>::max() / 4;
constexpr Label label_of(std::int64_t nanoseconds, std::int64_t steps) {
  return nanoseconds * 64 + steps;
}
constexpr std::int64_t nanoseconds_of(Label label) { return label / 64; }

// What every move into a layout looks at, apart from the rest.
struct Standing {
  Label label = kUnreached;  // of the best path from the source so far
  Label ahead = kUnknown;    // no path on to the target is shorter
  static constexpr Label kUnknown = -1;
};

struct Node {
  LocalSize size;
  std::uint32_t before = kNone;
  Move move = Move::kSlice;
  Mask group = 0;
};

// Equal layouts in line are taken by their code, which does not depend on how
// layouts are numbered.
struct Waiting {
  Label whole;  // label and what is at least ahead
  std::uint64_t code;
  std::uint32_t node;
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.whole, a.code) > std::tie(b.whole, b.code);
  }
};

// What a layout at least has ahead of it: latencies plus bytes.
//
// A shard or partial that is not as the target wants it must take part in some
// collective, and so must one behind a cut that has to change. The least that
// collectives over a set of mesh dims can take is the cheapest way to cover
// the set by groups, by their latencies alone. And what a cell of ranks needs
// and none of them holds must come in, at no more than the best rate at which
// any collective feeds a cell; cells are single ranks, and the ranks that slow
// mesh dims set apart.
//
// No path costs less, so the search by it (A*) is exact.
class Ahead {
 public:
  // With strided shards a collective may change how others are written, and
  // tensors without elements travel for nothing: then there is no bound.
  Ahead(const SearchProblem& problem, const State& target)
      : problem_(problem),
        target_(target),
        bounded_(!problem.alphabet.has_strided() && problem.meta.numel() > 0) {
    if (!bounded_) return;
    const GroupTimes& times = problem.times;
    const int count = problem.active.count;
    for (Mask set = 1; set <= times.all(); ++set) {
      cover_[set] = kUnreached;
      const Mask first = set & (~set + 1);
      for (Mask group = 1; group <= times.all(); ++group) {
        if ((group & first) == 0) continue;
        const Label least = label_of(times.least_nanoseconds(group), 1);
        cover_[set] = std::min(cover_[set], cover_[set & ~group] + least);
      }
    }
    if (count == 0) return;
    const bool reduces =
        problem.alphabet.first_partial() < problem.alphabet.size();
    const auto item = static_cast<double>(item_size(problem.meta.dtype()));
    const CutList cuts = cuts_of(target);
    const auto probe = [&](Mask outer) {
      const double cost = item * times.least_per_byte(outer, reduces);
      for (const Mask last : {Mask{0x55555555}, Mask{0xaaaaaaaa}}) {
        Probe& made = probes_[probe_count_++];
        made = {outer, last, cost, {}};
        wanted_by(cuts, made);
      }
    };
    probe(times.all());
    if (times.crossing() != 0 && times.crossing() != times.all()) {
      probe(times.crossing());
    }
  }

  // The part that latencies have.
  Label latencies(const State& state) const {
    if (!bounded_) return 0;
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
    if (!bounded_) return 0;
    Mask terms = 0;  // of reductions that the target wants done
    for (int i = 0; i < problem_.active.count; ++i) {
      if (problem_.alphabet[state.symbol[i]].partial &&
          !problem_.alphabet[target_.symbol[i]].partial) {
        terms |= Mask{1} << i;
      }
    }
    const CutList cuts = cuts_of(state);
    double most = 0;
    for (std::size_t p = 0; p < probe_count_; ++p) {
      const Probe& probe = probes_[p];
      double needed = 1;
      for (const Interval& want : probe.wanted) {
        needed *= static_cast<double>(want.size());
      }
      const double kept = (terms & probe.outer) != 0 ? 0 : kept_by(cuts, probe);
      most = std::max(most, (needed - kept) * probe.per_element);
    }
    // Rounded down by more than rounding of times can make up for.
    const double least = most * (1 - 1e-9) - 64;
    const Label bytes =
        least > 0 ? label_of(static_cast<std::int64_t>(least), 0) : 0;
    return latencies(state) + bytes;
  }

 private:
  // One cell, by its coordinates on the mesh dims `outer`: the first or, where
  // `last` has a bit, the last. Two opposite ones, since shards move in or out
  // of any one cell by chance.
  struct Probe {
    Mask outer = 0;
    Mask last = 0;
    double per_element = 0;
    InlineVector<Interval, 6> wanted;
  };

  // Mesh dims that shard, first cuts first.
  struct CutList {
    std::array<std::int8_t, kMaxPlannedDims> mesh_dim{};
    std::array<std::int16_t, kMaxPlannedDims> dim{};
    int count = 0;
  };

  CutList cuts_of(const State& state) const {
    CutList cuts;
    const int count = problem_.active.count;
    for (int place = 0; place < count; ++place) {
      for (int i = 0; i < count; ++i) {
        const std::int16_t dim = problem_.alphabet[state.symbol[i]].dim;
        if (dim < 0 || state.order[i] != place) continue;
        const auto at = static_cast<std::size_t>(cuts.count++);
        cuts.mesh_dim[at] = static_cast<std::int8_t>(i);
        cuts.dim[at] = dim;
      }
    }
    return cuts;
  }

  Interval part_of(Interval whole, int mesh_dim, const Probe& probe) const {
    const std::int64_t parts =
        problem_.active.sizes[static_cast<std::size_t>(mesh_dim)];
    const bool last = (probe.last >> mesh_dim & 1U) != 0;
    const Interval part = chunk(whole.size(), parts, last ? parts - 1 : 0);
    return {whole.begin + part.begin, whole.begin + part.end};
  }

  // A box that the cell's ranks want among them: no more than they do want.
  void wanted_by(const CutList& cuts, Probe& probe) const {
    for (const std::int64_t size : problem_.meta.shape()) {
      probe.wanted.push_back({0, size});
    }
    for (int k = 0; k < cuts.count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      bool outer = (probe.outer >> cuts.mesh_dim[at] & 1U) != 0;
      // An inner cut is undone by the union over the cell, unless it comes
      // before an outer one, which would leave holes: then one rank's part.
      for (int later = k + 1; later < cuts.count; ++later) {
        const auto behind = static_cast<std::size_t>(later);
        outer = outer || (cuts.dim[behind] == cuts.dim[at] &&
                          (probe.outer >> cuts.mesh_dim[behind] & 1U) != 0);
      }
      if (!outer) continue;
      Interval& want = probe.wanted[static_cast<std::size_t>(cuts.dim[at])];
      want = part_of(want, cuts.mesh_dim[at], probe);
    }
  }

  // How much of what the cell wants its ranks hold among them: no less.
  double kept_by(const CutList& cuts, const Probe& probe) const {
    InlineVector<Interval, 6> held;
    for (const std::int64_t size : problem_.meta.shape()) {
      held.push_back({0, size});
    }
    std::uint64_t blurred = 0;  // dims whose union may have holes from here on
    for (int k = 0; k < cuts.count; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const std::uint64_t dim = std::uint64_t{1} << cuts.dim[at];
      if ((probe.outer >> cuts.mesh_dim[at] & 1U) == 0) {
        blurred |= dim;
      } else if ((blurred & dim) == 0) {
        Interval& have = held[static_cast<std::size_t>(cuts.dim[at])];
        have = part_of(have, cuts.mesh_dim[at], probe);
      }
    }
    double kept = 1;
    for (std::size_t d = 0; d < held.size(); ++d) {
      const Interval& want = probe.wanted[d];
      kept *= static_cast<double>(
          std::max(std::int64_t{0}, std::min(want.end, held[d].end) -
                                        std::max(want.begin, held[d].begin)));
    }
    return kept;
  }

  const SearchProblem& problem_;
  State target_;
  bool bounded_;
  std::array<Probe, 4> probes_;
  std::size_t probe_count_ = 0;
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
        ahead_(problem, target),
        sends_(problem.meta.numel() > 0) {
    if (problem.graph != nullptr) {
      nodes_.resize(problem.graph->states().size());
      standings_.resize(nodes_.size());
    }
    source_ = number_of(source);
    target_ = number_of(target);
  }

  std::optional<Path> run() {
    standings_[source_].label = 0;
    queue_.push({standings_[source_].ahead, 0, source_});
    while (!queue_.empty()) {
      const Waiting next = queue_.top();
      queue_.pop();
      if (next.node == target_) return path();
      // Reached better since. A layout reached better after it was expanded
      // is expanded again, so that rounded bounds lose nothing.
      const Standing& standing = standings_[next.node];
      if (next.whole > standing.label + standing.ahead) continue;
      if (problem_.graph != nullptr) {
        expand_listed(next.node);
      } else {
        expand_found(next.node);
      }
    }
    return std::nullopt;
  }

 private:
  const State& state_of(std::uint32_t node) const {
    return problem_.graph != nullptr ? problem_.graph->states()[node]
                                     : index_.states()[node];
  }

  std::uint32_t number_of(const State& state) {
    const std::uint32_t number = problem_.graph != nullptr
                                     ? problem_.graph->number(state)
                                     : index_.insert(state).first;
    if (number >= nodes_.size()) {
      nodes_.emplace_back();
      standings_.emplace_back();
    }
    meet(number);
    return number;
  }

  void meet(std::uint32_t number) {
    if (standings_[number].ahead != Standing::kUnknown) return;
    nodes_[number].size = pricer_.local_size(state_of(number));
    standings_[number].ahead = ahead_(state_of(number));
  }

  Label best() const { return standings_[target_].label; }

  // No such move out of `at` leads to a path of less.
  Label least_after(std::uint32_t at, Move move, Mask group) {
    const std::int64_t least =
        sends_ ? pricer_.least(move, group, nodes_[at].size) : 0;
    return standings_[at].label + label_of(least, 1);
  }

  void expand_listed(std::uint32_t at) {
    for (const LayoutGraph::Run& run : problem_.graph->runs(at)) {
      const Label least = least_after(at, run.move, run.group);
      if (least >= best()) continue;
      for (const std::uint16_t to : problem_.graph->targets(run)) {
        if (least >= standings_[to].label) continue;
        meet(to);
        relax(at, run.move, run.group, to, least);
      }
    }
  }

  void expand_found(std::uint32_t at) {
    const State state = state_of(at);
    Label least = 0;
    const auto admit = [&](Move move, Mask group) {
      least = least_after(at, move, group);
      return least < best();
    };
    table_.for_each(state, admit, [&](Move move, Mask group, const State& raw) {
      if (least + ahead_.latencies(raw) >= best()) return;
      State to = raw;
      if (problem_.alphabet.has_strided()) {
        const auto form =
            canonical_state(raw, problem_.active, problem_.alphabet,
                            problem_.mesh, problem_.meta.shape());
        if (!form || *form == state) return;
        to = *form;
      }
      relax(at, move, group, number_of(to), least);
    });
  }

  void relax(std::uint32_t at, Move move, Mask group, std::uint32_t to,
             Label least) {
    Standing& standing = standings_[to];
    if (least >= standing.label || least + standing.ahead >= best()) return;
    Node& node = nodes_[to];
    const MovePrice price = pricer_.price(
        move, group, state_of(at), nodes_[at].size, state_of(to), node.size);
    if (problem_.memory_limit) {
      const std::int64_t source =
          at == source_ ? 0 : pricer_.bytes(nodes_[source_].size);
      if (price.held_bytes + source > *problem_.memory_limit) return;
    }
    const Label label = standings_[at].label + label_of(price.nanoseconds, 1);
    if (label >= standing.label || label + standing.ahead >= best()) return;
    standing.label = label;
    node.before = at;
    node.move = move;
    node.group = group;
    queue_.push({label + standing.ahead, state_of(to).code(), to});
  }

  Path path() const {
    Path path;
    path.nanoseconds = nanoseconds_of(best());
    for (std::uint32_t at = target_; nodes_[at].before != kNone;
         at = nodes_[at].before) {
      path.steps.push_back({nodes_[at].move, nodes_[at].group,
                            state_of(nodes_[at].before), state_of(at)});
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

  const SearchProblem& problem_;
  MoveTable table_;
  MovePricer pricer_;
  Ahead ahead_;
  bool sends_;
  StateIndex index_;
  std::vector<Node> nodes_;
  std::vector<Standing> standings_;
  Queue queue_;
  std::uint32_t source_ = kNone;
  std::uint32_t target_ = kNone;
};

}  // namespace

std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target) {
  return Search(problem, source, target).run();
}

}  // namespace shardprop::redistribute
