#include "base/parse_int.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/plan_options.h"
#include "commands.h"
#include "io/input_file.h"
#include "report/topology_json.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/redistribute/fit.h>

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

namespace shardprop::cli {
namespace {

constexpr std::string_view kTopology = "--topology";

void print_text(std::span<const Topology> topologies, Console& console) {
  for (const Topology& topology : topologies) {
    console.data << fmt::format(
        "{}{}\n  {}\n", printable(topology.name),
        topology.name == default_topology().name ? " (default)" : "",
        printable(topology.description));
    for (const TopologyField& field : topology_fields()) {
      const Figure& figure = topology.*field.figure;
      console.data << fmt::format("  {:<30} {:>10g} {:<8} {}\n", field.key,
                                  figure.value, field.unit,
                                  printable(figure.source));
    }
    for (const MeasuredLine& line : topology.measured) {
      console.data << fmt::format(
          "  measured {} on {} nodes x {}: {:g} us + bytes / {:g} GB/s   {}\n",
          to_string(line.collective), line.nodes, line.ranks_per_node,
          line.latency_us, line.bandwidth_gbps, printable(line.source));
    }
    console.data << '\n';
  }
}

void print_json(std::span<const Topology> topologies, Console& console) {
  JsonText json(JsonText::Form::kIndented);
  json.list(topologies,
            [&](const Topology& topology) { write_topology(json, topology); });
  console.data << json.take() << '\n';
}

// The limit is far above the size of any table of measurements.
constexpr std::int64_t kMostTable = std::int64_t{64} << 20;

struct FitRequest {
  CollectiveKind collective;
  GroupPlace place;
  std::string path;
};

// "all_gather:8x2=table.txt": collective, ranks a node, nodes, table.
Result<FitRequest> parse_fit(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::size_t cross = text.find('x', colon);
  const std::size_t equals = text.find('=', cross);
  if (equals != std::string::npos) {
    const auto kind = parse_collective_kind(text.substr(0, colon));
    const auto ranks = parse_int(text.substr(colon + 1, cross - colon - 1));
    const auto nodes = parse_int(text.substr(cross + 1, equals - cross - 1));
    if (kind && ranks && nodes && *ranks > 0 && *nodes > 0 &&
        *ranks <= kMaxMeshRanks && *nodes <= kMaxMeshRanks / *ranks) {
      return FitRequest{
          *kind, {*ranks * *nodes, *ranks, *nodes}, text.substr(equals + 1)};
    }
  }
  return fail(Error{ErrorCode::kInvalidArgument,
                    "`" + text + "` does not say which table measures what",
                    "--fit " + text,
                    {},
                    "write all_gather:8x2=table.txt: collective, ranks a "
                    "node, nodes (at most " +
                        std::to_string(kMaxMeshRanks) +
                        " ranks in all) and file"});
}

// Prints the base topology with fitted lines for every measured place.
Result<int> run_fit(const Arguments& arguments, Console& console) {
  Topology topology = default_topology();
  if (arguments.has(kTopology)) {
    SP_ASSIGN(topology, topology_option(arguments));
  }
  topology.name = "fitted-" + topology.name;
  for (const std::string& text : arguments.all("--fit")) {
    SP_ASSIGN(const FitRequest request, parse_fit(text));
    SP_ASSIGN(const std::string table, read_file(request.path, kMostTable));
    const auto rows = parse_measurements(table);
    if (!rows) return fail(Error(rows.error()).at(request.path));
    auto fit = fit_collective(request.collective, request.place, *rows,
                              "fit of " + request.path);
    if (!fit) return fail(Error(fit.error()).at(request.path));
    std::erase_if(topology.measured, [&](const MeasuredLine& line) {
      return line.collective == request.collective &&
             line.ranks_per_node == request.place.ranks_per_node &&
             line.nodes == request.place.nodes;
    });
    topology.measured.insert(topology.measured.end(), fit->lines.begin(),
                             fit->lines.end());
    console.messages << fmt::format(
        "{}: {}, {}, off by {:.1f} % at most\n", printable(request.path),
        counted(rows->size(), "measurement"),
        counted(fit->lines.size(), "line"), 100 * fit->worst_relative_error);
  }
  console.data << topology_to_toml(topology);
  return kDone;
}

Result<int> run_topologies(const Arguments& arguments, Console& console) {
  if (arguments.has("--fit")) return run_fit(arguments, console);
  std::span<const Topology> listed = topology_presets();
  Topology one;
  if (arguments.has(kTopology)) {
    SP_ASSIGN(one, topology_option(arguments));
    listed = std::span(&one, 1);
  }
  if (arguments.get("--format") == "json") {
    print_json(listed, console);
  } else {
    print_text(listed, console);
  }
  return kDone;
}

}  // namespace

Command topologies_command() {
  return {.name = "topologies",
          .summary = "the presets, with their figures and sources; fits",
          .example = "shardprop topologies",
          .options = {{.name = "--fit",
                       .value = "COLLECTIVE:RANKSxNODES=TABLE",
                       .help = "write a topology file fitted to measurements "
                               "(rows of nccl-tests, or bytes and us)",
                       .repeatable = true,
                       .input = input_after_equals},
                      {.name = std::string(kTopology),
                       .value = "NAME|FILE.toml",
                       .help = "this one alone; with --fit, what it starts "
                               "from, by default dgx-h100",
                       .input = input_topology},
                      format_option(),
                      output_option()},
          .run = run_topologies};
}

}  // namespace shardprop::cli
