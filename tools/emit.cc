// emit: writes a plan as the program of each rank, in files that PyTorch reads.

#include "base/printable.h"
#include "base/try.h"
#include "cli/graph_plan.h"
#include "cli/interruption.h"
#include "cli/output_folder.h"
#include "cli/plan_file.h"
#include "cli/styles_json.h"
#include "commands.h"
#include "io/input_file.h"

#include <shardprop/io/emit_program.h>
#include <shardprop/lower/lower.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

constexpr std::string_view kDirectory = "-o,--directory";
constexpr std::string_view kEmittedPlan = "plan.json";
constexpr std::string_view kEmittedShardings = "shardings.json";
constexpr std::array<std::string_view, 3> kStyles = {"tp-plan", "fully-shard",
                                                     "jax"};
constexpr std::int64_t kMostPrograms = 100'000;

struct Emission {
  const SpmdProgram& program;
  const OpLibrary& library;
  EmitFormat format;
  std::string suffix;  // ".pt2"
  OutputFolder& folder;
  std::stop_token stop;
};

std::string file_of(const Emission& emission, std::int64_t rank) {
  return "rank" + std::to_string(rank) + emission.suffix;
}

Result<void> write_rank(const Emission& emission, std::int64_t rank) {
  SP_ASSIGN(
      const std::string bytes,
      emit_program(emission.program, emission.library, rank, emission.format));
  return emission.folder.write(file_of(emission, rank), bytes);
}

// Whether `emit` gives a program such a name: "program.pt2", "rank3.json.gz".
bool is_program(std::string_view name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::string_view suffix = name.substr(dot);
  if (suffix != ".pt2" && suffix != ".json.gz") return false;
  std::string_view stem = name.substr(0, dot);
  if (stem == "program") return true;
  if (!stem.starts_with("rank")) return false;
  stem.remove_prefix(4);
  return !stem.empty() &&
         stem.find_first_not_of("0123456789") == std::string_view::npos;
}

// Writes one file for all ranks if their programs are equal, and else one file
// for each rank.
Result<void> write_all(const Emission& emission) {
  const DeviceMesh& mesh = emission.program.mesh;
  SP_ASSIGN(const std::string first,
            emit_program(emission.program, emission.library,
                         mesh.rank_at_index(0), emission.format));
  std::int64_t i = 1;
  for (; i < mesh.size(); ++i) {
    SP_ASSIGN(const std::string next,
              emit_program(emission.program, emission.library,
                           mesh.rank_at_index(i), emission.format));
    if (next != first || emission.stop.stop_requested()) break;
  }
  if (i == mesh.size()) {
    return emission.folder.write("program" + emission.suffix, first);
  }
  for (std::int64_t r = 0; r < mesh.size(); ++r) {
    if (emission.stop.stop_requested()) break;
    const std::int64_t rank = mesh.rank_at_index(r);
    if (r < i) {
      SP_CHECK(emission.folder.write(file_of(emission, rank), first));
    } else {
      SP_CHECK(write_rank(emission, rank));
    }
  }
  return {};
}

// The file of --as: "tp_plan.json".
std::string styles_file(std::string as) {
  std::replace(as.begin(), as.end(), '-', '_');
  return as + ".json";
}

// Writes layouts in the terms of another framework instead of programs.
Result<void> write_styles(const std::string& as, const GraphPlan& given,
                          const Arguments& arguments, OutputFolder& folder,
                          Console& console) {
  SP_ASSIGN(const StylesJson styles, styles_json(as, given, arguments));
  for (const std::string& note : styles.notes) {
    console.messages << "note: " << printable(note) << '\n';
  }
  SP_CHECK(folder.write(std::string(kEmittedPlan),
                        saved_plan(given.plan, arguments)));
  return folder.write(styles_file(as), styles.text);
}

