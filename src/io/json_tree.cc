#include "io/json_tree.h"

#include "io/json_reader.h"

#include <string>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

using Json = LinearJson;

// Recursion is as deep as JsonReader lets a text be.
Json value(JsonReader& json);  // NOLINT(misc-no-recursion)

Json list(JsonReader& json) {  // NOLINT(misc-no-recursion)
  Json::array_t elements;
  json.array([&] { elements.push_back(value(json)); });
  return elements;
}

Json object(JsonReader& json) {  // NOLINT(misc-no-recursion)
  Json::object_t members;
  std::unordered_set<std::string_view> seen;
  json.members([&](std::string_view key) {
    if (!seen.insert(key).second) {
      return json.fail(ErrorCode::kRepeatedKey,
                       "a key stands twice in one object");
    }
    members.emplace(std::string(key), value(json));
  });
  return members;
}

Json value(JsonReader& json) {  // NOLINT(misc-no-recursion)
  switch (json.peek()) {
    case JsonReader::Kind::kBool:
      return json.boolean();
    case JsonReader::Kind::kNumber:
      return std::visit([](auto number) -> Json { return number; },
                        json.integer_or_number());
    case JsonReader::Kind::kString:
      return std::string(json.string());
    case JsonReader::Kind::kArray:
      return list(json);
    case JsonReader::Kind::kObject:
      return object(json);
    case JsonReader::Kind::kNull:
      json.null();
      return nullptr;
    case JsonReader::Kind::kNothing:
      json.skip();  // which says what is wrong
      return nullptr;
  }
  return nullptr;
}

}  // namespace

Result<Json> parse_json_tree(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  Json tree = value(json);
  json.end();
  if (json.error()) return fail(*json.error());
  return tree;
}

}  // namespace shardprop
