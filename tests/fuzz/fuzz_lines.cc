// Lines of `shardprop propagate`: every one is an operator that propagates and
// has strategies, or is refused with a reason.
#include "cli/json_ops.h"
#include "cli/op_line.h"
#include "fuzz_input.h"

#include <shardprop/propagate/sharding_propagator.h>

#include <memory>
#include <optional>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

void require_answers(const cli::OpLine& line,
                     const std::shared_ptr<const OpLibrary>& library) {
  const auto propagator =
      ShardingPropagator::create(line.mesh, default_topology(), library);
  if (!propagator) return require_reason(propagator);
  if (!line.layouts.empty() || line.op->inputs.empty()) {
    const auto chosen = propagator->propagate(*line.op, line.layouts);
    if (!chosen) return require_reason(chosen);
    require(chosen->outputs.size() == line.op->outputs.size());
    require(chosen->inputs.size() == line.op->inputs.size());
    require(chosen->cost() >= 0);
    std::vector<Layout> outputs;
    for (const TensorSpec& spec : chosen->outputs) {
      outputs.push_back(spec.layout());
    }
    JsonText json;
    cli::write_outputs(json, line.op->outputs, outputs);
    require(!json.take().empty());
  }
  LayoutTable layouts;
  StrategyOptions options;
  options.limit = 200;
  const auto every = propagator->strategies(*line.op, layouts, options);
  if (!every) return require_reason(every);
  // Scalars are listed for every rank.
  if (line.mesh.size() > 64) return;
  for (const PlacementStrategy& strategy : every->strategies) {
    JsonText json;
    cli::write_strategy(json,
                        {*line.op, *every->space, line.mesh, layouts, strategy},
                        default_topology());
    require(!json.take().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const auto kLibrary = OpLibrary::standard();
  std::optional<std::string> name;
  const auto line = cli::parse_op_line(as_text(data, size), *kLibrary, name);
  if (!line) {
    require_reason(line);
    return 0;
  }
  require(name.has_value());
  require_answers(*line, kLibrary);
  return 0;
}