// Refuses, before any work, a folder in which an input or a file of the user
// has a name that the command writes. Error: kCannotWriteOutput.
Result<void> check_files_stay(const Arguments& arguments,
                              const OutputFolder& folder) {
  SP_CHECK(folder.check_name(std::string(kEmittedPlan)));
  const std::string as = arguments.get("--as");
  if (as != "program") return folder.check_name(styles_file(as));
  SP_CHECK(folder.check_name(std::string(kEmittedShardings)));
  for (const NamedInput& input : arguments.inputs()) {
    const std::string name = std::filesystem::path(input.path).filename();
    if (is_program(name)) SP_CHECK(folder.check_name(name));
  }
  return {};
}

// Returns the text of a file in the folder; empty if it is not a regular file.
std::string text_of(const std::string& folder, std::string_view name) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;
  const auto path = std::filesystem::path(folder) / name;
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing)) return {};
  auto text = read_file(path.string(), kMostBytes);
  return text ? *std::move(text) : std::string();
}

// `EarlierFiles` are the files that an earlier `emit` wrote into the folder, by
// its own records: shardings.json and the files of --as. Files that no record
// lists belong to the user, and so do all files if a record is missing or
// damaged.
struct EarlierFiles {
  std::vector<std::string> programs;
  std::vector<std::string> all;
};

EarlierFiles earlier_files(const std::string& folder) {
  EarlierFiles found;
  found.programs = emitted_files(text_of(folder, kEmittedShardings));
  if (!found.programs.empty()) {
    found.all.emplace_back(kEmittedShardings);
  }
  std::erase_if(found.programs,
                [](const auto& name) { return !is_program(name); });
  found.all.insert(found.all.end(), found.programs.begin(),
                   found.programs.end());
  for (const std::string_view as : kStyles) {
    std::string name = styles_file(std::string(as));
    if (is_styles_json(text_of(folder, name), as)) {
      found.all.push_back(std::move(name));
    }
  }
  // Each record has the plan next to it.
  if (!found.all.empty()) found.all.emplace_back(kEmittedPlan);
  return found;
}

Result<void> write_programs(const GraphPlan& given,
                            const std::optional<std::int64_t>& rank,
                            const Arguments& arguments,
                            std::span<const std::string> earlier,
                            const std::stop_token& stop, OutputFolder& folder) {
  const bool archive = arguments.get("--format") == "pt2";
  if (rank && !given.plan.mesh.contains(*rank)) {
    return fail(Error{ErrorCode::kMeshCoordinate,
                      fmt::format("rank {} is not on mesh {}", *rank,
                                  to_string(given.plan.mesh)),
                      "--rank " + std::to_string(*rank),
                      {},
                      fmt::format("give a rank between 0 and {}",
                                  given.plan.mesh.size() - 1)});
  }
  if (!rank && given.plan.mesh.size() > kMostPrograms) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      fmt::format("a program for each of {} ranks, and at most "
                                  "{} are written at once",
                                  given.plan.mesh.size(), kMostPrograms),
                      "--mesh " + to_string(given.plan.mesh),
                      {},
                      "--rank N writes that of one rank"});
  }
  SP_ASSIGN(const SpmdProgram program,
            lower(given.plan, *given.graph, *given.library));
  const Emission emission{program,
                          *given.library,
                          archive ? EmitFormat::kPt2 : EmitFormat::kJsonGz,
                          archive ? ".pt2" : ".json.gz",
                          folder,
                          stop};
  SP_CHECK(folder.write(std::string(kEmittedPlan),
                        saved_plan(given.plan, arguments)));
  std::set<std::string> files;
  if (rank) {
    SP_CHECK(write_rank(emission, *rank));
    // Programs of other ranks stay next to this one.
    files.insert(earlier.begin(), earlier.end());
  } else {
    SP_CHECK(write_all(emission));
  }
  files.insert(folder.names().begin(), folder.names().end());
  files.erase(std::string(kEmittedPlan));
  SP_ASSIGN(
      const std::string shardings,
      shardings_json(program, *given.library,
                     std::vector<std::string>(files.begin(), files.end())));
  return folder.write(std::string(kEmittedShardings), shardings);
}

