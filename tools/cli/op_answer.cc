#include "cli/op_answer.h"

#include "base/memory_at_hand.h"
#include "base/quantities.h"
#include "base/saturating.h"
#include "base/try.h"
#include "cli/json_ops.h"
#include "io/json_text.h"

#include <shardprop/plan/local_run.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::cli {
namespace {

std::vector<Layout> layouts_of(std::span<const TensorSpec> specs) {
  std::vector<Layout> out;
  out.reserve(specs.size());
  for (const TensorSpec& spec : specs) out.push_back(spec.layout());
  return out;
}

std::string joined(std::span<const TensorSpec> specs) {
  std::string text;
  for (const TensorSpec& spec : specs) text += "  " + to_string(spec);
  return text.empty() ? "  nothing" : text;
}

// Checks the memory for the text. It counts a digit and a comma for each number
// of a rank, and the brackets of lists.
Result<void> check_text_fits(const OpLine& line, const OpAnswer& answer) {
  constexpr std::int64_t kFew = 10'000'000;
  const auto& strategies = answer.every->strategies;
  const auto count = static_cast<std::int64_t>(strategies.size());
  if (sat_mul(line.mesh.size(), count) < kFew) return {};
  std::int64_t bytes = 0;
  for (const PlacementStrategy& strategy : strategies) {
    const LocalRun run = local_run(
        {*line.op, *answer.every->space, line.mesh, answer.layouts, strategy});
    for (const LocalRunArgument& argument : run.arguments) {
      const auto numbers = static_cast<std::int64_t>(
          argument.values.at(line.mesh.coordinate_at_index(0)).size());
      const std::int64_t brackets = argument.values.is_list() ? 2 : 0;
      bytes = sat_add(bytes, sat_mul(2 * numbers + brackets, line.mesh.size()));
    }
  }
  return check_fits(bytes, "the numbers of all ranks in all strategies");
}

}  // namespace

Result<std::string> as_json(const OpLine& line, const OpAnswer& answer,
                            const Topology& topology) {
  if (answer.every) SP_CHECK(check_text_fits(line, answer));
  JsonText json;
  json.open('{').member("op", line.op->name());
  if (answer.chosen) {
    json.key("outputs");
    write_outputs(json, line.op->outputs, layouts_of(answer.chosen->outputs));
    json.key("inputs").list(answer.chosen->inputs, [&](const TensorSpec& spec) {
      json.open('{').member("placements", to_strings(spec.layout()));
      json.close('}');
    });
    json.key("local_args");
    write_rank_arguments(json, answer.chosen->rank_arguments);
    json.member("cost_us", microseconds(answer.chosen->cost()));
  }
  if (!answer.every) return json.close('}').take();
  if (answer.every->truncated) json.member("truncated", true);
  json.key("strategies")
      .list(answer.every->strategies, [&](const PlacementStrategy& strategy) {
        write_strategy(json,
                       {*line.op, *answer.every->space, line.mesh,
                        answer.layouts, strategy},
                       topology);
      });
  return json.close('}').take();
}

std::string as_text(const OpLine& line, const OpAnswer& answer) {
  std::string text = line.op->name() + " on " + to_string(line.mesh);
  if (answer.chosen) {
    const OutputSharding& chosen = *answer.chosen;
    text += ": " + time_text(chosen.cost());
    text += "\n  takes" + joined(chosen.inputs);
    for (const InputMove& move : chosen.moves) {
      text += "\n  moves  input " + std::to_string(move.input) + "  " +
              to_string(line.layouts[move.input]) + " -> " +
              to_string(chosen.inputs[move.input].layout());
    }
    for (const CollectiveStep& step : chosen.inside) {
      text += "\n  inside " + std::string(to_string(step.kind));
    }
    text += "\n  makes" + joined(chosen.outputs);
  }
  if (!answer.every) return text;
  for (const PlacementStrategy& one : answer.every->strategies) {
    text += "\n  " + to_string(one, answer.layouts);
  }
  if (answer.every->truncated) text += "\n  ... --limit N lists more";
  return text;
}

std::string refusal_as_json(const std::optional<std::string>& op,
                            const Error& error) {
  JsonText json;
  json.open('{').member("op", op).key("error").open('{');
  json.member("code", code_string(error.code));
  json.member("message", error.message).member("location", error.location);
  if (!error.notes.empty()) json.member("notes", error.notes);
  if (!error.help.empty()) json.member("help", error.help);
  json.close('}').close('}');
  return json.take();
}

}  // namespace shardprop::cli
