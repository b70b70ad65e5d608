#include "report/topology_json.h"

#include "report/local_run_read.h"

#include <string>
#include <utility>

namespace shardprop {

LinearJson topology_json(const Topology& topology) {
  LinearJson figures = LinearJson::object();
  for (const TopologyField& field : topology_fields()) {
    const Figure& figure = topology.*field.figure;
    figures[std::string(field.key)] = {{"value", figure.value},
                                       {"unit", field.unit},
                                       {"source", figure.source}};
  }
  LinearJson measured = LinearJson::array();
  for (const MeasuredLine& line : topology.measured) {
    measured.push_back({{"collective", to_string(line.collective)},
                        {"ranks_per_node", line.ranks_per_node},
                        {"nodes", line.nodes},
                        {"latency_us", line.latency_us},
                        {"bandwidth_gbps", line.bandwidth_gbps},
                        {"complete", line.complete},
                        {"source", line.source}});
  }
  return {{"name", topology.name},
          {"description", topology.description},
          {"engine", to_string(topology.engine)},
          {"generation", to_string(topology.generation)},
          {"node_reduces", topology.node_reduces},
          {"figures", std::move(figures)},
          {"measured", std::move(measured)}};
}

Topology read_topology(const JsonCursor& at) {
  Topology out;
  out.name = at["name"].text();
  out.description = at["description"].text();
  if (const auto engine = parse_engine(at["engine"].text())) {
    out.engine = *engine;
  } else {
    at["engine"].fail("unknown engine");
  }
  if (const auto generation = parse_generation(at["generation"].text())) {
    out.generation = *generation;
  } else {
    at["generation"].fail("unknown generation");
  }
  out.node_reduces = at["node_reduces"].boolean();
  for (const TopologyField& field : topology_fields()) {
    // Plans of earlier releases lack what came later.
    if (field.may_be_zero && !at["figures"].has(field.key)) continue;
    const JsonCursor figure = at["figures"][field.key];
    if (figure["unit"].text() != field.unit)
      figure["unit"].fail("another unit");
    out.*field.figure = {figure["value"].number(), figure["source"].text()};
  }
  for (const JsonCursor& line : at["measured"].elements()) {
    out.measured.push_back(
        {read_collective_kind(line["collective"]),
         line["ranks_per_node"].integer(1), line["nodes"].integer(1),
         line["latency_us"].number(), line["bandwidth_gbps"].number(),
         line["complete"].boolean(), line["source"].text()});
  }
  return out;
}

}  // namespace shardprop
