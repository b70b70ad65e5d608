// redistribute: prints the least-cost plan from one layout to another, and runs
// it on request.

#include "base/parse_int.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "base/try.h"
#include "cli/plan_options.h"
#include "cli/trial.h"
#include "commands.h"
#include "io/json_text.h"
#include "report/mesh_json.h"

#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/planner.h>

#include <fmt/format.h>

#include <optional>
#include <string>

namespace shardprop::cli {
namespace {

// "8,16"; empty for a scalar.
Result<Dims> parse_shape(const std::string& text) {
  Dims shape;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const auto size = parse_int(rest.substr(0, comma));
    if (!size || *size < 0 || comma + 1 == rest.size()) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        "`" + text + "` is not a shape",
                        "--shape " + text,
                        {},
                        "write sizes with commas between: 8,16"});
    }
    shape.push_back(*size);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return shape;
}

void write_step(JsonText& json, const RedistributeStep& step,
                const DeviceMesh& mesh) {
  json.open('{').member("collective", to_string(step.kind)).key("mesh_dims");
  write_dim_names(json, step.mesh_dims, mesh);
  json.member("src", to_strings(step.src)).member("dst", to_strings(step.dst));
  json.member("bytes_per_rank", step.bytes_per_rank);
  json.member("us", microseconds(step.nanoseconds));
  if (step.reduce_op) json.member("reduce_op", to_string(*step.reduce_op));
  json.close('}');
}

void write_header(JsonText& json, const TensorSpec& src, const TensorSpec& dst,
                  const Topology& topology, std::int64_t nanoseconds,
                  std::int64_t peak_bytes, std::int64_t bytes_per_rank) {
  json.member("schema", "shardprop.redistribute/1");
  json.member("tensor", to_string(src.meta()));
  json.member("mesh", to_string(src.mesh()));
  json.member("dst_mesh", to_string(dst.mesh()));
  json.member("topology", topology.name);
  json.member("src", to_strings(src.layout()));
  json.member("dst", to_strings(dst.layout()));
  json.member("cost_us", microseconds(nanoseconds));
  json.member("peak_bytes_per_rank", peak_bytes);
  json.member("bytes_per_rank", bytes_per_rank);
}

void print_title(const TensorSpec& src, const TensorSpec& dst,
                 const Topology& topology, Console& console) {
  console.data << fmt::format("{} on {}:  {} -> {}", to_string(src.meta()),
                              to_string(src.mesh()), to_string(src.layout()),
                              to_string(dst.layout()));
  if (dst.mesh() != src.mesh()) {
    console.data << fmt::format(" on {} from rank {}", to_string(dst.mesh()),
                                dst.mesh().rank_at_index(0));
  }
  console.data << fmt::format("   ({})\n\n", printable(topology.name));
}

void write_trial(JsonText& json, const Trial& trial,
                 const std::string& engine) {
  json.open('{').member("engine", engine).member("ok", trial.ok);
  json.member("bytes_per_rank", trial.payload_bytes_per_rank);
  json.member("peak_bytes_per_rank", trial.peak_bytes_per_rank);
  json.member("us", trial.microseconds);
  json.key("ranks").list(trial.ranks, [&](const TrialRank& rank) {
    json.open('{').member("rank", rank.rank).member("bytes", rank.bytes);
    json.member("digest", fmt::format("{:016x}", rank.digest)).close('}');
  });
  if (!trial.ok) json.member("wrong", trial.wrong);
  json.close('}');
}

void print_trial(const Trial& trial, const std::string& engine,
                 Console& console) {
  console.data << fmt::format(
      "\n  ran on {}: {}, {} bytes sent by the busiest rank, peak {} bytes, "
      "{:.0f} us\n",
      engine, trial.ok ? "every byte is right" : "WRONG at " + trial.wrong,
      trial.payload_bytes_per_rank, trial.peak_bytes_per_rank,
      trial.microseconds);
  for (const TrialRank& rank : trial.ranks) {
    console.data << fmt::format("  rank {:>5} {:>12} bytes  {:016x}\n",
                                rank.rank, rank.bytes, rank.digest);
  }
}

void write_plan(JsonText& json, const TensorSpec& src, const TensorSpec& dst,
                const Topology& topology, const RedistributePlan& plan) {
  write_header(json, src, dst, topology, plan.nanoseconds, plan.peak_bytes,
               plan.bytes_per_rank);
  json.key("steps").list(plan.steps, [&](const RedistributeStep& step) {
    write_step(json, step, src.mesh());
  });
}

