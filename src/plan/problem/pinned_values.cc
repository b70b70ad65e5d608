#include "plan/problem/pinned_values.h"

#include "base/edit_distance.h"
#include "base/glob.h"
#include "base/try.h"
#include "plan/problem/pin_match.h"

#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace shardprop {
namespace {

std::string flag(const Pin& pin) { return "--pin '" + to_string(pin) + "'"; }

std::string described(const Value& value) {
  return value.display_name() + ": " + to_string(value.meta);
}

Result<void> check_fit(const Layout& layout, const DeviceMesh& mesh,
                       const Value& value) {
  SP_CHECK(check_layout(layout, mesh, value.meta));
  if (value.is_input() && layout.has_partial()) {
    return fail(ErrorCode::kPinDoesNotFit,
                "what goes into a program cannot be partial",
                "pin it to R or to shards");
  }
  for (int dim = 0; dim < value.meta.rank(); ++dim) {
    std::int64_t parts = 1;
    for (const std::int32_t m : layout.cuts(dim)) parts *= mesh.size(m);
    if (parts > 1 && parts > value.meta.size(dim)) {
      return fail(ErrorCode::kPinDoesNotFit,
                  "dim " + std::to_string(dim) + " of size " +
                      std::to_string(value.meta.size(dim)) + " is cut into " +
                      std::to_string(parts) + " parts",
                  "plans leave no rank without elements: shard another dim, or "
                  "over fewer ranks");
    }
  }
  return {};
}

Result<Layout> fitted(const Pin& pin, const DeviceMesh& mesh,
                      const Value& value) {
  if (auto fits = check_fit(pin.layout, mesh, value); !fits) {
    Error why = std::move(fits).error();
    return fail(Error{
        ErrorCode::kPinDoesNotFit,
        "the pin does not fit `" + value.display_name() + "`: " + why.message,
        flag(pin),
        {described(value) + "   mesh " + to_string(mesh)},
        why.help.empty() ? "give one placement per mesh dim, of a dim that "
                           "the tensor has"
                         : why.help});
  }
  return canonical(pin.layout, mesh, value.meta.shape());
}

Error conflict(const Pin& pin, const Pin& other, const Value& value) {
  return Error{
      ErrorCode::kPinConflict,
      "two pins ask `" + value.display_name() + "` for different layouts",
      flag(pin),
      {"also matched by " + flag(other), described(value)},
      "leave one of them out, or narrow its pattern"};
}

// Returns `modul:` for "modul:b.0*", which was parsed as a name; else empty.
// Names may contain colons, as in aten::mm.
std::string_view unknown_selector(std::string_view glob) {
  const std::size_t colon = glob.find(':');
  if (colon == 0 || colon == std::string_view::npos) return {};
  if (glob.substr(colon).starts_with("::")) return {};
  return glob.substr(0, colon + 1);
}

// Returns the help line for a term that matches nothing in the graph.
std::string help_for(const PinTerm& term, const Pin& pin, const Graph& graph) {
  const bool is_name = term.kind == PinTerm::Kind::kName;
  const std::string_view selector = unknown_selector(term.glob);
  if (is_name && !selector.empty()) {
    static constexpr std::string_view kSelectors[] = {
        "name:", "module:", "op:", "phase:", "stored:", "used:", "state:"};
    if (selector == "stored:" || selector == "used:" || selector == "state:") {
      return "`" + std::string(selector) +
             "` stands once, in front of the first term";
    }
    if (std::find(std::begin(kSelectors), std::end(kSelectors), selector) !=
        std::end(kSelectors)) {
      return "`" + std::string(selector) + "` stands once in a term";
    }
    return "`" + std::string(selector) + "` is not a selector; " +
           did_you_mean(selector, kSelectors);
  }
  // Stars cannot be misspelt, so only the letters are compared.
  std::string letters = term.glob;
  std::erase(letters, '*');
  const std::string near =
      did_you_mean(letters, names_to_pin(graph, term.kind));
  // A list of every name of a model does not help.
  if (near.starts_with("did you mean")) return near;
  switch (term.kind) {
    case PinTerm::Kind::kOp:
      return "no node has that operator; `shardprop ops --supported` lists "
             "those of a graph";
    case PinTerm::Kind::kModule:
      return "no node or parameter is of that module; `shardprop explain` "
             "prints the modules";
    case PinTerm::Kind::kPhase:
      return "no node of the graph is of that phase";
    case PinTerm::Kind::kName:
      break;
  }
  if (pin.place == Pin::Place::kState) {
    return "state: is for parameters that have a gradient; `*` stands for any "
           "characters";
  }
  return pin.place == Pin::Place::kBoth
             ? "name a parameter, input or node; `*` stands for any characters"
             : "stored: and used: are for parameters and inputs; `*` stands "
               "for any characters";
}

bool is_idle(const PinTerm& term, const Graph& graph) {
  const auto names = names_to_pin(graph, term.kind);
  return std::none_of(names.begin(), names.end(), [&](std::string_view name) {
    return !name.empty() && matches_glob(term.glob, name);
  });
}

Error matches_nothing(const Pin& pin, const Graph& graph) {
  std::string help =
      pin.place == Pin::Place::kState
          ? "state: is for parameters that have a gradient"
      : pin.place == Pin::Place::kBoth
          ? "each term matches something, all together nothing: leave one out"
          : "stored: and used: are for parameters and inputs; leave a term "
            "out, or pin what a node makes without them";
  for (const PinTerm& term : pin.terms) {
    if (!is_idle(term, graph)) continue;
    help = help_for(term, pin, graph);
    break;
  }
  return Error{ErrorCode::kPinMatchesNothing,
               "the pin matches nothing in `" + graph.name() + "`",
               flag(pin),
               {},
               std::move(help)};
}

}  // namespace

