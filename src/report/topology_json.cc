#include "report/topology_json.h"

#include "report/local_run_read.h"

#include <string>

namespace shardprop {

void write_topology(JsonText& json, const Topology& topology) {
  json.open('{').member("name", topology.name);
  json.member("description", topology.description);
  json.member("engine", to_string(topology.engine));
  json.member("generation", to_string(topology.generation));
  json.member("node_reduces", topology.node_reduces);
  json.key("figures").open('{');
  for (const TopologyField& field : topology_fields()) {
    const Figure& figure = topology.*field.figure;
    json.key(field.key).open('{').member("value", figure.value);
    json.member("unit", field.unit).member("source", figure.source).close('}');
  }
  json.close('}');
  json.key("measured").list(topology.measured, [&](const MeasuredLine& line) {
    json.open('{').member("collective", to_string(line.collective));
    json.member("ranks_per_node", line.ranks_per_node);
    json.member("nodes", line.nodes).member("latency_us", line.latency_us);
    json.member("bandwidth_gbps", line.bandwidth_gbps);
    json.member("complete", line.complete).member("source", line.source);
    json.close('}');
  });
  json.close('}');
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
    // Plans of earlier releases lack the figures that came later: these have
    // a default.
    const bool has_default = field.may_be_zero || (out.*field.figure).value > 0;
    if (has_default && !at["figures"].has(field.key)) continue;
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