void write_plan(JsonText& json, const TensorSpec& src, const TensorSpec& dst,
                const Topology& topology, const CrossMeshPlan& plan) {
  write_header(json, src, dst, topology, plan.nanoseconds, plan.peak_bytes,
               plan.before.bytes_per_rank + plan.sent_bytes);
  json.key("steps").open('[');
  for (const RedistributeStep& step : plan.before.steps) {
    write_step(json, step, src.mesh());
  }
  if (!plan.transfers.empty()) {
    json.open('{').member("collective", to_string(CollectiveKind::kSendRecv));
    json.key("mesh_dims").open('[').close(']');
    json.member("src", to_strings(plan.sent_layout));
    json.member("dst", to_strings(dst.layout()));
    json.member("bytes_per_rank", plan.sent_bytes);
    json.member("us", microseconds(plan.nanoseconds - plan.before.nanoseconds));
    json.close('}');
  }
  json.close(']');
  json.key("transfers").list(plan.transfers, [&](const MeshTransfer& transfer) {
    json.open('{').member("from", transfer.src_rank);
    json.member("to", transfer.dst_rank);
    json.member("pieces", transfer.pieces.size());
    json.member("bytes", transfer.bytes).close('}');
  });
}

void print_steps(const TensorSpec& src, const RedistributePlan& plan,
                 Console& console) {
  console.data << to_string(plan, src.mesh());
}

void print_steps(const TensorSpec& src, const CrossMeshPlan& plan,
                 Console& console) {
  if (!plan.before.steps.empty()) {
    console.data << to_string(plan.before, src.mesh());
  }
  for (const MeshTransfer& transfer : plan.transfers) {
    console.data << fmt::format(
        "  rank {:>5} -> {:<5} {:>12} bytes in {} {}\n", transfer.src_rank,
        transfer.dst_rank, transfer.bytes, transfer.pieces.size(),
        transfer.pieces.size() == 1 ? "piece" : "pieces");
  }
  console.data << fmt::format(
      "  {} messages, {} bytes sent and {} received by the busiest ranks, "
      "{:.2f} us\n",
      plan.transfers.size(), plan.sent_bytes, plan.received_bytes,
      microseconds(plan.nanoseconds));
}

// Prints the plan and, with --run, the result of its run.
template <class Plan>
Result<int> finish(const Arguments& arguments, const TensorSpec& src,
                   const TensorSpec& dst, const Topology& topology,
                   const Plan& plan, Console& console) {
  const std::string engine = arguments.get("--run");
  std::optional<Trial> trial;
  if (!engine.empty()) {
    const auto program_of = [&](std::int64_t rank) {
      return RedistributeProgram::create(plan, src, dst, rank);
    };
    Result<Trial> tried = try_out(engine, src, dst, program_of);
    if (!tried) {
      Error error = std::move(tried).error();
      if (error.location.empty()) error.location = "--run " + engine;
      return fail(std::move(error));
    }
    trial = *std::move(tried);
    if (!trial->prints) return trial->ok ? kDone : kFinding;
  }
  if (arguments.get("--format") == "json") {
    JsonText json(JsonText::Form::kIndented);
    json.open('{');
    write_plan(json, src, dst, topology, plan);
    if (trial) {
      json.key("run");
      write_trial(json, *trial, engine);
    }
    console.data << json.close('}').take() << '\n';
  } else {
    print_title(src, dst, topology, console);
    print_steps(src, plan, console);
    if (trial) print_trial(*trial, engine, console);
  }
  return trial && !trial->ok ? kFinding : kDone;
}

// Returns the mesh of --dst-mesh, on ranks from --dst-first-rank on.
Result<DeviceMesh> target_mesh(const Arguments& arguments,
                               const DeviceMesh& source) {
  if (!arguments.has("--dst-mesh")) {
    if (arguments.get("--dst-first-rank") == "0") return source;
    return fail(Error{ErrorCode::kInvalidArgument,
                      "--dst-first-rank says where another mesh begins",
                      "--dst-first-rank " + arguments.get("--dst-first-rank"),
                      {},
                      "name that mesh with --dst-mesh"});
  }
  const std::string text = arguments.get("--dst-mesh");
  SP_ASSIGN(const DeviceMesh parsed,
            placed(DeviceMesh::parse(text), "--dst-mesh " + text));
  SP_ASSIGN(const auto first,
            arguments.integer("--dst-first-rank", 0, kMaxMeshRanks));
  return placed(DeviceMesh::create(parsed.dims(), first.value_or(0)),
                "--dst-mesh " + text);
}

