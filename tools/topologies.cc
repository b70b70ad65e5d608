#include "base/parse_int.h"
#include "base/parse_number.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/plan_options.h"
#include "commands.h"
#include "io/input_file.h"
#include "report/topology_json.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/mesh/kernel_fit.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/redistribute/fit.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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
std::optional<FitRequest> parse_fit(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::size_t cross = text.find('x', colon);
  const std::size_t equals = text.find('=', cross);
  if (equals == std::string::npos) return std::nullopt;
  const auto kind = parse_collective_kind(text.substr(0, colon));
  const auto ranks = parse_int(text.substr(colon + 1, cross - colon - 1));
  const auto nodes = parse_int(text.substr(cross + 1, equals - cross - 1));
  if (!kind || !ranks || !nodes || *ranks < 1 || *nodes < 1 ||
      *ranks > kMaxMeshRanks || *nodes > kMaxMeshRanks / *ranks) {
    return std::nullopt;
  }
  return FitRequest{
      *kind, {*ranks * *nodes, *ranks, *nodes}, text.substr(equals + 1)};
}

tl::unexpected<Error> unknown_fit(const std::string& text) {
  return fail(Error{ErrorCode::kInvalidArgument,
                    "`" + text + "` does not say which table measures what",
                    "--fit " + text,
                    {},
                    "write all_gather:8x2=table.txt: collective, ranks a "
                    "node, nodes (at most " +
                        std::to_string(kMaxMeshRanks) +
                        " ranks in all) and file; or collectives=FILE, "
                        "matmul=FILE, steps=FILE"});
}

// Rounds to four significant digits: a fit is not more exact.
double rounded(double value) {
  return parse_number(fmt::format("{:.4g}", value)).value_or(value);
}

// Fits the tables that --fit names, one after the other, into a topology.
class TopologyFit {
 public:
  TopologyFit(Topology topology, Console& console)
      : topology_(std::move(topology)), console_(console) {}

  Result<void> add(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string kind = text.substr(0, equals);
    const bool is_one_collective = kind.find(':') != std::string::npos;
    const auto request = is_one_collective ? parse_fit(text) : std::nullopt;
    if (equals == std::string::npos ||
        (is_one_collective
             ? !request
             : kind != "matmul" && kind != "steps" && kind != "collectives")) {
      return unknown_fit(text);
    }
    path_ = request ? request->path : text.substr(equals + 1);
    SP_ASSIGN(const std::string table, read_file(path_, kMostTable));
    auto added = request                 ? add_lines(*request, table)
                 : kind == "matmul"      ? add_matmuls(table)
                 : kind == "collectives" ? add_collectives(table)
                                         : add_steps(table);
    if (!added) return fail(std::move(added).error().at(path_));
    return {};
  }

  const Topology& topology() const { return topology_; }

 private:
  std::string source() const { return "fit of " + path_; }

  Result<void> add_lines(const FitRequest& request, const std::string& table) {
    SP_ASSIGN(const auto rows, parse_measurements(table));
    return add_collective(request.collective, request.place, rows);
  }

  Result<void> add_collective(CollectiveKind collective,
                              const GroupPlace& place,
                              std::span<const Measurement> rows) {
    SP_ASSIGN(CollectiveFit fit,
              fit_collective(collective, place, rows, source()));
    std::erase_if(topology_.measured, [&](const MeasuredLine& line) {
      return line.collective == collective &&
             line.ranks_per_node == place.ranks_per_node &&
             line.nodes == place.nodes;
    });
    for (MeasuredLine& line : fit.lines) {
      line.latency_us = rounded(line.latency_us);
      line.bandwidth_gbps = rounded(line.bandwidth_gbps);
      topology_.measured.push_back(std::move(line));
    }
    console_.messages << fmt::format(
        "{}: {} over {} on {}, {}, {}, off by {:.1f} % at most\n",
        printable(path_), to_string(collective),
        counted(place.ranks_per_node, "rank"), counted(place.nodes, "node"),
        counted(rows.size(), "measurement"), counted(fit.lines.size(), "line"),
        100 * fit.worst_relative_error);
    return {};
  }

  // Ranks fill nodes, as those of a mesh do.
  Result<void> add_collectives(const std::string& table) {
    SP_ASSIGN(const auto tables, parse_collective_tables(table));
    if (tables.empty()) {
      return fail(ErrorCode::kMeasurementTable,
                  "the table measures no collective of 16-bit numbers",
                  "keep the rows whose nccl_dtype is half");
    }
    for (const CollectiveTable& one : tables) {
      const std::int64_t near = std::min(one.ranks, topology_.node_size());
      const GroupPlace place{one.ranks, near, (one.ranks + near - 1) / near};
      SP_CHECK(add_collective(one.collective, place, one.measurements));
    }
    return {};
  }

  Result<void> add_matmuls(const std::string& table) {
    SP_ASSIGN(const auto matmuls, parse_matmuls(table));
    SP_ASSIGN(const RateFit fit, fit_matmul_rates(topology_, matmuls));
    topology_.efficiency = {fit.efficiency, source()};
    topology_.memory_efficiency = {fit.memory_efficiency, source()};
    topology_.ramp_us = {fit.ramp_us, source()};
    console_.messages << fmt::format(
        "{}: {}, off by {:.1f} % in the mean\n", printable(path_),
        counted(matmuls.size(), "matmul"), 100 * std::expm1(fit.mean_error));
    return {};
  }

  Result<void> add_steps(const std::string& table) {
    SP_ASSIGN(const auto times, parse_step_times(table));
    topology_ = with_step_rates(std::move(topology_), times, source());
    for (const StepTime& time : times) {
      Figure& rate = topology_.*time.rate;
      rate.value = rounded(rate.value);
    }
    console_.messages << fmt::format("{}: {}\n", printable(path_),
                                     counted(times.size(), "measured time"));
    return {};
  }

  Topology topology_;
  Console& console_;
  std::string path_;
};

// Prints the base topology with what was fitted to the tables.
Result<int> run_fit(const Arguments& arguments, Console& console) {
  Topology base = default_topology();
  if (arguments.has(kTopology)) {
    SP_ASSIGN(base, topology_option(arguments));
  }
  base.name = "fitted-" + base.name;
  TopologyFit fit(std::move(base), console);
  for (const std::string& text : arguments.all("--fit")) {
    SP_CHECK(fit.add(text));
  }
  console.data << topology_to_toml(fit.topology());
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
                       .value = "KIND=TABLE",
                       .help = "write a topology file fitted to measurements: "
                               "all_gather:8x2=TABLE (rows of nccl-tests, or "
                               "bytes and us), collectives=CSV and matmul=CSV "
                               "(as in aiconfigurator), steps=TABLE (kind, "
                               "measured and predicted ms)",
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
