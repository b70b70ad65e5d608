#include "plan/search/overlap_branching.h"

#include "plan/tuning.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double OverlapBranching::Line::at(const Multipliers& multipliers) const {
  double value = base;
  for (std::size_t c = 0; c < excess.size(); ++c) {
    value += multipliers[c] * excess[c];
  }
  return value;
}

void OverlapBranching::add(const NetworkAssignment& assignment,
                           const PlanEvaluation& figures) {
  for (const Line& line : lines_) {
    if (line.assignment == assignment) return;
  }
  Line line{assignment,
            static_cast<double>(figures.objective - figures.exposed()),
            {}};
  for (const WindowLoad& window : figures.windows) {
    line.excess.push_back(static_cast<double>(window.overlappable) -
                          static_cast<double>(window.compute));
  }
  lines_.push_back(std::move(line));
}

void OverlapBranching::open(Branch branch) {
  open_.push_back(std::move(branch));
  std::push_heap(open_.begin(), open_.end());
}

// Choices were left out at targets that were at least the present one.
void OverlapBranching::close(std::int64_t bound) {
  closed_ = std::min({closed_, bound, target()});
}

void OverlapBranching::open_root() {
  Branch root;
  root.bound = best_.solution().lower_bound;
  for (const std::int64_t multiplier : network_.overlap_multipliers) {
    root.multipliers.push_back(static_cast<double>(multiplier) /
                               kOverlapMultiplierUnit);
  }
  open(std::move(root));
}

void OverlapBranching::bound(const NetworkOptions& network, int most_branches,
                             bool is_again) {
  network_ = network;
  if (search_.network(network_).num_entries() > tuning::kMostBranchedEntries) {
    return;
  }
  budget_ = search_.budget().share(tuning::kBranchingBudgetShare);
  if (!open_earlier()) {
    if (is_again) return;
    open_root();
  }
  for (int i = 0; i < most_branches && !open_.empty(); ++i) {
    best_.raise_bound(std::min(
        {open_.front().bound, closed_, best_.solution().evaluation.objective}));
    if (best_.is_done() || budget_.is_stopped()) break;
    std::pop_heap(open_.begin(), open_.end());
    Branch here = std::move(open_.back());
    open_.pop_back();
    raise_bound(here);
    if (here.bound >= target()) {
      close(here.bound);
    } else {
      divide(std::move(here));
    }
  }
  if (open_.empty()) {
    best_.raise_bound(std::min(closed_, best_.solution().evaluation.objective));
  }
  keep_branches();
}

// Returns the network with these multipliers.
NetworkOptions OverlapBranching::at(const Multipliers& multipliers) const {
  NetworkOptions out = network_;
  for (std::size_t w = 0; w < multipliers.size(); ++w) {
    out.overlap_multipliers[w] = std::llround(
        multipliers[w] * static_cast<double>(kOverlapMultiplierUnit));
  }
  return out;
}

OverlapBranching::Lines OverlapBranching::lines_of(const Branch& branch) const {
  Lines out;
  for (const Line& line : lines_) {
    if (branch.left.contains(line.assignment)) out.push_back(&line);
  }
  return out;
}

double OverlapBranching::least_at(const Lines& lines, const Multipliers& at) {
  double least = std::numeric_limits<double>::infinity();
  for (const Line* line : lines) least = std::min(least, line->at(at));
  return least;
}

// The least line is concave in the multipliers. The steps go up along it and
// get shorter.
OverlapBranching::Promise OverlapBranching::promise(
    const Lines& lines, const Multipliers& from) const {
  Promise best;
  Multipliers at = from;
  for (int step = 1; step <= tuning::kAscentSteps; ++step) {
    const Line* least = *std::min_element(
        lines.begin(), lines.end(),
        [&](const Line* a, const Line* b) { return a->at(at) < b->at(at); });
    if (const double value = least->at(at); value > best.value) {
      best = {value, at};
    }
    double length = 0;
    for (const double excess : least->excess) length += excess * excess;
    if (length == 0) break;
    const double stride = tuning::kFirstAscentStride /
                          std::sqrt(static_cast<double>(step) * length);
    for (std::size_t c = 0; c < at.size(); ++c) {
      at[c] = std::clamp(at[c] + stride * least->excess[c], 0.0, 1.0);
    }
  }
  // The maximum of one line is at its extreme multipliers, which the steps
  // approach only.
  for (const Line* line : lines) {
    for (std::size_t c = 0; c < at.size(); ++c) {
      if (line->excess[c] != 0) at[c] = line->excess[c] > 0 ? 1 : 0;
    }
    if (const double value = least_at(lines, at); value > best.value) {
      best = {value, at};
    }
  }
  return best;
}

