#include "plan/hidden_time.h"

#include "plan/hidden_prices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// Prices that are tried, when they are good enough, and the share of the time
// left that one of them may take.
constexpr int kMostPrices = 16;
constexpr double kSmallGap = 1e-5;
constexpr double kShareOfTime = 0.5;
constexpr double kEnoughGap = 2e-4;
// What is spent on what no prices can tell apart.
constexpr int kMostBranches = 1000;
constexpr std::uint64_t kBranchWork = 500'000'000;

std::int64_t excess(const PlanEvaluation& plan) {
  std::int64_t sum = 0;
  for (const WindowLoad& load : plan.windows) {
    sum += load.hideable - load.compute;
  }
  return sum;
}

// "model.layers.3" of "model.layers.3.mlp.up_proj"; "" without a number.
std::string layer_of(const std::string& module_path) {
  std::size_t begin = 0;
  while (begin < module_path.size()) {
    const std::size_t end =
        std::min(module_path.find('.', begin), module_path.size());
    const std::string_view part(module_path.data() + begin, end - begin);
    if (!part.empty() &&
        part.find_first_not_of("0123456789") == std::string_view::npos) {
      return module_path.substr(0, end);
    }
    begin = end + 1;
  }
  return "";
}

// By slot: which of the repeated layers it belongs to, in the order in which
// they are first run; what stands between two goes with the one before.
std::vector<std::size_t> layers_of(const Graph& graph, std::size_t& count) {
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> out;
  std::size_t now = 0;
  for (const Node& node : graph.nodes()) {
    const std::string layer = layer_of(node.module_path);
    if (!layer.empty()) {
      now = numbers.try_emplace(layer, numbers.size()).first->second;
    }
    out.push_back(now);
  }
  out.push_back(now);
  count = numbers.size();
  return out;
}

}  // namespace

std::vector<std::int64_t> HiddenTime::by_slot(
    const std::vector<std::int64_t>& by_window) const {
  const PlanProblem& problem = search_.problem();
  std::vector<std::int64_t> out;
  const auto slots = static_cast<std::int64_t>(problem.graph().nodes().size());
  for (std::int64_t slot = 0; slot <= slots; ++slot) {
    out.push_back(by_window[problem.window_of(slot)]);
  }
  return out;
}

bool HiddenTime::is_close() const {
  const PlanSolution& best = search_.best();
  return static_cast<double>(best.evaluation.objective - best.lower_bound) <=
         kSmallGap * static_cast<double>(best.evaluation.objective);
}

std::vector<std::int64_t> HiddenTime::run() {
  if (search_.tried().evaluation.exposed() == 0 &&
      search_.best().evaluation.exposed() == 0) {
    return {};
  }
  network_.hidden_prices =
      by_slot(std::vector<std::int64_t>(search_.problem().num_windows(), 0));
  note_side();
  price();
  blend();
  if (!search_.is_done()) branch();
  return network_.hidden_prices;
}

// What takes long once takes too long a hundred times.
bool HiddenTime::takes_long() const {
  return search_.first_work() > kBranchWork / 10;
}

// Raises the bound. Leaves the best prices with the network.
void HiddenTime::price() {
  HiddenPrices prices(search_.problem().num_windows());
  std::vector<std::int64_t> best = network_.hidden_prices;
  std::int64_t bound = search_.best().lower_bound;
  Tried met = search_.tried();
  for (int i = 0; i < kMostPrices && !is_close(); ++i) {
    if (!prices.learn(met.evaluation, met.bound)) break;
    if (!prices.all_alike() && takes_long()) break;
    network_.hidden_prices = by_slot(prices.prices());
    if (!search_.solve(network_, {.share_of_time = kShareOfTime,
                                  .enough_gap = kEnoughGap})) {
      break;
    }
    met = search_.tried();
    note_side();
    if (exposed_ && hidden_ && !blended_) blend();
    if (search_.best().lower_bound > bound) {
      bound = search_.best().lower_bound;
      best = network_.hidden_prices;
    }
  }
  network_.hidden_prices = std::move(best);
}

void HiddenTime::note_side() {
  const Tried& tried = search_.tried();
  std::optional<Side>& side = excess(tried.evaluation) > 0 ? exposed_ : hidden_;
  if (side && side->bound >= tried.bound) return;
  side = Side{search_.last(), tried.evaluation.objective, tried.assignment,
              tried.bound};
  slots_ = tried.slots;
}