// Returns whether a user of the input, or of a view of all its elements,
// matches the pin.
bool PinnedValues::takes_any(std::size_t pin, ValueId input) const {
  std::vector<ValueId> seen{input};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const Use& use : graph_.value(seen[i]).consumers) {
      const Node& node = graph_.node(use.node);
      if (matches_use(pins_[pin], graph_.value(input), node)) return true;
      for (const ValueId out : node.outputs) {
        if (graph_.value(out).view_of == seen[i]) seen.push_back(out);
      }
    }
  }
  return false;
}

Result<void> PinnedValues::add(std::size_t pin, const DeviceMesh& mesh,
                               ValueId id) {
  const Value& value = graph_.value(id);
  const Pin& asked = pins_[pin];
  Tally& tally = tallies_[pin];
  tally.matched.insert(id);
  Result<Layout> layout = fitted(asked, mesh, value);
  if (!layout) {
    if (!tally.first_misfit) {
      tally.first_misfit = std::move(layout).error();
    }
    return {};
  }
  if (value.is_input() && asked.pins_uses()) {
    used_[id].push_back({*layout, pin});
  }
  const bool is_state = asked.place == Pin::Place::kState;
  if (!is_state && !asked.pins_buffer()) return {};
  const auto [it, fresh] = (is_state ? states_ : produced_)
                               .try_emplace(id, PinnedLayout{*layout, pin});
  if (!fresh && !(it->second.layout == *layout)) {
    return fail(conflict(asked, pins_[it->second.pin], value));
  }
  tally.pinned.insert(id);
  return {};
}

bool PinnedValues::matches(std::size_t pin, const Value& value) const {
  const Pin& asked = pins_[pin];
  if (!value.is_input()) {
    return matches_result(asked, graph_.node(value.producer), value);
  }
  switch (asked.place) {
    case Pin::Place::kUsed:
      return takes_any(pin, value.id);
    case Pin::Place::kState:
      return value.input_kind == InputKind::kParameter &&
             graph_.gradient_of(value.id) && matches_input(asked, value);
    case Pin::Place::kBoth:
    case Pin::Place::kStored:
      break;
  }
  return matches_input(asked, value);
}

Result<PinnedValues> PinnedValues::create(const Graph& graph,
                                          const DeviceMesh& mesh,
                                          std::span<const Pin> pins) {
  PinnedValues out(graph, pins);
  for (std::size_t p = 0; p < pins.size(); ++p) {
    for (const Value& value : graph.values()) {
      if (out.matches(p, value)) SP_CHECK(out.add(p, mesh, value.id));
    }
    if (out.tallies_[p].matched.empty()) {
      return fail(matches_nothing(pins[p], graph));
    }
  }
  return out;
}

const PinnedLayout* PinnedValues::produced(ValueId value) const {
  const auto found = produced_.find(value);
  return found == produced_.end() ? nullptr : &found->second;
}

const std::vector<PinnedLayout>& PinnedValues::used(ValueId input) const {
  static const std::vector<PinnedLayout> kNone;
  const auto found = used_.find(input);
  return found == used_.end() ? kNone : found->second;
}

bool PinnedValues::is_for(const PinnedLayout& pinned, ValueId input,
                          const Node& node) const {
  const Pin& pin = pins_[pinned.pin];
  // Only `used:` selects among users.
  return pin.place != Pin::Place::kUsed ||
         matches_use(pin, graph_.value(input), node);
}

const PinnedLayout* PinnedValues::state(ValueId parameter) const {
  const auto found = states_.find(parameter);
  return found == states_.end() ? nullptr : &found->second;
}

void PinnedValues::pass_over(ValueId value, Error why) {
  if (produced_.erase(value) > 0) forget(value, false, why);
}

void PinnedValues::pass_over_state(ValueId parameter, Error why) {
  if (states_.erase(parameter) > 0) forget(parameter, true, why);
}

// Removes a value from the pinned values of the pins of states, or of the others.
void PinnedValues::forget(ValueId value, bool of_states, const Error& why) {
  for (std::size_t p = 0; p < pins_.size(); ++p) {
    if ((pins_[p].place == Pin::Place::kState) != of_states ||
        tallies_[p].pinned.erase(value) == 0) {
      continue;
    }
    if (!tallies_[p].first_misfit) tallies_[p].first_misfit = why;
  }
}

void PinnedValues::note_used(ValueId input, const PinnedLayout& pinned) {
  tallies_[pinned.pin].pinned.insert(input);
}

Result<std::vector<PinnedValues::Count>> PinnedValues::counts() const {
  std::vector<Count> out;
  for (std::size_t p = 0; p < pins_.size(); ++p) {
    const Tally& tally = tallies_[p];
    if (tally.pinned.empty()) {
      if (tally.first_misfit) return fail(*tally.first_misfit);
      return fail(
          Error{ErrorCode::kPinNoStrategy,
                "no operator can take what the pin is for in that layout",
                flag(pins_[p]),
                {},
                "pin it to a layout that its users have a strategy for; "
                "stored: pins how it lies between steps"});
    }
    out.push_back({static_cast<std::int64_t>(tally.matched.size()),
                   static_cast<std::int64_t>(tally.pinned.size())});
  }
  return out;
}

}  // namespace shardprop
