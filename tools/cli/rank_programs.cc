#include "cli/rank_programs.h"

#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "cli/graph_plan.h"
#include "cli/plan_options.h"
#include "io/json_text.h"

#include <shardprop/io/load_rank_programs.h>
#include <shardprop/verify/verify_rank_programs.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop::cli {
namespace {

constexpr std::string_view kRankPrograms = "--rank-programs";

// Names of wrong values that are printed.
constexpr std::size_t kMostWrongPrinted = 5;

void write_layout(JsonText& json, std::string_view key,
                  const std::optional<Layout>& layout) {
  json.key(key);
  if (layout) {
    json.list(to_strings(*layout),
              [&](const std::string& placement) { json.text(placement); });
  } else {
    json.null();
  }
}

void write_wrong(JsonText& json, const WrongValue& wrong) {
  const VerifyMismatch& at = wrong.where;
  json.open('{').member("value", at.value).member("node", at.node);
  json.member("op", at.op).member("module", wrong.module_path);
  json.member("source",
              wrong.source.empty() ? std::string() : to_string(wrong.source));
  write_layout(json, "stated_placements", wrong.stated);
  write_layout(json, "placements", wrong.layout);
  json.member("factor", wrong.factor).member("rank", at.rank);
  if (!at.element.empty()) {
    json.member("element", at.element);
    json.member("expected", at.expected).member("found", at.found);
  }
  json.member("sentences", wrong.sentences);
  json.key("reads").list(wrong.reads, [&](const LaidOutValue& read) {
    json.open('{').member("value", read.name);
    write_layout(json, "placements", read.layout);
    json.close('}');
  });
  json.close('}');
}

std::string report_json(const RankProgramsReport& report) {
  JsonText json(JsonText::Form::kIndented);
  json.open('{').member("schema", "shardprop.verify/1");
  json.member("ok", report.ok).member("values", report.values);
  json.member("values_compared", report.compared);
  json.key("outputs").list(report.outputs, [&](const ComparedOutput& output) {
    json.open('{').member("name", output.name).member("ok", output.ok);
    json.member("max_error", output.max_error);
    write_layout(json, "stated_placements", output.stated);
    write_layout(json, "placements", output.layout);
    json.close('}');
  });
  json.key("collectives").open('{');
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    json.member(to_string(kind),
                report.collectives[static_cast<std::size_t>(kind)]);
  }
  json.close('}');
  if (report.wrong) {
    json.key("mismatch");
    write_wrong(json, *report.wrong);
  }
  json.member("wrong_values", report.wrong_values);
  return json.close('}').take();
}

std::string wrong_text(const RankProgramsReport& report) {
  const WrongValue& wrong = *report.wrong;
  const VerifyMismatch& at = wrong.where;
  std::string out = fmt::format("first wrong value: `{}`", printable(at.value));
  if (!at.op.empty()) out += "   " + printable(at.op);
  out += '\n';
  if (!wrong.source.empty()) {
    out += fmt::format("  --> {}\n", printable(to_string(wrong.source)));
  }
  if (!wrong.module_path.empty()) {
    out += fmt::format("  in module {}\n", printable(wrong.module_path));
  }
  if (!at.element.empty()) {
    out +=
        fmt::format("  rank {}: {} is {} on one device and comes out as {}\n",
                    at.rank, at.element, at.expected, at.found);
  }
  if (wrong.stated) {
    out +=
        fmt::format("  Its stated layout is {}.\n", to_string(*wrong.stated));
  }
  for (const std::string& sentence : wrong.sentences) {
    out += fmt::format("  {}\n", printable(sentence));
  }
  if (!wrong.reads.empty()) {
    out += "  right before it:";
    for (const LaidOutValue& read : wrong.reads) {
      out += fmt::format("  `{}` {}", printable(read.name),
                         to_string(read.layout));
    }
    out += '\n';
  }
  const auto& all = report.wrong_values;
  if (all.size() > 1) {
    out += "  wrong after it:";
    for (std::size_t i = 1; i < std::min(all.size(), kMostWrongPrinted + 1);
         ++i) {
      out += fmt::format(" `{}`", printable(all[i]));
    }
    if (all.size() > kMostWrongPrinted + 1) {
      out += fmt::format(" and {} more", all.size() - kMostWrongPrinted - 1);
    }
    out += '\n';
  }
  return out;
}

void print_report(const RankProgramsReport& report,
                  const RankPrograms& programs, Console& console) {
  console.data << fmt::format("programs of {} on {}\n",
                              counted(programs.mesh.size(), "rank"),
                              to_string(programs.mesh));
  if (report.wrong) {
    console.data << wrong_text(report);
  } else {
    double most = 0;
    for (const ComparedOutput& output : report.outputs) {
      most = std::max(most, output.max_error);
    }
    console.data << fmt::format(
        "all right: {}, {} compared, largest difference {:.1e}\n",
        counted(report.outputs.size(), "output"),
        counted(report.values, "value"), most);
  }
  console.data << "collectives of the busiest rank:";
  bool is_none = true;
  for (const CollectiveKind kind : kAllCollectiveKinds) {
    const auto count = report.collectives[static_cast<std::size_t>(kind)];
    if (count == 0) continue;
    is_none = false;
    console.data << fmt::format("  {} {}", to_string(kind), count);
  }
  console.data << (is_none ? " none\n" : "\n");
}

// Refuses options about a plan, since there is none.
Result<void> check_no_plan(const Arguments& arguments) {
  for (const std::string_view name : {"--plan", "--trace"}) {
    if (!arguments.has(name)) continue;
    return fail(Error{ErrorCode::kInvalidArgument,
                      std::string(name) +
                          " is about a plan, and --rank-programs verifies "
                          "programs without one",
                      std::string(name),
                      {},
                      "leave one of them out"});
  }
  if (arguments.get("--backend") == "mpi") {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "--rank-programs runs ranks as threads",
                      "--backend mpi",
                      {},
                      "leave out --backend"});
  }
  return check_nothing_to_plan(arguments,
                               "--rank-programs verifies programs without one");
}

}  // namespace

Result<int> verify_folder(const Arguments& arguments,
                          const VerifyOptions& options, Console& console) {
  SP_CHECK(check_no_plan(arguments));
  std::optional<DeviceMesh> mesh;
  if (arguments.has("--mesh")) {
    SP_ASSIGN(mesh, mesh_option(arguments));
  }
  SP_ASSIGN(GraphReading reading, reading_of(arguments));
  reading.deadline = deadline_option(arguments);
  const LoadOptions load{.max_input_bytes = reading.max_input_bytes,
                         .deadline = reading.deadline};
  SP_ASSIGN(const LoadedGraph loaded,
            load_graph(arguments.get("GRAPH"), std::move(reading)));
  print_notes(*loaded.graph, console);
  const std::string folder = arguments.get(kRankPrograms);
  SP_ASSIGN(const RankPrograms programs,
            load_rank_programs(folder, mesh, loaded.library, load));
  SP_ASSIGN(const RankProgramsReport report,
            placed_at_least(verify_rank_programs(programs, *loaded.graph,
                                                 loaded.library, options),
                            folder));
  if (arguments.get("--format") == "json") {
    console.data << report_json(report) << '\n';
  } else {
    print_report(report, programs, console);
  }
  return report.ok ? kDone : kFinding;
}

}  // namespace shardprop::cli