std::vector<HiddenTime::Side> HiddenTime::sides() const {
  std::vector<Side> out;
  for (const std::optional<Side>& side : {exposed_, hidden_}) {
    if (side) out.push_back(*side);
  }
  return out;
}

// The first layers as on one side, and the others as on the other: as many as
// leave as much to hide as there is compute.
void HiddenTime::blend() {
  if (!exposed_ || !hidden_) return;
  blended_ = true;
  std::size_t count = 0;
  const std::vector<std::size_t> layers =
      layers_of(search_.problem().graph(), count);
  for (const bool first_exposed : {true, false}) {
    std::size_t from = 0;
    std::size_t to = count;
    while (to - from > 1 && !is_close()) {
      const std::size_t seam = std::midpoint(from, to);
      if (!blend_at(layers, seam, first_exposed)) break;
      const bool too_much = excess(search_.tried().evaluation) > 0;
      (too_much == first_exposed ? to : from) = seam;
    }
  }
}

// The layers on both sides of the seam are free.
bool HiddenTime::blend_at(const std::vector<std::size_t>& layers,
                          std::size_t seam, bool first_exposed) {
  const Side& first = first_exposed ? *exposed_ : *hidden_;
  const Side& second = first_exposed ? *hidden_ : *exposed_;
  NetworkOptions options = network_;
  for (std::size_t v = 0; v < slots_.size(); ++v) {
    const std::size_t layer = layers[static_cast<std::size_t>(slots_[v])];
    if (layer == seam || layer + 1 == seam) continue;
    options.left[static_cast<std::uint32_t>(v)] = {
        (layer < seam ? first : second).assignment[v]};
  }
  return search_.solve(options,
                       {.bounds = false, .share_of_time = kShareOfTime});
}

namespace {

// What is left to choose from on one side, and what it costs at least.
struct Branch {
  std::map<std::uint32_t, std::vector<std::uint32_t>> left;
  std::int64_t bound = 0;
  friend bool operator>(const Branch& a, const Branch& b) {
    return a.bound > b.bound;
  }
};
using OpenBranches =
    std::priority_queue<Branch, std::vector<Branch>, std::greater<>>;

// With one of the choices of a variable, and without.
void split(Branch with, std::uint32_t variable, std::uint32_t choice,
           std::uint32_t num_choices, OpenBranches& open) {
  Branch without = with;
  std::vector<std::uint32_t>& rest = without.left[variable];
  if (rest.empty()) {
    rest.resize(num_choices);
    std::iota(rest.begin(), rest.end(), 0U);
  }
  std::erase(rest, choice);
  const bool is_empty = rest.empty();
  with.left[variable] = {choice};
  open.push(std::move(with));
  if (!is_empty) open.push(std::move(without));
}

}  // namespace

// Where the cheapest assignments at two prices differ in a choice, it is taken
// on one side and forbidden on the other: in the end the loads of all windows
// are fixed, and prices of 0 and 1 are exact.
void HiddenTime::branch() {
  if (takes_long()) return;
  const PlanSolution& best = search_.best();
  const std::uint64_t before = best.work;
  OpenBranches open;
  open.push({{}, best.lower_bound});
  for (int i = 0; i < kMostBranches && !open.empty(); ++i) {
    search_.raise_bound(open.top().bound);
    if (search_.is_done() || best.work - before > kBranchWork) return;
    Branch here = open.top();
    open.pop();
    NetworkOptions options = network_;
    options.left = here.left;
    if (!search_.solve(options, {.bounds = false})) {
      if (search_.stopped()) return;
      continue;  // there is nothing left here
    }
    here.bound = std::max(here.bound, search_.tried().bound);
    const solver::Assignment mine = search_.tried().assignment;
    options.hidden_prices =
        by_slot(HiddenPrices::extreme(search_.tried().evaluation.windows));
    if (here.bound < best.evaluation.objective) {
      if (!search_.solve(options, {.bounds = false})) return;
      here.bound = std::max(here.bound, search_.tried().bound);
    }
    if (here.bound >= best.evaluation.objective) continue;
    const Tried& other = search_.tried();
    const auto differ =
        std::mismatch(mine.begin(), mine.end(), other.assignment.begin()).first;
    if (differ == mine.end()) return;
    const auto variable = static_cast<std::uint32_t>(differ - mine.begin());
    split(std::move(here), variable, *differ, other.num_choices[variable],
          open);
  }
  if (open.empty()) search_.raise_bound(best.evaluation.objective);
}

}  // namespace shardprop
