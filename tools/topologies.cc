#include "commands.h"

#include <shardprop/mesh/topology.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardprop::cli {
namespace {

void print_text(Console& console) {
  for (const Topology& topology : topology_presets()) {
    console.data << fmt::format(
        "{}{}\n  {}\n", topology.name,
        &topology == topology_presets().data() ? " (default)" : "",
        topology.description);
    for (const TopologyField& field : topology_fields()) {
      const Figure& figure = topology.*field.figure;
      console.data << fmt::format("  {:<30} {:>10g} {:<8} {}\n", field.key,
                                  figure.value, field.unit, figure.source);
    }
    for (const MeasuredLine& line : topology.measured) {
      console.data << fmt::format(
          "  measured {} on {} nodes x {}: {:g} us + bytes / {:g} GB/s   {}\n",
          to_string(line.collective), line.nodes, line.ranks_per_node,
          line.latency_us, line.bandwidth_gbps, line.source);
    }
    console.data << '\n';
  }
}

void print_json(Console& console) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Topology& topology : topology_presets()) {
    nlohmann::ordered_json entry;
    entry["name"] = topology.name;
    entry["description"] = topology.description;
    for (const TopologyField& field : topology_fields()) {
      const Figure& figure = topology.*field.figure;
      entry["figures"][std::string(field.key)] = {{"value", figure.value},
                                                  {"unit", field.unit},
                                                  {"source", figure.source}};
    }
    entry["measured"] = nlohmann::ordered_json::array();
    for (const MeasuredLine& line : topology.measured) {
      entry["measured"].push_back({{"collective", to_string(line.collective)},
                                   {"ranks_per_node", line.ranks_per_node},
                                   {"nodes", line.nodes},
                                   {"latency_us", line.latency_us},
                                   {"bandwidth_gbps", line.bandwidth_gbps},
                                   {"source", line.source}});
    }
    list.push_back(std::move(entry));
  }
  console.data << list.dump(1) << '\n';
}

Result<int> run_topologies(const Arguments& arguments, Console& console) {
  if (arguments.get("--format") == "json") {
    print_json(console);
  } else {
    print_text(console);
  }
  return kDone;
}

}  // namespace

Command topologies_command() {
  return {.name = "topologies",
          .summary = "the presets, with their figures and sources",
          .example = "shardprop topologies",
          .options = {format_option(), output_option()},
          .run = run_topologies};
}

}  // namespace shardprop::cli
