#include "cli/styles_json.h"

#include "base/quantities.h"
#include "base/try.h"
#include "cli/interruption.h"
#include "cli/plan_options.h"
#include "io/json_reader.h"
#include "io/json_text.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/report/jax_specs.h>
#include <shardprop/report/torch_styles.h>
#include <shardprop/request/plan_request.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

constexpr std::string_view kStylesSchema = "shardprop.styles/1";

// Returns the name of the style in torch.distributed.tensor.parallel.
std::string parallel_style(const std::string& style) {
  if (style == "colwise") return "ColwiseParallel()";
  if (style == "rowwise") return "RowwiseParallel()";
  if (style == "rowwise_split_input") {
    return "RowwiseParallel(input_layouts=Replicate())";
  }
  return style == "embedding_rowwise"
             ? "RowwiseParallel(input_layouts=Replicate())"
             : "ColwiseParallel(output_layouts=Replicate())";
}

// A plan as settings of another framework: the layouts that these cannot
// express, the pins that make a plan follow them, and their text.
struct Words {
  std::vector<Pin> pins;
  std::vector<UnsaidLayout> unsaid;
  std::vector<std::string> notes;
  std::function<void(JsonText&)> write;
};

void write_specs(JsonText& json, std::string_view key,
                 const std::vector<JaxSpec>& specs) {
  json.key(key).open('{');
  for (const JaxSpec& spec : specs) {
    json.key(spec.name).list(spec.axes, [&](const auto& axes) {
      if (axes.empty()) {
        json.null();
      } else {
        json.value(axes);
      }
    });
  }
  json.close('}');
}

void write_jax(JsonText& json, const DeviceMesh& mesh, const JaxSpecs& specs) {
  json.key("mesh").open('{').key("axis_names");
  json.list(mesh.dims(), [&](const MeshDim& dim) { json.text(dim.name); });
  json.key("axis_sizes");
  json.list(mesh.dims(), [&](const MeshDim& dim) { json.number(dim.size); });
  json.close('}');
  write_specs(json, "in_specs", specs.inputs);
  write_specs(json, "optimizer_specs", specs.optimizer);
  write_specs(json, "out_specs", specs.outputs);
}

void write_torch(JsonText& json, std::string_view as,
                 const TorchStyles& styles) {
  if (as == "fully-shard") {
    json.key("fully_shard").list(styles.folded, [&](const ModuleStyle& one) {
      json.text(one.module);
    });
    return;
  }
  json.key("tp_plan").open('{');
  for (const ModuleStyle& one : styles.folded)
    json.member(one.module, one.style);
  json.close('}').key("parallelize_module").open('{');
  for (const ModuleStyle& one : styles.modules) {
    // PyTorch has no such style: a module that it does not name is replicated.
    if (one.style == "replicate") continue;
    json.member(one.module, parallel_style(one.style));
  }
  json.close('}');
}

Words words_of(std::string_view as, const GraphPlan& given) {
  const Plan& plan = given.plan;
  if (as == "jax") {
    JaxSpecs specs = jax_specs(plan);
    return {specs.pins, specs.unsaid, {}, [&plan, specs](JsonText& json) {
              write_jax(json, plan.mesh, specs);
            }};
  }
  TorchStyles styles =
      as == "fully-shard"
          ? fully_shard_styles(plan)
          : tensor_parallel_styles(plan, *given.graph, *given.library);
  return {styles.pins, styles.unsaid, styles.notes,
          [&plan, as, styles](JsonText& json) {
            json.member("mesh_dim", plan.mesh.name(styles.mesh_dim));
            write_torch(json, as, styles);
          }};
}

// Returns the options of the command. A saved plan has its own options, with
// the search limits of the command.
Result<PlanOptions> options_for(const Plan& plan, const Arguments& arguments) {
  SP_ASSIGN(PlanOptions given, plan_options(arguments, plan.topology));
  if (!arguments.has("--plan")) return given;
  SP_ASSIGN(PlanOptions options, options_of(plan));
  options.time_limit_seconds = given.time_limit_seconds;
  options.work_limit = given.work_limit;
  options.threads = given.threads;
  options.seed = given.seed;
  return options;
}

}  // namespace

Result<StylesJson> styles_json(std::string_view as, const GraphPlan& given,
                               const Arguments& arguments) {
  const Words words = words_of(as, given);
  PlanRequest request{.graph = given.graph,
                      .library = given.library,
                      .mesh = given.plan.mesh,
                      .topology = given.plan.topology};
  SP_ASSIGN(request.options, options_for(given.plan, arguments));
  std::vector<Pin>& pins = request.options.pins;
  pins.insert(pins.end(), words.pins.begin(), words.pins.end());
  const Interruption interruption;
  request.options.stop = interruption.token();
  Result<Plan> made = plan(request);
  if (!made && made.error().code == ErrorCode::kPinConflict) {
    // The styles conflict with a pin of the user.
    pins = words.pins;
    made = plan(request);
  }
  if (!made) return fail(std::move(made).error());
  const Plan& said = *made;
  std::optional<std::int64_t> price;
  if (given.plan.objective_nanoseconds && said.objective_nanoseconds) {
    // A plan that follows a recipe, or one found in a limited time, may cost
    // more than the best one that the settings express. The price is then 0.
    price = std::max<std::int64_t>(
        *said.objective_nanoseconds - *given.plan.objective_nanoseconds, 0);
  }
  JsonText json(JsonText::Form::kIndented);
  json.open('{').member("schema", kStylesSchema).member("as", as);
  json.key("graph").open('{').member("name", given.plan.graph_name);
  json.member("hash", given.plan.graph_hash).close('}');
  words.write(json);
  json.key("unsaid").list(words.unsaid, [&](const UnsaidLayout& one) {
    json.open('{').member("value", one.value).member("values", one.values);
    json.member("placements", to_strings(one.layout)).member("why", one.why);
    json.close('}');
  });
  json.member("notes", words.notes);
  json.member("objective_us", microseconds(given.plan.objective_nanoseconds));
  json.member("said_status", solver::to_string(said.status));
  json.member("said_objective_us", microseconds(said.objective_nanoseconds));
  json.member("price_us", microseconds(price)).close('}');
  return StylesJson{json.take() + "\n", words.notes};
}

bool is_styles_json(std::string_view text, std::string_view as) {
  StringArena arena;
  JsonReader json(text, arena);
  std::string schema;
  std::string written_as;
  json.object([&](std::string_view key) {
    if (key == "schema") {
      schema = json.string();
    } else if (key == "as") {
      written_as = json.string();
    } else {
      json.skip();
    }
  });
  json.end();
  return json.ok() && schema == kStylesSchema && written_as == as;
}

}  // namespace shardprop::cli
