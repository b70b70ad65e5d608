// This header holds the tuned constants of the solver: the thresholds of its
// passes and of its search. Each constant has a unit and a reason. Each group
// has its measurement.
//
// Work is counted in table entries that the solver touches. A constant without
// a comment belongs to the comment above it.
//
// This header includes nothing of its module, so that every folder may use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardprop::solver::tuning {

// ---- presolve ---------------------------------------------------------------
// Not measured yet.

// Unit: rounds. Each round visits all tables; late rounds find too little to
// pay for this.
inline constexpr int kMostReduceRounds = 24;
// Unit: table entries compared for one variable. A variable that needs more is
// not changed.
inline constexpr double kMostDominanceComparisons = 2e7;
// Unit: table entries. A variable of degree 2 is eliminated only if the table
// of its neighbours is at most as large.
inline constexpr std::size_t kMostPairEntries = 1U << 20;

// ---- elimination: exact, one variable after the other -----------------------
// Not measured yet.

// The largest table of an elimination that runs by default has this many entries:
// 256 MiB of costs.
inline constexpr std::size_t kMostEliminationEntries = 1U << 25;
// An order that touches fewer table entries is not worth improving.
inline constexpr double kCheapOrderEntries = 1U << 26;
// Unit: perturbed orders that are tried for each greedy rule.
inline constexpr int kPerturbedOrders = 12;
// Factor over the limits up to which perturbed orders are tried.
inline constexpr double kPerturbOrdersWithinFactor = 4;
// Greedy keys are perturbed by at most this share.
inline constexpr double kMostOrderPerturbation = 0.3;
// Unit: neighbours that all tries together may visit.
inline constexpr std::uint64_t kMostOrderSteps = 20'000'000;
// Late elimination starts if it touches at most this many times the entries
// touched so far: its loops are faster by that factor.
inline constexpr double kLateEliminationFactor = 4;
// More touched table entries than this take minutes.
inline constexpr double kMostLateEntries = 0x1p38;
// Unit: bytes of the largest table: 1 GiB.
inline constexpr double kMostLateTableBytes = 0x1p30;
// Unit: table entries that the search must have touched before. Most problems
// need less.
inline constexpr double kWorkBeforeLateElimination = 5e7;
// Share of the tables that pruning is expected to leave at most.
inline constexpr double kExpectedPrunedShare = 0.25;

// ---- front elimination ------------------------------------------------------
// On ResNet-50's training on 2,4 the front holds a few million entries, and the
// plan is proven after 10 to 16 s (docs/how_planning_works.md). The single values
// are not measured yet.

// Gap, as a share of the cost. Above it, too many entries are left.
inline constexpr double kFrontGap = 0.05;
// The dual bound continues as long as kWorkBetweenGapChecks times its work
// reduces the gap to the share kSettledGapShare. Early messages raise the bound
// unevenly, so the first kIgnoredGapChecks checks are ignored.
inline constexpr double kWorkBetweenGapChecks = 1.5;
inline constexpr double kSettledGapShare = 0.87;
inline constexpr int kIgnoredGapChecks = 3;
// Factor from the entries of one run to those of the next.
inline constexpr std::size_t kFrontGrowth = 4;
// Unit: entries of 16 bytes: 256 MiB.
inline constexpr std::size_t kMostFrontEntries = std::size_t{1} << 24;
// At the largest size, a run is repeated when the gap has shrunk to this share.
inline constexpr double kRetryFrontAtGapShare = 0.9;
// Share of the gap. If a run closed as much, it runs again when the dual has
// spent kRetryFrontAfterGain times its work. Other runs wait for
// kRetryFrontAfterNoGain.
inline constexpr double kFrontGainShare = 0.25;
inline constexpr double kRetryFrontAfterGain = 0.5;
inline constexpr double kRetryFrontAfterNoGain = 16;
// Unit: table entries. Every run may do at least this much work.
inline constexpr std::uint64_t kLeastFrontWork = 1'000'000;
// The orders are computed again when the gap has shrunk to this share.
inline constexpr double kNewOrdersAtGapShare = 0.6;
// Unit: 1 / gap. A choice counts less in an order, the nearer it is to being
// pruned: exp(-this * its bound / gap).
inline constexpr double kChoiceWeightFalloff = 4;
// Unit: partial orders. The beam width of the search for an order, if the steps
// of all variables in all orders stay below kMostOrderingSteps. If one order
// alone exceeds that, front elimination does not run.
inline constexpr double kBeamWidth = 200;
inline constexpr double kMostOrderingSteps = 4e8;
// Unit: table entries that are copied; each takes 8 bytes.
inline constexpr std::size_t kMostShiftedEntries = std::size_t{1} << 24;
// The weight of the last front counts this much in addition to the sum so far.
inline constexpr double kLastFrontWeight = 0.5;
// Unit: variables. The start variables are the farthest ones from this many
// random variables, kStartVariables of them.
inline constexpr int kStartSamples = 16;
inline constexpr std::size_t kStartVariables = 4;
// Between two checks of the number of entries, at most the limit divided by
// this is added.
inline constexpr std::size_t kHeldShareBetweenChecks = 4;
// Unit: entries, over all eliminations, whose origin is kept; each takes 6
// bytes.
inline constexpr std::size_t kMostTracedEntries = std::size_t{1} << 26;

