// This header holds the tuned constants of planning: the thresholds of the
// problem, the search and the report. Each constant has a unit and a reason.
// Each group has its measurement.
//
// Shares of time or work are shares of the remaining budget (base/budget.h),
// unless the comment says otherwise. Work is counted in table entries that the
// solver touches. Gaps are relative: (cost - bound) / cost.
//
// This header includes nothing of its module, so that every folder may use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardprop::tuning {

// ---- the problem -----------------------------------------------------------
// The limits of single searches are measured, as stated. The others are not
// measured yet.

// Unit: pairs of unlisted layouts that are priced for one problem. Each pair is
// a search of its own.
inline constexpr int kMostLonePairs = 16;
// Unit: layouts that such a search may visit: half a second. Tensors of three
// dims have 5,056 layouts on five mesh dims. Tensors of four dims have 12,341
// (four seconds).
inline constexpr double kMostSearchedLayouts = 8192;
// Unit: nodes of the schedule. After a pause longer than this, a buffer may be
// cached in other layouts, or be produced anew.
inline constexpr std::int64_t kLongPauseNodes = 128;
// Unit: mesh dims larger than 1. On meshes with more of them there are too many
// pairs of layouts. Only inputs are then cached in two.
inline constexpr int kMostDimsOfPairedLayouts = 2;
// Unit: moves between the layouts of one buffer. They take 40 bytes each while
// they are computed: 1.3 GB.
inline constexpr std::size_t kMostBufferMoves = std::size_t{1} << 25;
// Unit: mesh dims larger than 1. On meshes with more of them, strided shards
// multiply the layouts of a path search, which then takes minutes.
inline constexpr int kMostStridedDims = 2;
// Unit: assignments of one operator. The limit applies to meshes of more than
// three dims larger than 1. Smaller meshes have as many.
inline constexpr std::int64_t kMostOperatorAssignments = 256;
// Unit: overlap windows of a phase. A graph without repeated blocks is divided
// into as many. Not measured yet.
inline constexpr std::size_t kPartsWithoutRepetition = 8;

// The next two are copied from PyTorch and need no measurement.

// Unit: bytes. Gathers of parameters and reductions of gradients use buckets of
// this size: the default of PyTorch's DistributedDataParallel.
inline constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;
// Unit: inputs. Operators with more inputs are not fused. PyTorch's compiler
// has the same limit (torch/_inductor/config.py, max_pointwise_cat_inputs).
inline constexpr std::size_t kMostFusedInputs = 8;

// ---- stages: spaces from the smallest to the named one ---------------------
// Unit: shares of the whole budget, from its beginning. A stage is set up by
// the first share and searched until the second one. It is skipped if less than
// `worthwhile_after` of the time is spent: the named space can then be set up
// in time. Not measured yet.

struct StageShares {
  double set_up_by = 1;
  double until = 1;
  double worthwhile_after = 0;
};
inline constexpr StageShares kRecipeStage{0.4, 0.6};
inline constexpr StageShares kOneRunOfTwoDimsStage{0.3, 0.35, 0.04};
inline constexpr StageShares kLastDimApartStage{0.4, 0.55};
inline constexpr StageShares kOneRunStage{0.5, 0.6};
inline constexpr StageShares kTwoRunsOfThreeDimsStage{0.65, 0.7};
inline constexpr StageShares kTwoRunsOfMoreDimsStage{0.7, 0.85};
// The named space after smaller ones. The rest of the time is for its search
// and for the reasons.
inline constexpr StageShares kNamedStage{0.8, 1};
// Unit: seconds. Limit of the solve for the all-replicated plan, which searches
// nothing, unless the caller limits the work.
inline constexpr double kReplicatedPlanSeconds = 1;
// Gap up to which the best plan counts as near the optimum. Above it, the
// all-replicated plan is tried.
inline constexpr double kNearOptimumGap = 0.05;

// ---- first plans: small parts of the space ---------------------------------
// Not measured yet.

