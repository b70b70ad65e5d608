#include <shardprop/io/contest.h>

#include "base/try.h"
#include "io/json_numbers.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop::io {
namespace {

using solver::Problem;
using solver::ProblemBuilder;
using solver::TableId;
using solver::Usage;
using solver::VariableId;

// A list of lists of integers, flattened: the format's only data type.
struct Rows {
  std::vector<std::size_t> begin{0};
  std::vector<std::int64_t> values;

  std::size_t size() const { return begin.size() - 1; }
  std::span<const std::int64_t> operator[](std::size_t i) const {
    return std::span(values).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

bool read_rows(JsonNumberReader& json, Rows& rows) {
  if (!json.open_array()) return false;
  for (bool first = true; json.next_element(first);) {
    if (!json.open_array()) return false;
    for (bool inner = true; json.next_element(inner);) {
      std::int64_t value = 0;
      if (!json.read_integer(value)) return false;
      rows.values.push_back(value);
    }
    rows.begin.push_back(rows.values.size());
  }
  return !json.failed();
}

struct Parts {
  std::string name;
  Rows intervals, node_costs, usages, edge_nodes, edge_costs;
  std::optional<std::int64_t> limit;
};

bool read_nodes(JsonNumberReader& json, Parts& parts) {
  if (!json.open_object()) return false;
  std::string key;
  for (bool first = true; json.next_member(first, key);) {
    const bool ok = key == "intervals" ? read_rows(json, parts.intervals)
                    : key == "costs"   ? read_rows(json, parts.node_costs)
                    : key == "usages"  ? read_rows(json, parts.usages)
                                       : json.skip_value();
    if (!ok) return false;
  }
  return !json.failed();
}

bool read_edges(JsonNumberReader& json, Parts& parts) {
  if (!json.open_object()) return false;
  std::string key;
  for (bool first = true; json.next_member(first, key);) {
    const bool ok = key == "nodes"   ? read_rows(json, parts.edge_nodes)
                    : key == "costs" ? read_rows(json, parts.edge_costs)
                                     : json.skip_value();
    if (!ok) return false;
  }
  return !json.failed();
}

bool read_problem(JsonNumberReader& json, Parts& parts) {
  if (!json.open_object()) return false;
  std::string key;
  for (bool first = true; json.next_member(first, key);) {
    bool ok = false;
    if (key == "nodes") {
      ok = read_nodes(json, parts);
    } else if (key == "edges") {
      ok = read_edges(json, parts);
    } else if (key == "usage_limit") {
      ok = json.read_integer(parts.limit.emplace());
    } else if (key == "name") {
      ok = json.read_string(parts.name);
    } else {
      ok = json.skip_value();
    }
    if (!ok) return false;
  }
  return !json.failed();
}

tl::unexpected<Error> misshapen(std::string message) {
  return fail(ErrorCode::kContestSyntax, std::move(message));
}

Result<Problem> build(const Parts& parts) {
  const std::size_t n = parts.node_costs.size();
  if (parts.intervals.size() != n || parts.usages.size() != n) {
    return misshapen(
        fmt::format("{} intervals, {} lists of costs and {} lists of usages "
                    "are not one each "
                    "per node",
                    parts.intervals.size(), n, parts.usages.size()));
  }
  if (parts.edge_nodes.size() != parts.edge_costs.size()) {
    return misshapen(fmt::format("{} edges but {} lists of edge costs",
                                 parts.edge_nodes.size(),
                                 parts.edge_costs.size()));
  }
  ProblemBuilder builder;
  for (std::size_t i = 0; i < n; ++i) {
    const auto interval = parts.intervals[i];
    if (interval.size() != 2) {
      return misshapen(
          fmt::format("the interval of node {} is not [lo, hi]", i));
    }
    const VariableId v = builder.add_variable(parts.node_costs[i]);
    builder.add_usage(v, {interval[0], interval[1]}, parts.usages[i]);
  }
  for (std::size_t e = 0; e < parts.edge_nodes.size(); ++e) {
    const auto nodes = parts.edge_nodes[e];
    if (nodes.size() != 2) {
      return misshapen(
          fmt::format("edge {} joins {} nodes, not two", e, nodes.size()));
    }
    if (nodes[0] < 0 || nodes[1] < 0 ||
        nodes[0] >= static_cast<std::int64_t>(n) ||
        nodes[1] >= static_cast<std::int64_t>(n)) {
      return misshapen(
          fmt::format("edge {} names a node that does not exist", e));
    }
    const auto a = static_cast<std::size_t>(nodes[0]);
    const auto b = static_cast<std::size_t>(nodes[1]);
    const TableId table =
        builder.add_table(parts.node_costs[a].size(),
                          parts.node_costs[b].size(), parts.edge_costs[e]);
    builder.add_edge(VariableId(a), VariableId(b), table);
  }
  if (parts.limit.has_value()) builder.set_limit(*parts.limit);
  return std::move(builder).build();
}

template <class Range>
void append_list(std::string& out, const Range& values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",",
                   values[i]);
  }
  out += ']';
}

}  // namespace