// ---- threads and caches: speed, not results ---------------------------------
// Not measured yet.

// Unit: costs. With fewer costs to compute, one thread does the work.
inline constexpr std::size_t kCostsForOneThread = std::size_t{1} << 17;
// Unit: entries. The typical size of a part, so that its table fits a cache.
inline constexpr std::size_t kEntriesInPart = std::size_t{1} << 13;
// Unit: costs added. A lookup of an entry counts as this many.
inline constexpr std::size_t kLookUpCosts = 16;
// Unit: table entries. A table with fewer entries to touch is computed by one
// thread.
inline constexpr std::uint64_t kEntriesForOneThread = 1U << 22;
// Unit: table entries touched between two checks of the stop signal.
inline constexpr std::uint64_t kEntriesBetweenStopChecks = 1U << 22;

// ---- dual bound -------------------------------------------------------------
// Not measured yet.

// Unit: table entries. After this much work of the dual, the search may rely on
// its bound.
inline constexpr std::uint64_t kDualWorkFirst = 2'500'000'000;
// Unit: rounds. Without a known cost, the dual starts after this many.
inline constexpr int kRoundsWithoutDual = 4;
// Unit: sweeps before the first step of the prices, which would overshoot.
inline constexpr int kFirstSweeps = 10;
// Weight of the newest overflow of a row in its average.
inline constexpr double kOverflowWeight = 0.15;
// Unit: 1 / length of step. Almost equal choices share their weight while steps
// are long.
inline constexpr double kSoftness = 5.0;
// Unit: gaps. The dual has stalled if its step is smaller and the last
// kDualPatience steps failed.
inline constexpr double kSmallestStep = 1e-6;
inline constexpr int kDualPatience = 8;
// Unit: sweeps between two leaps, if leaps help; the most if they do not.
inline constexpr int kSweepsBetweenLeaps = 4;
inline constexpr int kMostSweepsBetweenLeaps = 128;
// Factor on the change of the messages since the last leap.
inline constexpr double kLongestLeap = 32;
// Unit: gaps. The first step of the prices, and its factor after a failure.
inline constexpr double kFirstPriceStep = 0.02;
inline constexpr double kShorterPriceStep = 0.7;
// While no cost is known, the gap is assumed to be this share of the bound. The second
// value is the least gap as a share of the goal.
inline constexpr double kAssumedGapShare = 0.05;
inline constexpr double kLeastGapShare = 1e-6;
// Share of the gap. A step that closes less has failed.
inline constexpr double kLeastPriceGainShare = 1e-5;
// Unit: sweeps between two checks of the gain in possible_choices(). The bound
// ends if they closed less than kLeastNodeGainShare of the rest. Llama 3 8B on
// dp=8,tp=8: 160 sweeps without messages, 20 to 60 from those of a branch.
inline constexpr int kSweepsBetweenGainChecks = 20;

// ---- rounds of the search ---------------------------------------------------
// Not measured yet.

// Unit: table entries that a worker touches in a round, at first and at most.
inline constexpr std::uint64_t kFirstRoundWork = 2'000'000;
inline constexpr std::uint64_t kLongestRoundWork = 40'000'000;
// Unit: workers under a work limit, independent of the number of threads, so
// that the result is the same on every machine. The number is small, because a
// worker profits more from its own results than from those of others.
inline constexpr int kWorkersUnderWorkLimit = 2;
// Unit: rounds. Once the dual has settled, it gets one round in this many.
inline constexpr int kDualTurn = 4;
// Unit: rounds without an assignment. Then costs are counted in coarser units if
// sums exceed the exact doubles.
inline constexpr int kRoundsInFineUnits = 4;
// Gap, as a share of the cost. Below it, the bound gains more than the search.
inline constexpr double kBoundFirstGap = 0.05;
// Factor from the work of one round to that of the next: 1 + 1 / this.
inline constexpr std::uint64_t kRoundGrowthDivisor = 4;
// Unit: rounds. If no pass can work, the search ends after this many.
inline constexpr int kIdleRounds = 8;
// Share of the time. Under a work limit, time counts from here on, too.
inline constexpr double kOutOfTimeShare = 0.9;

// ---- probing ----------------------------------------------------------------
// Not measured yet.

