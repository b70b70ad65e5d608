#include "io/pt2_metadata.h"

#include "base/parse_int.h"
#include "io/json_reader.h"

#include <algorithm>
#include <array>
#include <limits>

namespace shardprop::pt2 {
namespace {

constexpr std::string_view kNoModule =
    "_empty_nn_module_stack_from_metadata_hook";

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

ModulePlace innermost_module(std::string_view stack) {
  // Commas and semicolons inside brackets belong to a name.
  std::array<std::string_view, 3> fields{};
  std::size_t field = 0;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= stack.size(); ++i) {
    const char c = i < stack.size() ? stack[i] : ';';
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    const bool ends = i == stack.size() || (depth <= 0 && c == ';');
    if (!ends && !(depth <= 0 && c == ',' && field < 2)) continue;
    fields[field] = stack.substr(start, i - start);
    start = i + 1;
    if (!ends) {
      ++field;
      continue;
    }
    if (i < stack.size()) {
      field = 0;
      fields = {};
      depth = 0;
    }
  }
  if (fields[1] == kNoModule) return {};
  std::string_view path = fields[1];
  // The second call of one module: "fc@1".
  const std::size_t at = path.rfind('@');
  if (at != std::string_view::npos && parse_int(path.substr(at + 1))) {
    path = path.substr(0, at);
  }
  return {std::string(path), std::string(fields[2])};
}

SourceLocation innermost_source(std::string_view trace) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  const std::size_t file = trace.rfind(kFile);
  if (file == std::string_view::npos) return {};
  const std::string_view rest = trace.substr(file + kFile.size());
  const std::string_view head = rest.substr(0, rest.find('\n'));
  const std::size_t line = head.find(kLine);
  if (line == std::string_view::npos) return {};
  const std::string_view tail = head.substr(line + kLine.size());
  const std::size_t in = tail.find(kIn);
  const auto number = parse_int(tail.substr(0, in));
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) {
    return {};
  }
  SourceLocation source;
  source.file = head.substr(0, line);
  source.line = static_cast<int>(*number);
  if (in != std::string_view::npos) {
    source.function = trim(tail.substr(in + kIn.size()));
  }
  if (head.size() < rest.size()) {
    const std::string_view below = rest.substr(head.size() + 1);
    source.text = trim(below.substr(0, below.find('\n')));
  }
  return source;
}

namespace {

// Reads {"node": "mm_1", "copy": 3}.
std::string read_planned_node(JsonReader& json) {
  std::string node;
  bool is_copy = false;
  json.members([&](std::string_view key) {
    if (key == "node" && json.peek() == JsonReader::Kind::kString) {
      node = json.string();
    } else {
      is_copy = is_copy || key == "copy";
      json.skip();
    }
  });
  return is_copy ? std::string() : node;
}

}  // namespace

CustomMetadata read_custom(std::string_view text) {
  CustomMetadata found;
  StringArena arena;
  JsonReader json(text, arena);
  if (json.peek() != JsonReader::Kind::kObject) return {};
  json.members([&](std::string_view key) {
    const bool is_string = json.peek() == JsonReader::Kind::kString;
    if (is_string && key == "forward_node") {
      found.forward_node = json.string();
    } else if (is_string && key == "decomposed_from") {
      found.decomposed_from = json.string();
    } else if (is_string && key == "checkpoint") {
      found.checkpoint.region = json.string();
    } else if (is_string && key == "checkpoint_policy") {
      // The name of a torch.utils.checkpoint.CheckpointPolicy.
      found.checkpoint.is_saved = json.string().ends_with("_SAVE");
    } else if (key == "shardprop" && json.peek() == JsonReader::Kind::kObject) {
      found.planned_node = read_planned_node(json);
    } else {
      json.skip();
    }
  });
  json.end();
  return json.ok() ? found : CustomMetadata{};
}

}  // namespace shardprop::pt2
