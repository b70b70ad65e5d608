#include "cli/json_ops.h"

#include "base/quantities.h"
#include "report/local_run_json.h"
#include "report/mesh_json.h"

#include <shardprop/strategy/op_cost.h>

namespace shardprop::cli {

void write_outputs(JsonText& json, std::span<const TensorMeta> metas,
                   std::span<const Layout> layouts) {
  json.open('[');
  for (std::size_t i = 0; i < metas.size(); ++i) {
    json.open('{').member("shape", metas[i].shape());
    json.member("dtype", to_string(metas[i].dtype()));
    json.member("placements", to_strings(layouts[i])).close('}');
  }
  json.close(']');
}

void write_rank_arguments(JsonText& json,
                          std::span<const RankArgument> arguments) {
  json.open('{');
  for (const RankArgument& argument : arguments) {
    json.key(argument.name());
    write_rank_values(json, argument, argument.mesh());
  }
  json.close('}');
}

void write_strategy(JsonText& json, const LocalContext& context,
                    const Topology& topology) {
  const auto write_layouts = [&](const InlineVector<LayoutId, 4>& ids) {
    json.list(ids, [&](const LayoutId id) {
      json.value(to_strings(context.layouts[id]));
    });
  };
  json.open('{').key("outputs");
  write_layouts(context.strategy.outputs);
  json.key("inputs");
  write_layouts(context.strategy.inputs);
  LocalRun run;
  std::vector<CollectiveStep> inside;
  if (needs_program(context)) {
    const LocalProgram program = local_program(context);
    run = local_run(context, program);
    inside = collectives_inside(program, context.mesh, topology);
  } else {
    run = local_run(context);
  }
  json.key("local_args");
  write_local_args(json, run, context.mesh);
  json.key("inside").list(inside, [&](const CollectiveStep& step) {
    json.open('{').member("collective", to_string(step.kind));
    json.key("mesh_dims");
    write_dim_names(json, step.mesh_dims, context.mesh);
    json.member("bytes_per_rank", step.bytes_per_rank);
    json.member("us", microseconds(step.nanoseconds)).close('}');
  });
  if (run.program) {
    json.key("local_program");
    write_local_program(json, *run.program, context.mesh);
  }
  json.close('}');
}

}  // namespace shardprop::cli
