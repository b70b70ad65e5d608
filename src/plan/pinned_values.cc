#include "plan/pinned_values.h"

#include "base/edit_distance.h"
#include "base/try.h"

#include <shardprop/placement/tensor_spec.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

struct Name {
  std::string_view text;
  ValueId value;
};

std::vector<Name> names_of(const Graph& graph) {
  std::vector<Name> names;
  for (const Value& value : graph.values()) {
    names.push_back({value.name, value.id});
    if (!value.qualified_name.empty()) {
      names.push_back({value.qualified_name, value.id});
    }
    for (const std::string& alias : value.aliases) {
      names.push_back({alias, value.id});
    }
  }
  for (const Node& node : graph.nodes()) {
    if (!node.outputs.empty()) names.push_back({node.name, node.outputs[0]});
  }
  return names;
}

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

Result<PinnedValue> fitted(const Pin& pin, const DeviceMesh& mesh,
                           const Value& value) {
  if (auto fits = check_fit(pin.layout, mesh, value); !fits) {
    Error why = std::move(fits).error();
    return fail(Error{
        ErrorCode::kPinDoesNotFit,
        "the pin does not fit `" + value.display_name() + "`: " + why.message,
        flag(pin),
        {described(value) + "   mesh " + to_string(mesh)},
        why.help.empty() ? "give one placement per mesh dim, of a tensor dim "
                           "that there is"
                         : why.help});
  }
  return PinnedValue{canonical(pin.layout, mesh, value.meta.shape()), pin};
}

}  // namespace

Result<std::map<ValueId, PinnedValue>> pinned_values(
    const Graph& graph, const DeviceMesh& mesh, std::span<const Pin> pins) {
  std::map<ValueId, PinnedValue> pinned;
  if (pins.empty()) return pinned;
  const std::vector<Name> names = names_of(graph);
  for (const Pin& pin : pins) {
    bool matched = false;
    for (const Name& name : names) {
      if (!glob_matches(pin.pattern, name.text)) continue;
      matched = true;
      const Value& value = graph.value(name.value);
      SP_ASSIGN(PinnedValue wanted, fitted(pin, mesh, value));
      const auto [it, fresh] = pinned.try_emplace(name.value, wanted);
      if (!fresh && !(it->second.layout == wanted.layout)) {
        return fail(Error{
            ErrorCode::kPinConflict,
            "two pins ask `" + value.display_name() + "` for different layouts",
            flag(pin),
            {"also matched by " + flag(it->second.pin), described(value)},
            "leave one of them out, or narrow its pattern"});
      }
    }
    if (!matched) {
      std::vector<std::string_view> known;
      known.reserve(names.size());
      for (const Name& name : names) known.push_back(name.text);
      std::string help = did_you_mean(pin.pattern, known);
      // A list of every name of a model helps nobody.
      if (!help.starts_with("did you mean")) {
        help = "name a parameter, input or node; `*` stands for any characters";
      }
      return fail(Error{ErrorCode::kPinMatchesNothing,
                        "the pin matches nothing in `" + graph.name() + "`",
                        flag(pin),
                        {},
                        std::move(help)});
    }
  }
  return pinned;
}

}  // namespace shardprop