// Returns multipliers on the way from those of the branch to the promise: the
// nearest ones at which all lines are above the target. Messages are better the
// nearer the multipliers are.
OverlapBranching::Multipliers OverlapBranching::toward(const Promise& most,
                                                       const Lines& lines,
                                                       const Branch& branch,
                                                       double reach) const {
  const Multipliers& from = branch.multipliers;
  const auto between = [&](double share) {
    Multipliers out;
    for (std::size_t c = 0; c < from.size(); ++c) {
      out.push_back(from[c] + share * (most.at[c] - from[c]));
    }
    return out;
  };
  const auto goal = static_cast<double>(target());
  const double enough =
      std::min((goal + most.value) / 2,
               goal + tuning::kBranchMarginShare *
                          (goal - static_cast<double>(branch.bound)));
  double low = 0;
  double high = 1;
  for (int i = 0; i < tuning::kLevelHalvings; ++i) {
    const double middle = (low + high) / 2;
    (least_at(lines, between(middle)) < enough ? low : high) = middle;
  }
  return between(reach * high);
}

void OverlapBranching::raise_bound(Branch& branch) {
  if (!branch.messages) bound_at(branch, branch.multipliers);
  double reach = 1;
  for (int i = 0; i < tuning::kMostMultipliersOfBranch; ++i) {
    const Lines lines = lines_of(branch);
    const std::int64_t before = branch.bound;
    if (before >= target() || budget_.is_stopped()) return;
    // Messages may lead to the first plan of the branch.
    if (lines.empty()) {
      if (!bound_at(branch, branch.multipliers)) return;
      continue;
    }
    const Promise most = promise(lines, branch.multipliers);
    if (most.value < static_cast<double>(target())) return;
    const bool is_new = bound_at(branch, toward(most, lines, branch, reach));
    const auto gain = static_cast<double>(branch.bound - before);
    const auto rest = static_cast<double>(target() - before);
    if (gain == 0) reach /= 2;
    if (!is_new && (gain == 0 ? reach < tuning::kLeastBranchReach
                              : gain < tuning::kLeastBranchGainShare * rest)) {
      break;
    }
  }
  const auto rest = static_cast<double>(target() - branch.bound);
  if (rest > 0 &&
      rest < tuning::kRoundingShare * static_cast<double>(target())) {
    bound_at_promise(branch);
  }
}

// Raises the bound at the multipliers of the promise. Costs at multipliers between
// 0 and 1 are rounded down, so that a bound near the target may need extreme ones.
void OverlapBranching::bound_at_promise(Branch& branch) {
  const Lines lines = lines_of(branch);
  if (lines.empty()) return;
  const Promise most = promise(lines, branch.multipliers);
  if (most.value >= static_cast<double>(target())) bound_at(branch, most.at);
}

bool OverlapBranching::bound_at(Branch& branch,
                                const Multipliers& multipliers) {
  NetworkOptions options = at(multipliers);
  options.left = std::move(branch.left);
  solver::Messages messages;
  if (branch.messages) messages = *branch.messages;
  const std::int64_t goal = target();
  PossiblePart part = search_.possible_part(options, goal, budget_, messages);
  if (part.failure) {
    branch.left = std::move(options.left);
    return false;
  }
  const std::int64_t bound = part.is_empty ? goal : std::min(part.bound, goal);
  if (bound > branch.bound || !branch.messages) {
    branch.multipliers = multipliers;
    branch.messages =
        std::make_shared<const solver::Messages>(std::move(messages));
    divisions_[branch.node].multipliers = branch.multipliers;
    divisions_[branch.node].messages = branch.messages;
  }
  branch.bound = std::max(branch.bound, bound);
  if (part.is_empty) return false;
  branch.left = std::move(part.left);
  branch.decoded = std::move(part.decoded);
  if (!part.plan) return false;
  const std::size_t known = lines_.size();
  add(branch.decoded, part.evaluation);
  return lines_.size() > known;
}

