#include <shardprop/plan/plan_options.h>

#include "base/index.h"
#include "base/option_bounds.h"
#include "base/option_fields.h"
#include "base/try.h"
#include "plan/search/procedures.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kOptimizers[] = {"none", "sgd", "adamw"};
constexpr std::string_view kPrecisions[] = {"mixed", "own"};
// Unit: micro-batches a step.
constexpr std::uint64_t kMostMicroBatches = 1'000'000;
constexpr std::string_view kFusions[] = {"compiler", "none"};
constexpr std::string_view kExecutions[] = {"compiled", "eager"};
constexpr std::string_view kLayers[] = {"alike", "free"};

Precision precision_of(const PlanQuestion& question) {
  return question.precision.value_or(question.optimizer == Optimizer::kAdamW
                                         ? Precision::kMixed
                                         : Precision::kOwn);
}

Result<void> check_procedure(std::string_view name) {
  const std::vector<std::string_view> known = procedures_with_switch();
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  std::string names;
  for (const std::string_view other : known) {
    names += (names.empty() ? "" : ", ") + std::string(other);
  }
  return fail(
      {ErrorCode::kInvalidArgument,
       "no search procedure `" + std::string(name) + "` can be switched off",
       {},
       {"found `" + std::string(name) + "`, expected one of " + names},
       "--statistics prints the procedures that run"});
}

const OptionField<PlanOptions> kFields[] = {
    {"memory", "BYTES|none", "a rank's limit, as 80GiB",
     BytesField<PlanOptions>{&PlanOptions::memory_limit, 1}},
    {"optimizer", "NAME",
     "whose state and step are counted; default adamw for a graph that trains, "
     "else none",
     ChoiceField<PlanOptions>{kOptimizers,
                              [](const PlanOptions& o) {
                                return o.optimizer
                                           ? std::optional(index(*o.optimizer))
                                           : std::nullopt;
                              },
                              [](PlanOptions& o, std::size_t i) {
                                o.optimizer = static_cast<Optimizer>(i);
                              }}},
    {"precision", "mixed|own",
     "what training keeps in f32 beside 16-bit parameters; default mixed with "
     "adamw",
     ChoiceField<PlanOptions>{kPrecisions,
                              [](const PlanOptions& o) {
                                return std::optional(index(precision_of(o)));
                              },
                              [](PlanOptions& o, std::size_t i) {
                                o.precision = static_cast<Precision>(i);
                              }}},
    {"execution", "compiled|eager",
     "how the program runs: as torch.compile runs it, with shared kernels and "
     "fewer activations kept, or operator by operator",
     ChoiceField<PlanOptions>{
         kExecutions,
         [](const PlanOptions& o) { return std::optional(index(o.fusion)); },
         [](PlanOptions& o, std::size_t i) {
           o.fusion = static_cast<Fusion>(i);
         }}},
    {"recompute", "none|selective[:megatron]|full[:N]|modules:GLOB|model|auto",
     "what runs again in the backward phase, so that less is kept; auto takes "
     "the cheapest rule that fits the memory limit",
     ListField<PlanOptions>{
         [](PlanOptions& o, std::string_view text) -> Result<void> {
           if (text == "auto") {
             o.recompute.reset();
             return {};
           }
           SP_ASSIGN(o.recompute, Recompute::parse(text));
           return {};
         },
         [](const PlanOptions& o) {
           return o.recompute ? to_string(*o.recompute) : std::string("auto");
         }}},
    {"fusion", "compiler|none",
     "an older name of execution: compiler is compiled, none is eager",
     ChoiceField<PlanOptions>{
         kFusions,
         [](const PlanOptions&) { return std::optional<std::size_t>(); },
         [](PlanOptions& o, std::size_t i) {
           o.fusion = static_cast<Fusion>(i);
         }}},
    {"layers", "alike|free",
     "whether equal layers have equal layouts, or each layer its own",
     ChoiceField<PlanOptions>{
         kLayers,
         [](const PlanOptions& o) { return std::optional(index(o.layers)); },
         [](PlanOptions& o, std::size_t i) {
           o.layers = static_cast<Layers>(i);
         }}},
    {"accumulate", "N",
     "micro-batches a step; times are those of one, with its share of the step",
     WholeField<PlanOptions>{&PlanOptions::accumulate, 1, kMostMicroBatches}},
    {"overlap", "none|X",
     "share of parameter gathers and gradient reductions that hides behind "
     "compute, 0 to 1",
     RealField<PlanOptions>{&PlanOptions::overlap, 0, 1, true}},
    {"pin", "WHAT=PLACEMENTS",
     "lay out what matches so: a glob over names, or name:, module:, op:, "
     "phase: terms; stored:, used: or state: in front; repeatable",
     ListField<PlanOptions>{
         [](PlanOptions& o, std::string_view text) -> Result<void> {
           SP_ASSIGN(Pin pin, Pin::parse(text));
           o.pins.push_back(std::move(pin));
           return {};
         },
         [](const PlanOptions& o) {
           std::string text;
           for (const Pin& pin : o.pins) {
             text += (text.empty() ? "" : " ") + to_string(pin);
           }
           return text;
         }}},
    {"recipe", "NAME=DIM",
     "the best plan of a known way to train: ddp, fsdp, hsdp, megatron, "
     "megatron-sp, ep, as fsdp=dp,megatron=tp",
     ListField<PlanOptions>{
         [](PlanOptions& o, std::string_view text) -> Result<void> {
           SP_ASSIGN(o.recipe, Recipe::parse(text));
           return {};
         },
         [](const PlanOptions& o) {
           return o.recipe ? to_string(*o.recipe) : std::string();
         }}},
    {"compare", "", "price the recipes that fit the mesh beside the optimum",
     FlagField<PlanOptions>{&PlanOptions::compare}},
    {"time_limit", "S", "seconds to search",
     RealField<PlanOptions>{&PlanOptions::time_limit_seconds, 0, kMostSeconds,
                            false}},
    {"work_limit", "N", "table entries to touch at most; deterministic",
     WholeField<PlanOptions>{&PlanOptions::work_limit, 0, kMostWork}},
    {"gap", "X",
     "stop once the plan costs at most this share of it more than the bound; 0 "
     "asks for a proof",
     RealField<PlanOptions>{&PlanOptions::gap, 0, 1, false}},
    {"threads", "N", "threads to search with",
     WholeField<PlanOptions>{&PlanOptions::threads, 1, kMostThreads}},
    {"seed", "N", "where random choices start",
     WholeField<PlanOptions>{&PlanOptions::seed, 0, kMostSeed}},
    {"without", "NAME",
     "switch off a search procedure, as layer-mix, to measure what it gains; "
     "repeatable",
     ListField<PlanOptions>{
         [](PlanOptions& o, std::string_view text) -> Result<void> {
           SP_CHECK(check_procedure(text));
           o.switched_off.emplace_back(text);
           return {};
         },
         [](const PlanOptions& o) {
           std::string text;
           for (const std::string& name : o.switched_off) {
             text += (text.empty() ? "" : " ") + name;
           }
           return text;
         }}},
    {"strict", "", "fail where an operator has no strategy",
     FlagField<PlanOptions>{&PlanOptions::strict}},
};

}  // namespace

