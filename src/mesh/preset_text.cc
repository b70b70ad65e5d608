#include "mesh/preset_text.h"

#include "base/parse_int.h"
#include "base/parse_number.h"
#include "base/try.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Returns the text of a quoted string, and removes it from `rest`.
std::optional<std::string> take_quoted(std::string_view& rest) {
  if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) {
    return std::nullopt;
  }
  const char quote = rest.front();
  std::string text;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == quote) {
      rest = trimmed(rest.substr(i + 1));
      return text;
    }
    // A text in single quotes has no escapes.
    if (quote == '"' && rest[i] == '\\' && i + 1 < rest.size()) ++i;
    text += rest[i];
  }
  return std::nullopt;
}

bool is_end(std::string_view rest) {
  return rest.empty() || rest.front() == '#';
}

class PresetReader {
 public:
  explicit PresetReader(std::string_view text) : text_(text) {}

  Result<Preset> run() {
    while (next_line()) {
      if (is_end(line_)) continue;
      if (line_.front() == '[') {
        SP_CHECK(open_section());
        continue;
      }
      SP_CHECK(read_key());
    }
    for (const TopologyField& field : topology_fields()) {
      if ((preset_.topology.*field.figure).source.empty()) {
        return wrong("`" + std::string(field.key) + "` is missing");
      }
    }
    SP_CHECK(check_topology(preset_.topology));
    return std::move(preset_);
  }

 private:
  tl::unexpected<Error> wrong(std::string message) const {
    return fail(Error{ErrorCode::kTopologyFile,
                      std::move(message),
                      "line " + std::to_string(row_),
                      {},
                      "write the preset as topology_to_toml() does"});
  }

  bool next_line() {
    if (text_.empty()) return false;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    line_ = trimmed(text_.substr(0, end));
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++row_;
    return true;
  }

  Result<void> open_section() {
    const bool is_list = line_.substr(0, 2) == "[[";
    const std::size_t marks = is_list ? 2 : 1;
    const std::size_t end = line_.find(']');
    if (end == std::string_view::npos ||
        !is_end(trimmed(line_.substr(std::min(end + marks, line_.size()))))) {
      return wrong("the name of a section does not end");
    }
    section_ = line_.substr(marks, end - marks);
    if (is_list != (section_ == "measured")) {
      return wrong("`" + std::string(section_) + "` is not a section");
    }
    if (is_list) preset_.topology.measured.emplace_back();
    return {};
  }

  Result<void> read_key() {
    const std::size_t equals = line_.find('=');
    if (equals == std::string_view::npos) return wrong("a line has no value");
    key_ = trimmed(line_.substr(0, equals));
    std::string_view value = trimmed(line_.substr(equals + 1));
    if (section_ == "samples") return read_sample_key(value);
    if (section_ == "measured") {
      return read_line_key(value, preset_.topology.measured.back());
    }
    if (!section_.empty()) return read_figure(value);
    Topology& topology = preset_.topology;
    if (key_ == "node_reduces") return read_flag(value, topology.node_reduces);
    if (key_ == "measured" && value == "[]") return {};
    SP_ASSIGN(std::string text, read_text(value));
    if (key_ == "name") {
      topology.name = std::move(text);
    } else if (key_ == "description") {
      topology.description = std::move(text);
    } else if (key_ == "engine" && parse_engine(text)) {
      topology.engine = *parse_engine(text);
    } else if (key_ == "generation" && parse_generation(text)) {
      topology.generation = *parse_generation(text);
    } else {
      return wrong("`" + std::string(key_) + "` has no meaning here");
    }
    return {};
  }

  Result<std::string> read_text(std::string_view value) const {
    std::optional<std::string> text = take_quoted(value);
    if (!text || !is_end(value)) return wrong("a text is expected in quotes");
    return *std::move(text);
  }

  Result<double> read_number(std::string_view value) const {
    const auto number = parse_number(value);
    if (!number) return wrong("`" + std::string(value) + "` is no number");
    return *number;
  }

  Result<void> read_flag(std::string_view value, bool& out) const {
    if (value != "true" && value != "false") {
      return wrong("`" + std::string(value) + "` is neither true nor false");
    }
    out = value == "true";
    return {};
  }

  // {value = 989.0, source = "NVIDIA H100 datasheet"}
  Result<void> read_figure(std::string_view value) {
    constexpr std::string_view kValue = "{value = ";
    constexpr std::string_view kSource = ", source = ";
    const std::size_t comma = value.find(kSource);
    if (value.substr(0, kValue.size()) != kValue ||
        comma == std::string_view::npos) {
      return wrong("a figure has a value and a source");
    }
    SP_ASSIGN(const double number,
              read_number(value.substr(kValue.size(), comma - kValue.size())));
    value.remove_prefix(comma + kSource.size());
    std::optional<std::string> source = take_quoted(value);
    if (!source || value.empty() || value.front() != '}' ||
        !is_end(trimmed(value.substr(1)))) {
      return wrong("a figure has a value and a source");
    }
    for (const TopologyField& field : topology_fields()) {
      if (field.key.size() == section_.size() + 1 + key_.size() &&
          field.key.substr(0, section_.size()) == section_ &&
          field.key.substr(section_.size() + 1) == key_) {
        preset_.topology.*field.figure = {number, *std::move(source)};
        return {};
      }
    }
    return wrong("`" + std::string(section_) + "." + std::string(key_) +
                 "` is not a figure");
  }

  Result<void> read_line_key(std::string_view value, MeasuredLine& line) {
    if (key_ == "complete") return read_flag(value, line.complete);
    if (key_ == "source") {
      SP_ASSIGN(line.source, read_text(value));
      return {};
    }
    if (key_ == "collective") {
      SP_ASSIGN(const std::string name, read_text(value));
      const auto kind = parse_collective_kind(name);
      if (!kind) return wrong("`" + name + "` is not a collective");
      line.collective = *kind;
      return {};
    }
    if (key_ == "ranks_per_node" || key_ == "nodes") {
      const auto count = parse_int(value);
      if (!count) return wrong("`" + std::string(value) + "` is no number");
      (key_ == "nodes" ? line.nodes : line.ranks_per_node) = *count;
      return {};
    }
    if (key_ != "latency_us" && key_ != "bandwidth_gbps") {
      return wrong("`" + std::string(key_) + "` has no meaning here");
    }
    SP_ASSIGN(const double number, read_number(value));
    (key_ == "latency_us" ? line.latency_us : line.bandwidth_gbps) = number;
    return {};
  }

  Result<void> read_sample_key(std::string_view value) {
    if (key_ == "source") {
      SP_ASSIGN(preset_.samples.source, read_text(value));
      return {};
    }
    if (key_ != "matmuls" || value != "\"\"\"") {
      return wrong("`" + std::string(key_) + "` has no meaning here");
    }
    std::string table;
    while (next_line() && line_ != "\"\"\"") {
      table += line_;
      table += '\n';
    }
    SP_ASSIGN(preset_.samples.matmuls, parse_matmuls(table));
    return {};
  }

  std::string_view text_;  // what follows the line
  std::string_view line_;
  std::string_view section_;
  std::string_view key_;
  std::size_t row_ = 0;
  Preset preset_;
};

}  // namespace

Result<Preset> read_preset(std::string_view text) {
  return PresetReader(text).run();
}

}  // namespace shardprop