// Share of the choices that the first probe keeps, and the fewest choices of a
// variable. The factors change that number after a probe that was eliminated
// (kMoreProbed) or was not (kLessProbed).
inline constexpr double kFirstProbedShare = 0.25;
inline constexpr double kFewestProbedChoices = 2;
inline constexpr double kMoreProbed = 1.5;
inline constexpr double kLessProbed = 0.75;
// The next probe runs when the gap has shrunk to this share.
inline constexpr double kProbeAtGapShare = 0.8;
// The next probe below the best known cost runs when the gap has shrunk to one
// of these shares: the first after a probe that found a better assignment, the
// second after a probe that did not.
inline constexpr double kProbeAfterGain = 0.25;
inline constexpr double kProbeAfterNoGain = 0.0625;

// ---- branch and bound -------------------------------------------------------
// Not measured yet.

// Unit: choices. A core with at most this many is solved quickly.
inline constexpr std::size_t kSmallCoreChoices = 4096;
// Unit: choices. Networks with more are too large for branching.
inline constexpr std::size_t kMostBranchedChoices = 8'000;
// Gap, as a share of the cost. The dual bound is close if the gap is smaller.
inline constexpr double kBranchGap = 0.02;
// Share of the choices. If pruning leaves at most as many, elimination is
// tried.
inline constexpr double kFewChoicesShare = 0.5;
// Unit: table entries. A tree with more work than this is kept, even if better
// costs become known.
inline constexpr std::uint64_t kKeepTreeWork = 200'000'000;
// Unit: table entries of an elimination at a node.
inline constexpr std::size_t kMostNodeTableEntries = 1U << 20;
// Unit: rounds of bounding and pruning at a node.
inline constexpr int kMostRoundsAtNode = 4;
// Unit: sweeps in one round, and between two checks of progress.
inline constexpr int kMostSweepsAtNode = 60;
inline constexpr int kSweepsBetweenChecks = 10;
// Share of the remaining gap. The bound at a node goes on if kSweepsBetweenChecks
// sweeps close as much.
inline constexpr double kLeastNodeGainShare = 0.02;
// Unit: table entries per variable. The work of copying and reducing the
// network of a node.
inline constexpr std::uint64_t kWorkOfVariable = 32;

// ---- local search -----------------------------------------------------------
// Not measured yet. Cycles are in table entries.

// As long as no assignment fits, cycles have this length, each twice as long as
// the one before, kMostBriefDoublings times.
inline constexpr double kBriefCycleWork = 1e6;
inline constexpr int kMostBriefDoublings = 8;
// While the dual still finds much better prices.
inline constexpr double kShortCycleWork = 1.5e8;
// The first long cycle, the factor to the next, and the longest one.
inline constexpr double kFirstCycleWork = 4e8;
inline constexpr double kCycleGrowth = 1.25;
inline constexpr double kLongestCycleWork = 2e10;
// Share of a cycle, at its end, at temperature 0.
inline constexpr double kColdShare = 0.2;
// Unit: cost per variable. Temperatures are sampled between these.
inline constexpr double kColdest = 3e-3;
inline constexpr double kHottest = 3.0;
// Unit: temperature steps in a cycle.
inline constexpr int kTemperatureSteps = 64;
// Share of the gap between cost and bound. A cycle that gains less found
// little.
inline constexpr double kLittleGainShare = 0.01;
// Unit: memory rows. A segment over more of them counts as lasting.
inline constexpr int kLastingRows = 64;
// Unit: rounds of pricing rows in one move, and rows priced in one round.
inline constexpr int kMostPriceRounds = 12;
inline constexpr int kMostRowsPriced = 4;
// Unit: moves. The penalty rises after this many consecutive rejected moves. It
// also rises if this many moves, plus one per variable, do not reduce the
// overflow.
inline constexpr int kMovePatience = 200;
// Unit: moves between two checks of the stop signal.
inline constexpr int kMovesBetweenStopChecks = 32;
// Unit: variables of the smallest block, and the logarithm of the factor to the
// largest.
inline constexpr int kSmallBlock = 6;
inline constexpr double kLogLargeBlock = 5.5;

// ---- recombination ----------------------------------------------------------
// Not measured yet.

// Unit: groups. The longest chain of swaps that frees bytes for one swap.
inline constexpr int kLongestChain = 8;
// Unit: rounds over all groups.
inline constexpr int kMostSwapRounds = 8;
// Unit: visited pieces of groups. Chains do not grow further afterwards.
inline constexpr std::uint64_t kMostSwapLookups = 4'000'000;

// ---- conflicts --------------------------------------------------------------
// Not measured yet.

// Unit: table entries. Limit of one check whether a part of the problem is
// feasible. A set that is not proven infeasible within it counts as feasible.
inline constexpr std::uint64_t kConflictCheckWork = 400'000'000;

}  // namespace shardprop::solver::tuning