Result<ContestProblem> parse_contest(std::string_view text) {
  JsonNumberReader json(text);
  Parts parts;
  bool found = false;
  if (!json.open_object()) return fail(json.error());
  std::string key;
  for (bool first = true; json.next_member(first, key);) {
    found = found || key == "problem";
    if (!(key == "problem" ? read_problem(json, parts) : json.skip_value()))
      break;
  }
  if (json.failed() || !json.at_end()) return fail(json.error());
  if (!found) return misshapen("the file has no \"problem\"");
  SP_ASSIGN(Problem problem, build(parts));
  return ContestProblem{std::move(parts.name), std::move(problem)};
}

Result<ContestProblem> read_contest(const std::string& path,
                                    std::uint64_t max_bytes) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(
      gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) {
    return fail(Error{
        ErrorCode::kContestFile, "the file cannot be opened", path, {}, {}});
  }
  gzbuffer(file.get(), 1U << 18);
  std::string text;
  constexpr unsigned kPiece = 1U << 22;
  for (;;) {
    const std::size_t had = text.size();
    text.resize(had + kPiece);
    const int got = gzread(file.get(), text.data() + had, kPiece);
    if (got < 0) {
      return fail(Error{ErrorCode::kContestFile,
                        "the file is damaged or cannot be read",
                        path,
                        {},
                        {}});
    }
    text.resize(had + static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      return fail(
          Error{ErrorCode::kContestFile,
                fmt::format("the file holds more than {} bytes", max_bytes),
                path,
                {},
                "raise --max-input if the file is meant to be this large"});
    }
    if (static_cast<unsigned>(got) < kPiece) break;
  }
  auto contest = parse_contest(text);
  if (!contest) return fail(std::move(contest).error().at(path));
  return contest;
}

Result<std::string> write_contest(const ContestProblem& contest) {
  const Problem& problem = contest.problem;
  std::string intervals;
  std::string costs;
  std::string usages;
  std::vector<std::vector<std::uint32_t>> pinned(problem.num_variables());
  for (const solver::Pin& pin : problem.pins()) {
    pinned[pin.variable.index()].push_back(pin.choice);
  }
  for (std::size_t i = 0; i < problem.num_variables(); ++i) {
    const VariableId v(i);
    if (problem.num_usages(v) > 1) {
      return misshapen(
          fmt::format("variable {} uses bytes over {} intervals; the contest "
                      "format has one",
                      i, problem.num_usages(v)));
    }
    std::vector<std::int64_t> cost(problem.costs(v).begin(),
                                   problem.costs(v).end());
    for (const std::uint32_t choice : pinned[i]) {
      for (std::size_t c = 0; c < cost.size(); ++c) {
        if (c != choice) cost[c] = solver::kForbidden;
      }
    }
    const char* const comma = i == 0 ? "" : ",";
    const std::vector<std::int64_t> none(cost.size(), 0);
    const Usage usage =
        problem.num_usages(v) == 1 ? problem.usage(v, 0) : Usage{{0, 0}, none};
    intervals += comma;
    costs += comma;
    usages += comma;
    append_list(intervals, std::array{usage.when.lo, usage.when.hi});
    append_list(costs, cost);
    append_list(usages, usage.bytes);
  }
  std::string edge_nodes;
  std::string edge_costs;
  for (const solver::Edge& edge : problem.edges()) {
    const char* const comma = edge_nodes.empty() ? "" : ",";
    edge_nodes += comma;
    edge_costs += comma;
    append_list(edge_nodes, std::array{edge.a.index(), edge.b.index()});
    append_list(edge_costs, problem.table(edge.table).costs);
  }
  const std::string limit =
      problem.limit().has_value()
          ? fmt::format(",\"usage_limit\":{}", *problem.limit())
          : "";
  return fmt::format(
      "{{\"problem\":{{\"name\":\"{}\",\"nodes\":{{\"intervals\":[{}],"
      "\"costs\":[{}],\"usages\":[{}]}},\"edges\":{{\"nodes\":[{}],"
      "\"costs\":[{}]}}{}}}}}\n",
      contest.name, intervals, costs, usages, edge_nodes, edge_costs, limit);
}

}  // namespace shardprop::io
