#include "redistribute/search.h"

#include "redistribute/path_bound.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>

namespace shardprop::redistribute {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;

// A layout that is found for the first time takes the time of this many moves.
constexpr std::size_t kMovesOfNew = 32;

// The most strided layouts whose canonical form is cached.
constexpr std::size_t kMostForms = std::size_t{1} << 20;

// Standing is the part of a layout that every move into it reads.
struct Standing {
  Label label = kUnreached;  // label of the best path from the source so far
  Label ahead = kUnknown;    // lower bound of the rest of the path
  static constexpr Label kUnknown = -1;
};

struct Node {
  LocalSize size;
  std::uint32_t before = kNone;
  Move move = Move::kSlice;
  Mask group = 0;
};

// Layouts with equal priority are ordered by code, which does not depend on
// their numbers.
struct Waiting {
  Label whole;  // label plus lower bound of the rest
  std::uint64_t code;
  std::uint32_t node;
  friend bool operator>(const Waiting& a, const Waiting& b) {
    return std::tie(a.whole, a.code) > std::tie(b.whole, b.code);
  }
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
      // The entry is outdated if the layout was reached better since. A layout
      // that is reached better after its expansion is expanded again, so
      // rounded bounds do no harm.
      const Standing& standing = standings_[next.node];
      if (next.whole > standing.label + standing.ahead) continue;
      if (gives_up()) {
        if (best() == kUnreached) return std::nullopt;
        Path found = path();
        found.is_least = false;
        return found;
      }
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

  // For strided shards; returns kNone if the canonical form is outside the
  // alphabet.
  std::uint32_t canonical_number(const State& written) {
    const auto known = written_.find(written.code());
    if (known) return canonical_[*known];
    const auto form =
        canonical_state(written, problem_.active, problem_.alphabet,
                        problem_.mesh, problem_.meta.shape());
    const std::uint32_t number = form ? number_of(*form) : kNone;
    if (canonical_.size() < kMostForms) {
      written_.insert(written);
      canonical_.push_back(number);
    }
    return number;
  }

  void meet(std::uint32_t number) {
    if (standings_[number].ahead != Standing::kUnknown) return;
    nodes_[number].size = pricer_.local_size(state_of(number));
    standings_[number].ahead = ahead_(state_of(number));
  }

  Label best() const { return standings_[target_].label; }

  // Without strided shards, the search continues until a path is found.
  bool gives_up() const {
    return moves_ > problem_.most_moves &&
           (problem_.alphabet.has_strided() || best() != kUnreached);
  }

  // Returns a lower bound on the labels that such moves from `at` reach.
  Label least_after(std::uint32_t at, Move move, Mask group) {
    const std::int64_t least =
        sends_ ? pricer_.least(move, group, nodes_[at].size) : 0;
    return standings_[at].label + label_of(least, 1);
  }

  void expand_listed(std::uint32_t at) {
    const Exits& exits = problem_.graph->exits(at, scratch_);
    for (std::size_t r = 0; r < exits.runs.size(); ++r) {
      const Exits::Run run = exits.runs[r];
      const Label least = least_after(at, run.move, run.group);
      if (least >= best()) continue;
      for (const std::uint32_t to :
           problem_.graph->targets(at, exits, r, scratch_).states) {
        if (least >= standings_[to].label) continue;
        meet(to);
        relax(at, run.move, run.group, to, least);
      }
    }
  }

  void expand_found(std::uint32_t at) {
    const State state = state_of(at);
    const bool strided = problem_.alphabet.has_strided();
    const Mask unsettled = strided ? 0 : ahead_.unsettled(state);
    Label least = 0;
    // The move does not settle mesh dims outside the group.
    const auto admit = [&](Move move, Mask group) {
      least = least_after(at, move, group);
      return least + ahead_.covering(unsettled & ~group) < best();
    };
    table_.for_each(state, admit, [&](Move move, Mask group, const State& raw) {
      if (++moves_ > problem_.most_moves && gives_up()) return false;
      if (strided) {
        const std::uint32_t to = canonical_number(raw);
        if (to != kNone && to != at) relax(at, move, group, to, least);
      } else if (const auto known = index_.find(raw.code())) {
        relax(at, move, group, *known, least);
      } else if (least + ahead_.latencies(raw) < best()) {
        moves_ += kMovesOfNew;
        relax(at, move, group, number_of(raw), least);
      }
      return true;
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
  PathBound ahead_;
  bool sends_;
  StateIndex index_;
  StateIndex written_;                    // as moves produce them
  std::vector<std::uint32_t> canonical_;  // numbers of their canonical forms
  LayoutGraph::Scratch scratch_;
  std::vector<Node> nodes_;
  std::vector<Standing> standings_;
  Queue queue_;
  std::size_t moves_ = 0;  // moves that no graph listed
  std::uint32_t source_ = kNone;
  std::uint32_t target_ = kNone;
};

}  // namespace

std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target) {
  return Search(problem, source, target).run();
}

}  // namespace shardprop::redistribute
