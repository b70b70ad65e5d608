#include "redistribute/search.h"

#include "redistribute/growing_layout_graph.h"
#include "redistribute/layout_prices.h"
#include "redistribute/path_bound.h"
#include "redistribute/shortest_paths.h"

#include <tuple>
#include <vector>

namespace shardprop::redistribute {
namespace {

// A layout that is found for the first time takes the time of this many moves.
constexpr std::size_t kMovesOfNew = 32;

// Layouts with equal priority are ordered by code, which does not depend on
// their numbers.
struct WaitingCode {
  Label priority;  // label plus lower bound of the rest
  std::uint64_t code;
  std::uint32_t layout;
  friend bool operator>(const WaitingCode& a, const WaitingCode& b) {
    return std::tie(a.priority, a.code) > std::tie(b.priority, b.code);
  }
};

// PairSearch finds the path from one layout to another. The layouts and moves
// are those of the problem's graph, or of a growing one.
class PairSearch : private ShortestPaths<PairSearch, WaitingCode> {
 public:
  PairSearch(const SearchProblem& problem, const State& source,
             const State& target)
      : problem_(problem), bound_(problem, target) {
    if (problem.graph != nullptr) {
      prices_.emplace(problem.times, problem.active, *problem.graph,
                      problem.meta);
      source_ = problem.graph->number(source);
      target_ = problem.graph->number(target);
      grow(problem.graph->states().size());
    } else {
      growing_.emplace(problem.active, problem.alphabet, problem.mesh,
                       problem.meta.shape());
      prices_.emplace(problem.times, problem.active, problem.alphabet,
                      problem.meta, growing_->states());
      source_ = growing_->insert(source);
      target_ = growing_->insert(target);
      grow(64);
    }
  }

  std::optional<Path> run() {
    ahead(source_);
    start(source_);
    settle();
    if (best() == kUnreached) return std::nullopt;
    Path path = path_to(target_, states());
    path.is_least = !gave_up_;
    return path;
  }

 private:
  friend ShortestPaths;
  static constexpr Label kUnknown = -1;

  static constexpr bool kIsGuided = true;
  // Only paths that are better than the best known one are of use.
  Label limit() const { return best() - 1; }
  Label ahead(std::uint32_t layout) {
    Label& known = bounds_[layout];
    if (known == kUnknown) known = bound_(states()[layout]);
    return known;
  }
  Label priority(std::uint32_t layout) const {
    return labels_[layout] + bounds_[layout];
  }
  WaitingCode waiting(std::uint32_t layout) const {
    return {priority(layout), states()[layout].code(), layout};
  }
  bool is_finished(const WaitingCode& next) {
    if (next.layout == target_) return true;
    gave_up_ = gives_up();
    return gave_up_;
  }
  Label move_label(LayoutPrices::RunPrices& prices, std::uint32_t at,
                   const Step& step, MoveForm form, std::uint32_t to) {
    return problem_.memory_limit ? move_label(at, step.move, step.group, to)
                                 : label_of(prices.nanoseconds(form, to), 1);
  }
  Label move_label(std::uint32_t at, Move move, Mask group, std::uint32_t to) {
    const MovePrice price = prices_->price(at, move, group, to);
    if (problem_.memory_limit) {
      const std::int64_t source = at == source_ ? 0 : prices_->bytes(source_);
      if (price.held_bytes + source > *problem_.memory_limit) {
        return kUnreached;
      }
    }
    return label_of(price.nanoseconds, 1);
  }
  void expand(std::uint32_t at) {
    if (problem_.graph == nullptr) {
      expand_growing(at);
      return;
    }
    const Exits& exits = problem_.graph->exits(at, scratch_);
    for (std::uint32_t run = 0; run < exits.runs.size(); ++run) {
      follow(*problem_.graph, *prices_, at, exits, run);
    }
  }

  void expand_growing(std::uint32_t at) {
    const State state = states()[at];
    const bool strided = problem_.alphabet.has_strided();
    const Mask unsettled = strided ? 0 : bound_.unsettled(state);
    Label least = 0;
    // The move does not settle mesh dims outside the group.
    const auto admit = [&](Move move, Mask group) {
      least = least_after(*prices_, at, move, group);
      return least + bound_.covering(unsettled & ~group) < best();
    };
    const auto arrive = [&](Move move, Mask group, std::uint32_t to) {
      if (to >= labels_.size()) grow(2 * labels_.size() + to);
      relax(at, {move, group, 0}, to, least,
            [&] { return move_label(at, move, group, to); });
    };
    growing_->for_each_move(
        state, admit, [&](Move move, Mask group, const State& produced) {
          if (++moves_ > problem_.most_moves && gives_up()) return false;
          if (strided) {
            const auto to = growing_->insert_canonical(produced);
            if (to && *to != at) arrive(move, group, *to);
          } else if (const auto known = growing_->find(produced)) {
            arrive(move, group, *known);
          } else if (least + bound_.latencies(produced) < best()) {
            moves_ += kMovesOfNew;
            arrive(move, group, growing_->insert(produced));
          }
          return true;
        });
  }

  void grow(std::size_t count) {
    resize(count);
    prices_->resize(count);
    bounds_.resize(count, kUnknown);
  }

  const std::vector<State>& states() const {
    return problem_.graph != nullptr ? problem_.graph->states()
                                     : growing_->states();
  }

  Label best() const { return labels_[target_]; }

  // Without strided shards, the search continues until a path is found.
  bool gives_up() const {
    return moves_ > problem_.most_moves &&
           (problem_.alphabet.has_strided() || best() != kUnreached);
  }

  const SearchProblem& problem_;
  PathBound bound_;
  std::optional<GrowingLayoutGraph> growing_;
  std::optional<LayoutPrices> prices_;
  std::vector<Label> bounds_;  // of the rest of a path; kUnknown until needed
  std::size_t moves_ = 0;      // moves that no graph listed
  bool gave_up_ = false;
  std::uint32_t source_ = kNone;
  std::uint32_t target_ = kNone;
};

}  // namespace

std::optional<Path> shortest_path(const SearchProblem& problem,
                                  const State& source, const State& target) {
  return PairSearch(problem, source, target).run();
}

}  // namespace shardprop::redistribute