// Returns false, and writes nothing, if a signal comes before all is there.
Result<bool> write_files(const GraphPlan& given,
                         const std::optional<std::int64_t>& rank,
                         const Arguments& arguments, Console& console) {
  const EarlierFiles earlier = earlier_files(arguments.get(kDirectory));
  OutputFolder folder(arguments.get(kDirectory), arguments.inputs(),
                      earlier.all);
  const std::string as = arguments.get("--as");
  if (as == "program") {
    const Interruption interruption;
    SP_CHECK(write_programs(given, rank, arguments, earlier.programs,
                            interruption.token(), folder));
    if (interruption.came()) return false;
    SP_CHECK(rank ? folder.put() : folder.put(earlier.programs));
  } else {
    SP_CHECK(write_styles(as, given, arguments, folder, console));
    SP_CHECK(folder.put());
  }
  for (const std::string& path : folder.written()) {
    console.data << printable(path) << '\n';
  }
  return true;
}

void print_step_note(const Plan& plan, Console& console) {
  if (plan.updates.empty()) return;
  const std::string& op = plan.updates.front().op;
  const std::string optimizer = op.substr(op.find('.') + 1);
  console.messages << fmt::format(
      "note: the program runs the step of {}: its inputs are {}, too; "
      "--optimizer none leaves the step out\n",
      printable(optimizer),
      optimizer == "adamw" ? "the state of each parameter, the learning rate "
                             "and the number of the step"
                           : "the learning rate");
}

Result<int> run_emit(const Arguments& arguments, Console& console) {
  SP_ASSIGN(const auto rank, arguments.integer("--rank", 0, kMaxMeshRanks));
  const std::string as = arguments.get("--as");
  if (rank && as != "program") {
    return fail(Error{ErrorCode::kInvalidArgument,
                      "--as " + as + " says the same of all ranks",
                      "--rank " + std::to_string(*rank),
                      {},
                      "leave out --rank"});
  }
  const std::string folder = arguments.get(kDirectory);
  SP_CHECK(check_files_stay(
      arguments,
      OutputFolder(folder, arguments.inputs(), earlier_files(folder).all)));
  SP_ASSIGN(const GraphPlan given, graph_plan(arguments, console,
                                              {.limit = SearchLimit::kWork,
                                               .runs_eagerly = as != "jax"}));
  warn_of_differences(given, console);
  for (const UnsupportedOp& op : given.plan.unsupported) {
    console.messages << fmt::format(
        "warning: `{}` runs replicated ({} of them)\n", printable(op.op),
        op.count);
  }
  if (!given.plan.has_plan()) {
    console.messages << "no plan to write: "
                     << solver::to_string(given.plan.status) << '\n';
    return kFinding;
  }
  if (as == "program") print_step_note(given.plan, console);
  SP_ASSIGN(const bool whole, write_files(given, rank, arguments, console));
  if (!whole) {
    console.messages << "interrupted: nothing is written\n";
    end_by_last_signal();
  }
  return kDone;
}

}  // namespace

Command emit_command() {
  std::vector<Option> options = graph_plan_options(SearchLimit::kWork);
  for (Option& option : options) {
    if (option.name != "--execution") continue;
    option.help += "; default: eager, and compiled for jax";
    option.fallback.clear();
  }
  options.push_back({.name = "--rank",
                     .value = "N",
                     .help = "the program of this rank only; default: of all"});
  options.push_back(local_args_option());
  options.push_back(format_option({"pt2", "json.gz"}));
  options.push_back({.name = "--as",
                     .value = "WHAT",
                     .help = "programs, or the nearest that PyTorch's own "
                             "words can say",
                     .fallback = "program",
                     .choices = {"program", "tp-plan", "fully-shard", "jax"}});
  options.push_back({.name = std::string(kDirectory),
                     .value = "DIR",
                     .help = "where the files go; made if it is not there",
                     .required = true});
  return {.name = "emit",
          .summary = "write the program that each rank runs, for PyTorch",
          .example = "shardprop emit model.pt2 --mesh dp=2,tp=4 -o out",
          .options = std::move(options),
          .run = run_emit};
}

}  // namespace shardprop::cli