// Returns two assignments that a division should separate: the plans with the
// most and the least excess among the plans that bind the bound. If there is only one
// plan, the other end is the assignment to which the messages led.
std::optional<OverlapBranching::Ends> OverlapBranching::ends_of(
    const Branch& branch) const {
  const Lines lines = lines_of(branch);
  const auto by_excess = [](const Line* a, const Line* b) {
    return sum_of(a->excess) < sum_of(b->excess);
  };
  Ends out;
  out.weights.resize(branch.multipliers.size(), 1);
  if (lines.empty()) return std::nullopt;
  if (lines.size() == 1) {
    out.up = lines.front()->assignment;
    out.down = branch.decoded;
    if (out.down.empty() || !branch.left.contains(out.down) ||
        out.up == out.down) {
      return std::nullopt;
    }
    return out;
  }
  const Promise most = promise(lines, branch.multipliers);
  const double binds =
      most.value + tuning::kBindingLineShare * std::abs(most.value);
  Lines near = lines;
  std::sort(near.begin(), near.end(), [&](const Line* a, const Line* b) {
    return a->at(most.at) < b->at(most.at);
  });
  while (near.size() > 2 && near.back()->at(most.at) > binds) near.pop_back();
  const Line* up = *std::max_element(near.begin(), near.end(), by_excess);
  const Line* down = *std::min_element(near.begin(), near.end(), by_excess);
  if (up == down) down = up == near[0] ? near[1] : near[0];
  out.up = up->assignment;
  out.down = down->assignment;
  for (std::size_t w = 0; w < up->excess.size(); ++w) {
    const double more = up->excess[w] - down->excess[w];
    out.weights[w] = more > 0 ? 1 : more < 0 ? -1 : 0;
  }
  return out;
}

void OverlapBranching::divide(Branch branch) {
  const std::optional<Ends> ends = ends_of(branch);
  if (!ends || !divide_between(branch, *ends)) {
    divide_widest(std::move(branch));
  }
}

// Divides the choices of the variable that contributes most to the difference
// of excess, halfway between the two ends. Then the plans that are like one end
// are in one part. If no variable contributes, one part holds the choice of an end.
// Returns false if the ends do not differ.
bool OverlapBranching::divide_between(Branch& branch, const Ends& ends) {
  const ChoiceExcess excess = search_.network(network_).choice_excess();
  std::optional<std::size_t> variable;
  double most = -1;
  std::vector<double> of_choices;
  for (std::size_t v = 0; v < ends.up.size(); ++v) {
    if (ends.up[v] == ends.down[v]) continue;
    std::vector<double> of = excess.of(v, ends.up, ends.down, ends.weights);
    const double here = std::abs(of[ends.up[v]] - of[ends.down[v]]);
    if (here <= most) continue;
    most = here;
    variable = v;
    of_choices = std::move(of);
  }
  if (!variable) return false;
  const std::uint32_t up = ends.up[*variable];
  const double middle = (of_choices[up] + of_choices[ends.down[*variable]]) / 2;
  const auto is_first = [&](std::uint32_t choice) {
    return most > 0 ? of_choices[choice] <= middle : choice == up;
  };
  divide_at(std::move(branch), ends.up, *variable, is_first);
  return true;
}

void OverlapBranching::divide_at(
    Branch branch, const NetworkAssignment& any, std::size_t variable,
    const std::function<bool(std::uint32_t)>& is_first) {
  std::vector<std::uint32_t> of_first;
  for (std::uint32_t c = 0; c < any.num_choices(variable); ++c) {
    if (is_first(c)) of_first.push_back(c);
  }
  const std::size_t node =
      divisions_.divide(branch.node, variable, std::move(of_first), any);
  Branch first = branch;
  Branch second = std::move(branch);
  first.node = node;
  second.node = node + 1;
  first.left.keep_if(any, variable, is_first);
  second.left.keep_if(any, variable,
                      [&](std::uint32_t choice) { return !is_first(choice); });
  open(std::move(first));
  open(std::move(second));
}

// Divides the variable with the most choices. A branch without such a variable
// contains at most one plan, and is closed.
void OverlapBranching::divide_widest(Branch branch) {
  if (branch.decoded.empty() && lines_.empty()) return close(branch.bound);
  const NetworkAssignment any =
      branch.decoded.empty() ? lines_.front().assignment : branch.decoded;
  const NetworkIdentity network = identity_of(search_.problem(), network_);
  std::size_t variable = 0;
  std::vector<std::uint32_t> choices;
  for (std::size_t v = 0; v < any.size(); ++v) {
    std::vector<std::uint32_t> left(any.num_choices(v));
    std::iota(left.begin(), left.end(), 0U);
    if (const auto* of = branch.left.of(network, v)) left = *of;
    if (left.size() <= choices.size()) continue;
    variable = v;
    choices = std::move(left);
  }
  if (choices.size() < 2) {
    bound_at_promise(branch);
    return close(branch.bound);
  }
  const std::uint32_t middle = choices[choices.size() / 2];
  divide_at(std::move(branch), any, variable,
            [&](std::uint32_t choice) { return choice < middle; });
}

}  // namespace shardprop