Result<int> run_redistribute(const Arguments& arguments, Console& console) {
  const std::string mesh_text = arguments.get("--mesh");
  SP_ASSIGN(const DeviceMesh mesh,
            placed(DeviceMesh::parse(mesh_text), "--mesh " + mesh_text));
  SP_ASSIGN(const DeviceMesh dst_mesh, target_mesh(arguments, mesh));
  SP_ASSIGN(const Topology topology, topology_option(arguments));
  const std::string shape_text = arguments.get("--shape");
  SP_ASSIGN(Dims shape, parse_shape(shape_text));
  const std::string dtype_text = arguments.get("--dtype");
  SP_ASSIGN(const DType dtype,
            placed(parse_dtype(dtype_text), "--dtype " + dtype_text));
  auto meta = TensorMeta::contiguous(std::move(shape), dtype);
  if (!meta) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      meta.error().message,
                      "--shape " + shape_text,
                      {},
                      "give a shape of fewer than 2^60 elements"});
  }
  RedistributeOptions options;
  if (arguments.get("--memory") != "none") {
    SP_ASSIGN(options.memory_limit, arguments.bytes("--memory"));
  }
  options.allow_empty_shards = !arguments.has("--no-empty-shards");
  const std::string src_place = "SRC " + arguments.get("SRC");
  const std::string dst_place = "DST " + arguments.get("DST");
  SP_ASSIGN(const Layout src_layout,
            placed(Layout::parse(arguments.get("SRC")), src_place));
  SP_ASSIGN(const Layout dst_layout,
            placed(Layout::parse(arguments.get("DST")), dst_place));
  SP_ASSIGN(const TensorSpec src,
            placed(TensorSpec::create(mesh, src_layout, *meta), src_place));
  SP_ASSIGN(const TensorSpec dst,
            placed(TensorSpec::create(dst_mesh, dst_layout, *meta), dst_place));
  if (src.mesh() == dst.mesh()) {
    SP_ASSIGN(const RedistributePlan plan,
              placed(plan_redistribution(src, dst, topology, options),
                     src_place + " " + dst_place));
    return finish(arguments, src, dst, topology, plan, console);
  }
  SP_ASSIGN(const CrossMeshPlan plan,
            placed(plan_between_meshes(src, dst, topology, options),
                   src_place + " " + dst_place));
  return finish(arguments, src, dst, topology, plan, console);
}

}  // namespace

Command redistribute_command() {
  return {.name = "redistribute",
          .summary = "the least-cost plan from one layout to another",
          .example =
              "shardprop redistribute --mesh dp=2,tp=4 --shape 4096,4096 "
              "--dtype bf16 'S(0),R' 'R,S(1)'",
          .options = {{.name = "SRC",
                       .help = "placements held, as S(0),R",
                       .required = true},
                      {.name = "DST",
                       .help = "placements wanted",
                       .required = true},
                      {.name = "--mesh",
                       .value = "MESH",
                       .help = "dp=2,tp=4, or 2,4",
                       .required = true},
                      {.name = "--shape",
                       .value = "SIZES",
                       .help = "the whole tensor, as 8,16",
                       .required = true},
                      {.name = "--dtype",
                       .value = "DTYPE",
                       .help = "element type, as bf16",
                       .fallback = "f32"},
                      {.name = "--topology",
                       .value = "NAME|FILE.toml",
                       .help = "a preset or a topology file",
                       .fallback = "dgx-h100",
                       .input = input_topology},
                      {.name = "--memory",
                       .value = "BYTES|none",
                       .help = "most that a rank may hold at once",
                       .fallback = "none"},
                      {.name = "--dst-mesh",
                       .value = "MESH",
                       .help = "the target's mesh, where it is another one"},
                      {.name = "--dst-first-rank",
                       .value = "RANK",
                       .help = "first rank of --dst-mesh",
                       .fallback = "0"},
                      {.name = "--no-empty-shards",
                       .help = "refuse layouts that leave ranks with nothing"},
                      {.name = "--run",
                       .value = "ENGINE",
                       .help = "also run it on made-up data and check every "
                               "byte; mpi under mpirun",
                       .choices = {"local", "mpi", "nccl"}},
                      format_option(),
                      output_option()},
          .run = run_redistribute};
}

}  // namespace shardprop::cli
