#include <shardprop/io/topology_file.h>

#include "support/result_checks.h"
#include "support/temporary_file.h"

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("every preset reads back from its own file") {
  for (const Topology& preset : topology_presets()) {
    CAPTURE(preset.name);
    CHECK(value_of(parse_topology_toml(topology_to_toml(preset), "a.toml")) ==
          preset);
  }
}

TEST_CASE("the file of a preset reads as the preset that the library has") {
  for (const Topology& preset : topology_presets()) {
    CAPTURE(preset.name);
    const std::string path = "src/mesh/presets/" + preset.name + ".toml";
    CHECK(value_of(load_topology(path)) == preset);
  }
}

TEST_CASE("samples of a file are checked") {
  const auto error = [](const char* text) {
    const auto made = parse_topology_toml(text, "x.toml");
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == ErrorCode::kTopologyFile);
    return made.error();
  };
  CHECK(error("samples = 3").location == "x.toml:1:11");
  CHECK(error("[samples]\nmatmuls = 3").location == "x.toml:2:11");
  CHECK(error("[samples]\nmatmul = \"\"").location == "x.toml:2:1");
  const Error row = error("[samples]\nmatmuls = \"\"\"\n1 2 3\n\"\"\"");
  CHECK(row.location == "x.toml:2:11");
  CHECK(row.message == "line 1: `1 2 3` is not a measured matmul");
}

TEST_CASE("a file says what differs from its base") {
  const Topology made = value_of(parse_topology_toml(R"(
name = "lab"
base = "dgx-a100"
engine = "mpi"
[node]
devices = 4
[network]
bandwidth_gbps = {value = 11.5, source = "ib_write_bw"}
[[measured]]
collective = "all_gather"
ranks_per_node = 4
nodes = 2
latency_us = 44
bandwidth_gbps = 310.0
)",
                                                     "lab.toml"));
  Topology expected = value_of(find_topology("dgx-a100"));
  expected.name = "lab";
  expected.engine = Engine::kMpi;
  expected.devices_per_node = {4, "lab.toml"};
  expected.network_bandwidth_gbps = {11.5, "ib_write_bw"};
  expected.measured = {
      {CollectiveKind::kAllGather, 4, 2, 44, 310, true, "lab.toml"}};
  CHECK(made == expected);
}

TEST_CASE("letters beyond ASCII stand in quotes and comments alone") {
  const auto place = [](std::string_view text) {
    const auto made = parse_topology_toml(text, "x.toml");
    if (made.has_value()) return std::string();
    CAPTURE(text);
    CHECK(made.error().code == ErrorCode::kTopologyFile);
    return made.error().location;
  };
  CHECK(place("\xEF\xBB\xBFname = \"\u00e9\"  # \u00e9\n").empty());
  CHECK(place("name = '\u00e9\\'\n").empty());
  CHECK(place("name = \"\\\"\u00e9\"\n").empty());
  CHECK(place("name = \"\"\"\n\u00e9\"\"\u00e9\"\"\"\"\"\n").empty());
  CHECK(place("name = \"\"\"a \\\\\u00e9 \\\" \\\n b\u00e9\"\"\"\n").empty());
  CHECK(place("name = '''\n\\\u00e9'''\n").empty());
  CHECK(place("\u00e9 = 1\n") == "x.toml:1:1");
  CHECK(place("name = \"\u00e9\" \u00e9\n") == "x.toml:1:12");
  CHECK(place("# \u00e9\n[node]\ndevices = \u0663\n") == "x.toml:3:11");
  CHECK(place("name = \"\"\u00e9\n") == "x.toml:1:10");
  CHECK(place("name = \"\"\"a\"\"\"\u00e9\n") == "x.toml:1:15");
  CHECK(place("name = \"\"\"a \\\n  \u00e9\"\"\"\n").empty());
  CHECK(place("name = 555\"\u00e9\"\n") == "x.toml:1:11");
}

