#include "base/edit_distance.h"
#include "mesh/preset_text.h"
#include "mesh/preset_texts.h"

#include <shardprop/mesh/kernel_fit.h>
#include <shardprop/mesh/topology.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

std::vector<Preset> read_presets() {
  std::vector<Preset> presets;
  for (const std::string_view text : preset_texts()) {
    Result<Preset> preset = read_preset(text);
    // The build embeds the files, so an error is one of this program.
    if (!preset) {
      throw InternalError("a preset is broken: " + preset.error().message +
                          " (" + preset.error().location + ")");
    }
    presets.push_back(*std::move(preset));
  }
  return presets;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = read_presets();
  return all;
}

std::vector<Topology> topologies_of(const std::vector<Preset>& presets) {
  std::vector<Topology> topologies;
  topologies.reserve(presets.size());
  for (const Preset& preset : presets) topologies.push_back(preset.topology);
  return topologies;
}

tl::unexpected<Error> unknown_topology(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Topology& preset : topology_presets())
    names.push_back(preset.name);
  return fail(ErrorCode::kTopologyUnknown,
              "`" + std::string(name) + "` is not a known topology",
              did_you_mean(name, names));
}

}  // namespace

const std::vector<Topology>& topology_presets() {
  static const std::vector<Topology> all = topologies_of(presets());
  return all;
}

Result<Topology> find_topology(std::string_view name) {
  for (const Topology& preset : topology_presets()) {
    if (preset.name == name) return preset;
  }
  return unknown_topology(name);
}

const Topology& default_topology() { return topology_presets().front(); }

Result<PresetSamples> preset_samples(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.topology.name == name) return preset.samples;
  }
  return unknown_topology(name);
}

}  // namespace shardprop