// Share of the whole budget of a search for the plans of small parts of the
// space, which divide it equally.
inline constexpr double kFirstPlansBudgetShare = 0.4;
// Share for the plans of equal layers, if layers may differ.
inline constexpr double kEqualLayersBudgetShare = 0.2;
// Unit: table entries. Each of these plans may take as much, even if the limit
// of the search is smaller: the solver then runs its first round.
inline constexpr std::uint64_t kLeastFirstPlanWork = 2;
// Share for plans that mix the choices of others.
inline constexpr double kMixedPlansBudgetShare = 0.25;
// Unit: table entries. The last mix may take as much, even if the work is spent.
// Tiny Llama 3 on 2,4 within 0.9 of its peak needs 500 after 20,000,000, and the
// plan takes 720 us instead of 746 us.
inline constexpr std::uint64_t kLeastMixWork = 100'000;
// Unit: table entries, for the bound of plans whose equal layers choose alone. The
// network has the variables of each layer.
inline constexpr std::uint64_t kFreeLayersBoundWork = 2'000'000'000;
// The same from the messages of an earlier search. On Llama 3 8B, dp=8,tp=8, a
// sweep touches 2e7. With a pin, 3e8 more raise the bound by at most 0.2 %.
inline constexpr std::uint64_t kWarmFreeLayersBoundWork = 100'000'000;
// Share for plans that reduce all gradients in each micro-batch, if no plan
// fits that accumulates them unreduced.
inline constexpr double kReducedEachTimeBudgetShare = 0.5;

// ---- a search that starts from a plan ---------------------------------------

// Share for the parts around the plan of RunControl::start_from and for the
// search of the whole space from its overlap multipliers. If both miss the gap,
// the rest is for the search as without the plan. Measured in
// bench/results/warm_start.md.
inline constexpr double kIncumbentBudgetShare = 0.25;
// Unit: hops between variables that share a buffer, and variables. In the part
// around the plan, variables as near to a new one have all choices, as long as
// there are few of them.
inline constexpr int kMostFreedHops = 8;
inline constexpr std::ptrdiff_t kMostFreedVariables = 64;
// Unit: table entries. Limit of the search of one part.
inline constexpr std::uint64_t kNearPlanWork = 20'000'000;
// Share of the gap at which the search of a part ends, so that the rest is for
// the distance between the part and the bound.
inline constexpr double kNearPlanGapShare = 0.1;
// Unit: table entries. Limit of the first search for a bound, from the messages
// of the earlier one.
inline constexpr std::uint64_t kWarmBoundWork = 400'000'000;
// Share of the gap of RunControl at which the solve of one network may stop.
// The rest covers overlapped time, which the network counts later. Not measured
// yet.
inline constexpr double kNetworkGapShare = 0.5;

// ---- rounds under a memory limit -------------------------------------------
// Not measured yet.

// If the cheapest plan takes at most this multiple of the memory limit, a plan
// of equal cost is expected to fit.
inline constexpr double kNearlyFittingMemoryFactor = 1.25;
// Share of the time for the search of that plan.
inline constexpr double kSmallPlanTimeShare = 0.3;
// Share of a solve's budget after which it is abandoned if its best plan does
// not fit: of the first network that counts memory, and of other solves.
inline constexpr double kFirstNetworkGiveUpShare = 0.2;
inline constexpr double kGiveUpShare = 0.5;
// Unit: rounds. The network counts a lower bound of the memory. If a solution
// exceeds the limit, the excess is reserved and the network is solved again.
inline constexpr int kMostMemoryRounds = 5;
// Share for each of these rounds.
inline constexpr double kMemoryRoundBudgetShare = 0.15;
// A reserve grows by the bytes that the plan lacked, and by those bytes divided
// by this.
inline constexpr std::int64_t kReserveMarginDivisor = 4;
// spread() tries the elements of its sequence before this one.
inline constexpr std::uint32_t kSpreadElements = 256;
// Unit: rounds for one network of spread().
inline constexpr int kSpreadRounds = 3;
// Share for the assignments that cost less than the best plan that fits, before
// these rounds, after them and after the search for overlap, and the most work of
// each. Unit: table entries.
// Larger networks are not searched in this way.
inline constexpr double kCheaperPlansBudgetShare = 0.2;
inline constexpr std::uint64_t kCheaperPlansWork = 20'000'000;
// Unit: the expected cost of the best plan that fits: that of a plan near it, or
// the lower bound. The assignments below these costs are visited first.
inline constexpr double kFirstCheaperPlans[] = {1.02, 1.1, 1.5};
// Unit: variables of a problem. For larger ones, no second network is built.
inline constexpr std::size_t kMostVariablesOfCheaperPlans = 1000;
// Unit: table entries that count for the judgement of one plan, by variable of
// its network.
inline constexpr std::uint64_t kJudgementWork = 16;
// Share of the memory limit. spread() bounds the bytes that the network does
// not count by at most this.
inline constexpr double kMostUncountedMemoryShare = 0.5;
// Share of the whole work or time limit until which spread() looks for cheaper
// plans once one fits.
inline constexpr double kSpreadBudgetShare = 0.5;