TEST_CASE("what a topology file can get wrong is said with its line") {
  const auto error = [](const char* text) {
    const auto made = parse_topology_toml(text, "x.toml");
    REQUIRE_FALSE(made.has_value());
    return made.error();
  };
  CHECK(error("name = ").code == ErrorCode::kTopologyFile);
  CHECK(error("name = ").location == "x.toml:1:8");
  CHECK(error("base = \"dgx-h1000\"").code == ErrorCode::kTopologyFile);
  CHECK(error("base = \"dgx-h1000\"").help == "did you mean `dgx-h100`?");
  CHECK(error("engine = \"smoke\"").code == ErrorCode::kTopologyFile);
  CHECK(error("generation = \"volta\"").code == ErrorCode::kTopologyFile);
  CHECK(error("name = 3").message == "`name` is not a text");
  CHECK(error("devices = 3").message == "unknown key `devices`");
  CHECK(error("device = 3").message == "`device` is not a table");
  CHECK(error("\n[device]\nmemory_gb = 3").location == "x.toml:3:1");
  CHECK(error("[device]\nmemory_gb = 3").help == "did you mean `memory_gib`?");
  CHECK(error("[device]\nmemory_gib = true").message ==
        "`device.memory_gib` is not a number");
  CHECK(error("[device]\nmemory_gib = {source = \"x\"}").message ==
        "`device.memory_gib` has no value");
  CHECK(error("[device]\nmemory_gib = -3").code == ErrorCode::kTopologyFigure);
  CHECK(error("[device]\nmemory_gib = nan").code == ErrorCode::kTopologyFigure);
  CHECK(error("[device]\nefficiency = 1.5").code == ErrorCode::kTopologyFigure);
  CHECK(error("[node]\ndevices = 2.5").code == ErrorCode::kTopologyFigure);
  CHECK(error("measured = 3").code == ErrorCode::kTopologyFile);
  CHECK(error("measured = [3]").code == ErrorCode::kTopologyFile);
  CHECK(error("[[measured]]\nnodes = 1").code == ErrorCode::kTopologyFile);
}

TEST_CASE("files that are deeper or larger than any topology are refused") {
  std::string dotted = "a";
  for (int i = 0; i < 100'000; ++i) dotted += ".a";
  for (const std::string& text :
       {dotted + " = 1", "[" + dotted + "]", "a = {" + dotted + " = 1}"}) {
    const auto made = parse_topology_toml(text, "x.toml");
    CHECK_CODE(made, ErrorCode::kTopologyFile);
    CHECK(made.error().location == "x.toml");
  }
  CHECK_CODE(parse_topology_toml("a = " + std::string(100'000, '['), "x.toml"),
             ErrorCode::kTopologyFile);
}

TEST_CASE("every value that is refused is said with its line and column") {
  const auto place = [](const char* text) {
    const auto made = parse_topology_toml(text, "x.toml");
    REQUIRE_FALSE(made.has_value());
    return made.error().location;
  };
  CHECK(place("\nbase = \"dgx-h1000\"") == "x.toml:2:8");
  CHECK(place("name = \"lab\"\n engine = \"smoke\"") == "x.toml:2:11");
  CHECK(place("\n\ngeneration = \"volta\"") == "x.toml:3:14");
  CHECK(place("name = 3") == "x.toml:1:8");
  CHECK(place("[node]\ndevices = 2.5") == "x.toml:2:11");
  CHECK(place("[device]\n memory_gib = -3") == "x.toml:2:15");
  CHECK(place("[device]\nmemory_gib = {value = 1e-12}") == "x.toml:2:14");
  CHECK(place("[device]\nefficiency = 1.5") == "x.toml:2:14");
  CHECK(place("[[measured]]\ncollective = \"scatter\"\nranks_per_node = 1\n"
              "nodes = 1\nlatency_us = 1\nbandwidth_gbps = 1") ==
        "x.toml:2:14");
  CHECK(place("\n[[measured]]\ncollective = \"all_gather\"\n"
              "ranks_per_node = 0\nnodes = 1\nlatency_us = 1\n"
              "bandwidth_gbps = 1") == "x.toml:2:1");
}

TEST_CASE("a figure that is impossible is said with file and value") {
  const auto made = parse_topology_toml(
      "name = \"lab\"\n[node]\nlatency_us = -1e300", "x.toml");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().location == "x.toml:3:14");
  CHECK(made.error().message == "`node.latency_us` is -1e+300");
}

TEST_CASE("a name is a preset and .toml is a file") {
  CHECK(value_of(load_topology("cpu-host")).name == "cpu-host");
  CHECK_CODE(load_topology("nowhere"), ErrorCode::kTopologyUnknown);
  CHECK_CODE(load_topology("/nowhere/at/all.toml"), ErrorCode::kTopologyFile);
  const testing::TemporaryFile file("base = \"dgx-h200\"\n", ".toml");
  CHECK(value_of(load_topology(file.path())).name == file.path());
}

}  // namespace
}  // namespace shardprop
