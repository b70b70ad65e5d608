// The reader of the presets' own files.
#include "mesh/preset_text.h"

#include "mesh/preset_texts.h"
#include "support/result_checks.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

using testing::value_of;

// Returns the text of the default preset with one part replaced.
std::string edited(std::string_view part, std::string_view by) {
  std::string text(preset_texts().front());
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), by);
}

TEST_CASE("each preset is a file with figures, sources and samples") {
  for (const std::string_view text : preset_texts()) {
    const Preset preset = value_of(read_preset(text));
    CAPTURE(preset.topology.name);
    CHECK(value_of(find_topology(preset.topology.name)) == preset.topology);
    CHECK(preset.samples.matmuls.empty() == preset.samples.source.empty());
  }
  const Preset h100 = value_of(read_preset(preset_texts().front()));
  CHECK(h100.topology.name == "dgx-h100");
  CHECK(h100.topology.f16_tflops ==
        Figure{989, "NVIDIA H100 datasheet, dense"});
  CHECK(h100.topology.node_reduces);
  CHECK(h100.topology.measured.size() == 9);
  CHECK(h100.topology.measured[2] ==
        MeasuredLine{CollectiveKind::kAllReduce, 2, 1, 10, 324, false,
                     h100.topology.measured[0].source});
  CHECK(h100.samples.matmuls.size() == 42);
}

TEST_CASE("a comment and quotes inside a text do not end it") {
  const Preset preset = value_of(
      read_preset(edited("\"8 H100 SXM a node, NVSwitch, NDR 400 Gb/s\"",
                         R"("a \"b\" # {c}, source = \\" # and a comment)")));
  CHECK(preset.topology.description == R"(a "b" # {c}, source = \)");
}

TEST_CASE("a line that is not of a preset is refused with its number") {
  const auto place = [](std::string_view part, std::string_view by) {
    const auto made = read_preset(edited(part, by));
    CAPTURE(by);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::kTopologyFile);
    return made.error().location;
  };
  CHECK(place("name = \"dgx-h100\"", "name = 3") == "line 1");
  CHECK(place("name = \"dgx-h100\"", "name \"dgx-h100\"") == "line 1");
  CHECK(place("name = \"dgx-h100\"", "nom = \"dgx-h100\"") == "line 1");
  CHECK(place("name = \"dgx-h100\"", "name = \"dgx-h100") == "line 1");
  CHECK(place("engine = \"nccl\"", "engine = \"smoke\"") == "line 3");
  CHECK(place("generation = \"hopper\"", "generation = \"volta\"") == "line 4");
  CHECK(place("node_reduces = true", "node_reduces = 1") == "line 5");
  CHECK(place("[node]", "[node") == "line 7");
  CHECK(place("[node]", "[[node]]") == "line 7");
  CHECK(place("devices = {value = 8.0", "devices = {value = x") == "line 8");
  CHECK(place("devices = {value = 8.0", "device = {value = 8.0") == "line 8");
  CHECK(place("devices = {value = 8.0,", "devices = {value = 8.0;") ==
        "line 8");
  CHECK_FALSE(read_preset(edited("[[measured]]", "[measured]")).has_value());
  CHECK_FALSE(read_preset(edited("\"all_gather\"", "\"scatter\"")).has_value());
  CHECK_FALSE(read_preset(edited("ranks_per_node = 2", "ranks_per_node = 2.5"))
                  .has_value());
  CHECK_FALSE(
      read_preset(edited("latency_us = 8.0", "latency = 8.0")).has_value());
  CHECK_FALSE(
      read_preset(edited("matmuls = \"\"\"", "matmuls = \"\"")).has_value());
  CHECK_FALSE(read_preset("name = \"lab\"\n").has_value());
  CHECK_CODE(
      read_preset(edited("efficiency = {value = 0", "efficiency = {value = 7")),
      ErrorCode::kTopologyFigure);
}

}  // namespace
}  // namespace shardprop