// ---- overlap multipliers: bound and plans ----------------------------------
// Not measured yet.

// Share for the network in which overlapped transfers are free, if its plans
// wait for them as long as they exceed its bound by other costs. The rest is
// for other multipliers. Llama 3 8B on dp=8,tp=8, `--gap 0`: with a work limit of
// 3e8 the plan takes 127.6 ms, and 140.2 ms if this network may take all of it.
inline constexpr double kFreeNetworkBudgetShare = 0.5;
// Share of the plan's cost. If its plans wait less, the network takes all of the
// budget: GPT-2 on 2,4 waits for 0.1 %, and is proven by it.
inline constexpr double kLeastWaitingShare = 0.01;

// Unit: solves at new multipliers in one round.
inline constexpr int kMostMultipliersInRound = 16;
// Unit: rounds of raising the bound and solving mixes.
inline constexpr int kMostPricingRounds = 4;
// Share that is kept for layer mixes.
inline constexpr double kMixReserveBudgetShare = 0.4;
// Share for one solve.
inline constexpr double kPricingBudgetShare = 0.25;
// Gap at which the plan counts as optimal.
inline constexpr double kClosedGap = 1e-5;
// Gap at which a solve may stop, and the same in the first round of a large
// problem.
inline constexpr double kPricingGap = 2e-4;
inline constexpr double kLargeProblemPricingGap = 2e-3;
// Unit: table entries. A problem is large if its first solve takes more.
inline constexpr std::uint64_t kLargeProblemWork = 50'000'000;

// ---- overlap branching -----------------------------------------------------
// Measured on Llama 3 8B with AdamW (bench/results/equal_layers.md). The limits
// leave room around what these searches need. Single values are not measured.

// Share of the search for branches. The rest is for mixed plans and ties.
inline constexpr double kBranchingBudgetShare = 0.75;
// Unit: branches that are bounded. The searches of that page need 5 to 30.
inline constexpr int kMostBranches = 2000;
// Unit: entries of the tables of a network. Each bound of a branch touches them
// 40 to 200 times, so larger networks would bound few branches. Llama 3 8B on
// dp=8,tp=8 has 8e5 with equal layers, and 2.5e7 with free ones.
inline constexpr std::uint64_t kMostBranchedEntries = 5'000'000;
// Unit: multipliers that are tried for one branch before it is divided.
inline constexpr int kMostMultipliersOfBranch = 8;
// Share of the distance between bound and target by which the next multipliers
// aim above the target.
inline constexpr double kBranchMarginShare = 0.1;
// Share of that distance. If new multipliers close less, the branch is divided.
inline constexpr double kLeastBranchGainShare = 0.1;
// Share of the way to the next multipliers. It is halved if they do not raise the
// bound. If it is smaller than this, the branch is divided.
inline constexpr double kLeastBranchReach = 0.2;
// Share of the target. If the bound is as near to it, rounded costs may be the
// reason: graphs of 0.1 ms have bounds that are 27 ns too low.
inline constexpr double kRoundingShare = 1e-3;
// Relative cost above the least line up to which a plan binds the bound.
inline constexpr double kBindingLineShare = 0.002;

// ---- overlap multipliers: steps --------------------------------------------
// Not measured yet.

// Multipliers are in parts of kOverlapMultiplierUnit (1024) from here on.

