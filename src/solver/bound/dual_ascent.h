// DualAscent decides when the dual bound starts and when it has the first turns
// of a search. It gives its results to the search.
#pragma once

#include "solver/bound/search_state.h"
#include "solver/tuning.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

class DualAscent {
 public:
  explicit DualAscent(SearchState& state) : state_(state) {}

  // Returns true once a cost is known, because the bound is sharper with one,
  // or after some rounds without a cost.
  bool is_due(int rounds) const;
  // Returns whether the caller needs a bound and has messages of an earlier
  // search. The bound of these messages may be enough.
  bool is_warm() const {
    const SolveOptions& options = state_.options;
    return options.enough_bound && options.messages != nullptr &&
           !options.messages->told.empty();
  }
  // Starts, or starts again with the best cost and the current prices.
  void start();
  // Returns whether the dual has the first worker's turns to itself.
  bool settling() const {
    return state_.dual != nullptr && !state_.dual->stalled() &&
           state_.dual->work() < tuning::kDualWorkFirst;
  }
  void run(std::uint64_t work);
  void gather();
  // Records the work of the dual. Call this once, at the end of the search.
  void finish();
  // Starts from the messages of another dual, or saves the messages of this
  // one.
  void begin_with(const Messages& messages);
  void leave(Messages& messages) const;

  // The choices and prices that guide the search, as of the last gather().
  const std::vector<int>& decoded() const { return decoded_; }
  const std::vector<double>& prices() const { return prices_; }

 private:
  void record(std::uint64_t work, const DualBound::Leaps& leaps);

  SearchState& state_;
  bool has_target_ = false;
  std::vector<int> decoded_;
  std::vector<double> prices_;
};

}  // namespace shardprop::solver