std::string_view to_string(Optimizer optimizer) {
  const auto at = index(optimizer);
  return at < std::size(kOptimizers) ? kOptimizers[at] : kOptimizers[0];
}

std::optional<Optimizer> parse_optimizer(std::string_view text) {
  for (const Optimizer o :
       {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdamW}) {
    if (to_string(o) == text) return o;
  }
  return std::nullopt;
}

std::string_view to_string(Precision precision) {
  const auto at = index(precision);
  return at < std::size(kPrecisions) ? kPrecisions[at] : kPrecisions[0];
}

std::string_view to_string(Fusion fusion) {
  const auto at = index(fusion);
  return at < std::size(kFusions) ? kFusions[at] : kFusions[0];
}

std::string_view execution_of(Fusion fusion) {
  const auto at = index(fusion);
  return at < std::size(kExecutions) ? kExecutions[at] : kExecutions[0];
}

std::string_view to_string(Layers layers) {
  const auto at = index(layers);
  return at < std::size(kLayers) ? kLayers[at] : kLayers[0];
}

bool trains(const Graph& graph) {
  return std::any_of(graph.outputs().begin(), graph.outputs().end(),
                     [](const GraphOutput& output) {
                       return output.kind == OutputKind::kGradient;
                     });
}

PlanOptions resolved(PlanOptions options, const Graph& graph) {
  if (!options.optimizer) {
    options.optimizer = trains(graph) ? Optimizer::kAdamW : Optimizer::kNone;
  }
  if (!options.recompute) options.recompute = Recompute{};
  return options;
}

bool keeps_f32(const PlanQuestion& question) {
  return question.optimizer.value_or(Optimizer::kNone) != Optimizer::kNone &&
         precision_of(question) == Precision::kMixed;
}

std::span<const OptionInfo> plan_option_table() {
  static const std::vector<OptionInfo> kRows = [] {
    PlanOptions defaults;
    defaults.gap = kDefaultGap;
    defaults.recompute.reset();
    return option_rows<PlanOptions>(kFields, defaults);
  }();
  return kRows;
}

Result<void> set_option(PlanOptions& options, std::string_view name,
                        std::string_view text) {
  return set_field<PlanOptions>(kFields, options, name, text);
}

Result<std::string> get_option(const PlanOptions& options,
                               std::string_view name) {
  return get_field<PlanOptions>(kFields, options, name);
}

Result<void> validate(const PlanOptions& options) {
  return check_fields<PlanOptions>(kFields, options);
}

}  // namespace shardprop
