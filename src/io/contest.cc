#include <shardprop/io/contest.h>

#include "base/edit_distance.h"
#include "base/guard.h"
#include "base/index.h"
#include "base/quantities.h"
#include "base/try.h"
#include "io/inflate.h"
#include "io/input_file.h"
#include "io/json_numbers.h"
#include "io/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

namespace shardprop::io {
namespace {

using solver::Problem;
using solver::ProblemBuilder;
using solver::TableId;
using solver::Usage;
using solver::VariableId;

// A list of lists of integers, flattened. The format has no other data type.
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

// A member of an object: the function that reads it, and whether it is
// required.
struct Member {
  std::string_view key;
  std::function<bool()> read;
  bool needed = true;
};

// Reads an object that has each of these members once, in any order.
bool read_members(JsonNumberReader& json, std::span<const Member> members) {
  if (!json.open_object()) return false;
  std::vector<bool> seen(members.size());
  std::string key;
  for (bool first = true; json.next_member(first, key);) {
    const auto it =
        std::find_if(members.begin(), members.end(),
                     [&](const Member& member) { return member.key == key; });
    if (it == members.end()) {
      std::vector<std::string_view> known;
      for (const Member& member : members) known.push_back(member.key);
      return json.fail(fmt::format("unknown key `{}`", key.substr(0, 80)),
                       did_you_mean(key, known));
    }
    std::vector<bool>::reference again = seen[index(it - members.begin())];
    if (again) return json.fail(fmt::format("`{}` appears twice", key));
    again = true;
    if (!it->read()) return false;
  }
  if (json.failed()) return false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].needed && !seen[i]) {
      return json.fail(fmt::format("`{}` is missing", members[i].key));
    }
  }
  return true;
}

bool read_nodes(JsonNumberReader& json, Parts& parts) {
  return read_members(
      json, std::array<Member, 3>{{
                {"intervals", [&] { return read_rows(json, parts.intervals); }},
                {"costs", [&] { return read_rows(json, parts.node_costs); }},
                {"usages", [&] { return read_rows(json, parts.usages); }},
            }});
}

bool read_edges(JsonNumberReader& json, Parts& parts) {
  return read_members(
      json, std::array<Member, 2>{{
                {"nodes", [&] { return read_rows(json, parts.edge_nodes); }},
                {"costs", [&] { return read_rows(json, parts.edge_costs); }},
            }});
}

bool read_problem(JsonNumberReader& json, Parts& parts) {
  return read_members(
      json,
      std::array<Member, 4>{{
          {"name", [&] { return json.read_string(parts.name); }, false},
          {"nodes", [&] { return read_nodes(json, parts); }},
          {"edges", [&] { return read_edges(json, parts); }, false},
          {"usage_limit",
           [&] { return json.read_integer(parts.limit.emplace()); }, false},
      }});
}

constexpr const char* kFormat =
    R"(write {"problem": {"nodes": {"intervals": [[0, 2]], "costs": [[1, 2]], )"
    R"("usages": [[1, 0]]}, "edges": {"nodes": [], "costs": []}}})";

tl::unexpected<Error> misshapen(std::string message) {
  return fail(ErrorCode::kContestSyntax, std::move(message), kFormat);
}

Result<Problem> build(const Parts& parts) {
  const std::size_t n = parts.node_costs.size();
  if (parts.intervals.size() != n || parts.usages.size() != n) {
    return misshapen(
        fmt::format("{}, {} of costs and {} of usages are not one each per "
                    "node",
                    counted(parts.intervals.size(), "interval"),
                    counted(n, "list"), counted(parts.usages.size(), "list")));
  }
  if (parts.edge_nodes.size() != parts.edge_costs.size()) {
    return misshapen(fmt::format("{} but {} of edge costs",
                                 counted(parts.edge_nodes.size(), "edge"),
                                 counted(parts.edge_costs.size(), "list")));
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
      return misshapen(fmt::format("edge {} joins {}, not two", e,
                                   counted(nodes.size(), "node")));
    }
    if (nodes[0] < 0 || nodes[1] < 0 ||
        nodes[0] >= static_cast<std::int64_t>(n) ||
        nodes[1] >= static_cast<std::int64_t>(n)) {
      return misshapen(
          fmt::format("edge {} names a node that does not exist", e));
    }
    const auto a = index(nodes[0]);
    const auto b = index(nodes[1]);
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

Result<ContestProblem> parse(std::string_view text) {
  JsonNumberReader json(text);
  Parts parts;
  const Member problem_member{"problem",
                              [&] { return read_problem(json, parts); }};
  if (!read_members(json, std::span(&problem_member, 1)) || !json.at_end()) {
    return fail(json.error());
  }
  SP_ASSIGN(Problem problem, build(parts));
  return ContestProblem{std::move(parts.name), std::move(problem)};
}

Result<ContestProblem> read_file_of_contest(const std::string& path,
                                            std::uint64_t max_bytes,
                                            Deadline deadline) {
  const auto as_contest = [&](Error error) {
    if (error.code != ErrorCode::kStopped) {
      error.code = ErrorCode::kContestFile;
    }
    return fail(std::move(error));
  };
  const auto limit =
      static_cast<std::int64_t>(std::min<std::uint64_t>(max_bytes, INT64_MAX));
  auto text = read_file(path, limit, deadline);
  if (!text) return as_contest(std::move(text).error());
  if (is_gzip(*text)) {
    text = inflate_gzip(*text, limit);
    if (!text) return as_contest(std::move(text).error().at(path));
  }
  auto contest = parse(*text);
  if (contest) return contest;
  Error error = std::move(contest).error().at(path);
  if (error.help.empty()) error.help = kFormat;
  return fail(std::move(error));
}

Result<std::string> write(const ContestProblem& contest) {
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
      "{{\"problem\":{{\"name\":{},\"nodes\":{{\"intervals\":[{}],"
      "\"costs\":[{}],\"usages\":[{}]}},\"edges\":{{\"nodes\":[{}],"
      "\"costs\":[{}]}}{}}}}}\n",
      JsonText().text(contest.name).take(), intervals, costs, usages,
      edge_nodes, edge_costs, limit);
}

}  // namespace

Result<ContestProblem> parse_contest(std::string_view json) {
  return guarded([&] { return parse(json); });
}

Result<ContestProblem> read_contest(const std::string& path,
                                    std::uint64_t max_bytes,
                                    Deadline deadline) {
  return guarded(
      [&] { return read_file_of_contest(path, max_bytes, deadline); });
}

Result<std::string> write_contest(const ContestProblem& contest) {
  return guarded([&] { return write(contest); });
}

}  // namespace shardprop::io
