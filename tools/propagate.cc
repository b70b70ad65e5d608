// propagate: reads one operator a line and writes one answer a line.

#include "base/guard.h"
#include "base/try.h"
#include "cli/graph_options.h"
#include "cli/op_answer.h"
#include "cli/op_line.h"
#include "cli/plan_options.h"
#include "commands.h"
#include "io/input_file.h"

#include <shardprop/propagate/sharding_propagator.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::cli {
namespace {

class Batch {
 public:
  struct Options {
    Topology topology;
    bool all = false;
    bool strided = false;
    bool json = true;
    std::size_t limit = 0;  // of strategies
  };

  Batch(Options options, std::shared_ptr<const OpLibrary> library)
      : options_(std::move(options)), library_(std::move(library)) {}

  std::string answer(std::string_view line, std::int64_t number) {
    std::optional<std::string> name;
    // The text of an answer may take more memory than the answer.
    const Result<std::string> text =
        guarded([&]() -> Result<std::string> { return text_of(line, name); });
    return text ? *text : refusal(name, text.error(), number);
  }

  // Returns the error of a line as JSON or text.
  std::string refusal(const std::optional<std::string>& op, Error error,
                      std::int64_t number) const {
    error = std::move(error).at("line " + std::to_string(number));
    if (options_.json) return refusal_as_json(op, error);
    std::string text = to_string(error);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

 private:
  Result<std::string> text_of(std::string_view line,
                              std::optional<std::string>& name) {
    SP_ASSIGN(const OpLine parsed, parse_op_line(line, *library_, name));
    name = parsed.op->name();
    SP_ASSIGN(const OpAnswer found, answer_to(parsed));
    if (!options_.json) return as_text(parsed, found);
    return as_json(parsed, found, options_.topology);
  }

  Result<const ShardingPropagator*> propagator(const DeviceMesh& mesh) {
    const std::string key = to_string(mesh);
    if (const auto it = propagators_.find(key); it != propagators_.end()) {
      return &it->second;
    }
    SP_ASSIGN(ShardingPropagator made,
              ShardingPropagator::create(mesh, options_.topology, library_));
    return &propagators_.emplace(key, std::move(made)).first->second;
  }

  Result<OpAnswer> answer_to(const OpLine& line) {
    OpAnswer answer;
    SP_ASSIGN(const ShardingPropagator* propagator,
              this->propagator(line.mesh));
    if (!line.layouts.empty() || line.op->inputs.empty()) {
      SP_ASSIGN(answer.chosen, propagator->propagate(*line.op, line.layouts));
    } else if (!options_.all) {
      return fail(ErrorCode::kInvalidArgument,
                  "the tensors of the line have no placements",
                  "give each its placements, or ask for --all");
    }
    if (!options_.all) return answer;
    StrategyOptions options;
    options.limit = options_.limit;
    // Other shard orders and strided shards count only if they are requested or
    // given.
    options.allow_strided = options_.strided;
    options.allow_shard_orders = options_.strided;
    for (const FactorSharding& sharding : line.shardings) {
      options.shardings.push_back({sharding, std::nullopt});
    }
    for (std::size_t i = 0; i < line.layouts.size(); ++i) {
      const Layout& layout = line.layouts[i];
      options.allow_strided |= layout.has_strided();
      options.allow_shard_orders |= !layout.has_default_order();
      for (int d = 0; d < line.op->inputs[i].rank(); ++d) {
        FactorSharding sharding = FactorShardings(layout).of(d);
        if (sharding.has_strided() || !sharding.has_default_order()) {
          options.shardings.push_back({std::move(sharding), std::nullopt});
        }
      }
    }
    SP_ASSIGN(answer.every,
              propagator->strategies(*line.op, answer.layouts, options));
    return answer;
  }

  Options options_;
  std::shared_ptr<const OpLibrary> library_;
  std::map<std::string, ShardingPropagator> propagators_;
};

// LineSource reads a file or a pipe line by line.
class LineSource {
 public:
  explicit LineSource(InputFile file) : file_(std::move(file)) {}

  // False at the end of the file.
  Result<bool> next() {
    line_.clear();
    too_long_ = false;
    ++number_;
    for (bool any = false;; any = true) {
      if (at_ == block_.size()) {
        block_.resize(kBlock);
        SP_ASSIGN(const std::size_t got, file_.read(block_.data(), kBlock));
        block_.resize(got);
        at_ = 0;
        if (got == 0) return any;
      }
      const std::size_t end = std::min(block_.find('\n', at_), block_.size());
      too_long_ = too_long_ || line_.size() + (end - at_) > kMostBytes;
      if (!too_long_) line_.append(block_, at_, end - at_);
      at_ = end;
      if (at_ < block_.size()) {
        ++at_;
        return true;
      }
    }
  }

  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }
  bool is_blank() const {
    return !too_long_ && line_.find_first_not_of(" \t\r") == std::string::npos;
  }
  bool too_long() const { return too_long_; }
  static Error refusal() {
    return {ErrorCode::kInputTooLarge,
            "the line is longer than " + std::to_string(kMostBytes) + " bytes",
            {},
            {},
            "an operator takes a line of some hundred bytes"};
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  InputFile file_;
  std::string block_;
  std::size_t at_ = 0;
  std::string line_;
  std::int64_t number_ = 0;
  bool too_long_ = false;
};

Result<int> run_propagate(const Arguments& arguments, Console& console) {
  SP_ASSIGN(Topology topology, topology_option(arguments));
  SP_ASSIGN(const auto limit,
            arguments.integer("--limit", 1, std::int64_t{1} << 32));
  SP_ASSIGN(auto library, library_of(arguments));
  SP_ASSIGN(InputFile file, InputFile::open(arguments.get("--batch")));
  Batch batch({.topology = std::move(topology),
               .all = arguments.has("--all"),
               .strided = arguments.has("--strided"),
               .json = arguments.get("--format") == "json",
               .limit = static_cast<std::size_t>(limit.value())},
              std::move(library));
  LineSource lines(std::move(file));
  // Each answer is written before the next line is read. A process that asks
  // through a pipe waits for it, and later events cannot lose it.
  while (console.data) {
    SP_ASSIGN(const bool more, lines.next());
    if (!more) break;
    if (lines.is_blank()) continue;
    const std::string answer =
        lines.too_long()
            ? batch.refusal(std::nullopt, lines.refusal(), lines.number())
            : batch.answer(lines.line(), lines.number());
    console.data << answer << '\n' << std::flush;
  }
  return kDone;
}

}  // namespace

Command propagate_command() {
  return {
      .name = "propagate",
      .summary = "how an operator's output is laid out, one op a line",
      .example = "shardprop propagate --batch ops.jsonl --all",
      .options = {{.name = "--batch",
                   .value = "FILE.jsonl",
                   .help = "one operator a line",
                   .required = true,
                   .input = input_value},
                  {.name = "--all", .help = "every valid strategy of each op"},
                  {.name = "--strided",
                   .help = "with --all, strided shards too"},
                  {.name = "--limit",
                   .value = "N",
                   .help = "most strategies of one op",
                   .fallback = "100000"},
                  rule_option(),
                  {.name = "--topology",
                   .value = "NAME|FILE.toml",
                   .help = "the machine under the mesh",
                   .fallback = default_topology().name,
                   .input = input_topology},
                  format_option({"json", "text"}),
                  output_option()},
      .run = run_propagate};
}

}  // namespace shardprop::cli