// The largest first multiplier that all windows share.
inline constexpr std::int64_t kFirstCommonMultiplier = 512;
// Factor by which the next common multiplier may exceed the largest one tried.
inline constexpr std::int64_t kCommonMultiplierFactor = 2;
// A common multiplier that is nearer than this to the present or the best one
// promises nothing new.
inline constexpr std::int64_t kSameMultiplierDistance = 4;
// Largest distance from the best multipliers to the next ones, at first.
inline constexpr std::int64_t kFirstMultiplierReach = 512;
// The search ends if that distance is smaller.
inline constexpr std::int64_t kLeastMultiplierReach = 8;
// Unit: steps of the subgradient ascent to the maximum of the cutting planes.
inline constexpr int kAscentSteps = 4000;
// Unit: multipliers (a share of the unit). Length of its first step. Step `n`
// has this length divided by the square root of n.
inline constexpr double kFirstAscentStride = 0.5;
// Level method: the next multipliers must reach this share of the way from the
// best bound to the maximum of the cutting planes.
inline constexpr double kLevelShare = 0.5;
// Unit: halvings. Length of the bisection for the level method.
inline constexpr int kLevelHalvings = 20;
// Relative to the bound. If the cutting planes promise less than this, the next
// multipliers are their maximum: the solver's bounds are not more accurate.
inline constexpr double kNegligiblePromiseGap = 5e-3;

// ---- layer mixes -----------------------------------------------------------
// Not measured yet.

// Unit: mixes that are solved in one run.
inline constexpr int kMostMixes = 16;
// Unit: mixes in a row that do not improve the plan.
inline constexpr int kMostFailedMixes = 4;
// Share for the solve of one mix or one layer.
inline constexpr double kMixBudgetShare = 0.25;
// Gap at which the solver may stop on a mix.
inline constexpr double kMixGap = 2e-4;
// Relative. A mix must be predicted to be cheaper by this share.
inline constexpr double kLeastMixGainShare = 1e-5;
// Relative cost of a boundary between layers of different plans. The layers at
// a boundary are solved again, and overlap more or less than the prediction.
inline constexpr double kLayerBoundaryCostShare = 5e-4;
// Unit: solves. The most that resolve_layers() spends on single layers.
inline constexpr int kMostLayerResolves = 40;
// resolve_layers() moves the multipliers this share of the way to the value of
// overlapped time in the best plan.
inline constexpr double kResolveMultiplierShares[] = {0.5, 1};

// ---- tie-breaking ----------------------------------------------------------
// Not measured yet.

// The work of tie-breaking is at most kTieBreakingWork table entries plus the
// work of the search divided by kTieBreakingWorkDivisor. Good preferences are
// found early. A proof that there are none better would take as long as the
// search. kTieBreakingWork also limits the search for a small plan of equal
// cost.
inline constexpr std::uint64_t kTieBreakingWork = 1'000'000'000;
inline constexpr std::uint64_t kTieBreakingWorkDivisor = 4;
// Unit of these weights: 1 / scale nanoseconds. The scale is so large that all
// weights together are less than a nanosecond. These are the largest weights of
// the bytes of an input and of an operator's results.
inline constexpr std::int64_t kMostInputWeight = 4096;
inline constexpr std::int64_t kMostResultWeight = 256;
// Weight of a parameter whose choice differs from that of most of its group.
inline constexpr std::int64_t kUnlikeParameterWeight = 512;

// ---- conflicts, recipes and strategies next to a plan ----------------------
// Not measured yet.

// Unit: table entries. Limit of one feasibility check of a minimal conflict.
inline constexpr std::uint64_t kConflictCheckWork = 400'000'000;
// Unit: seconds. Limit of such a check, unless the caller limits the work.
inline constexpr double kConflictCheckSeconds = 10;
// Unit: operators. On graphs of at most this size, the plan that a recipe lays
// out itself is made even if no time is left: it takes milliseconds.
inline constexpr std::size_t kMostOperatorsOfLatePlan = 2000;
// Unit: seconds. Limit of the solve for that plan, which searches nothing,
// unless the caller limits the work.
inline constexpr double kConstructedPlanSeconds = 1;
// Share of the whole time for the plan itself if strategies are weighed.
inline constexpr double kWeighedPlanTimeShare = 0.5;

// ---- reports ---------------------------------------------------------------
// These decide what is printed. They need no measurement.

// Unit: seconds between two reports of progress.
inline constexpr double kSecondsBetweenReports = 0.2;
// Share of the plan's compute. A smaller loss is not noted.
inline constexpr double kLeastNotedComputeShare = 0.02;
// Unit: layouts in the note of an error.
inline constexpr std::size_t kMostListedLayouts = 8;
// Unit: differences between a saved plan and its judgement.
inline constexpr std::size_t kMostListedDifferences = 50;

}  // namespace shardprop::tuning
