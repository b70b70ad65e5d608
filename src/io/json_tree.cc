#include "io/json_tree.h"

#include "io/json_reader.h"

#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

using Json = LinearJson;

// Calls JsonTree::take_apart() on a tree or its children at the end of the
// scope, unless they have been moved.
template <class Tree>
class Safely {
 public:
  explicit Safely(Tree& tree) : tree_(tree) {}
  ~Safely() {
    if constexpr (std::is_same_v<Tree, Json>) {
      JsonTree::take_apart(tree_);
    } else if constexpr (std::is_same_v<Tree, Json::array_t>) {
      for (Json& child : tree_) JsonTree::take_apart(child);
    } else {
      for (auto& member : tree_) JsonTree::take_apart(member.second);
    }
  }
  Safely(const Safely&) = delete;
  Safely& operator=(const Safely&) = delete;

 private:
  Tree& tree_;
};

// JsonReader bounds the depth of a text and thus of the recursion.
Json value(JsonReader& json);  // NOLINT(misc-no-recursion)

Json list(JsonReader& json) {  // NOLINT(misc-no-recursion)
  Json::array_t elements;
  const Safely safely(elements);
  json.array([&] {
    Json element = value(json);
    const Safely held(element);
    elements.push_back(std::move(element));
  });
  return Json(std::move(elements));
}

Json object(JsonReader& json) {  // NOLINT(misc-no-recursion)
  Json::object_t members;
  const Safely safely(members);
  std::unordered_set<std::string_view> seen;
  json.members([&](std::string_view key) {
    if (!seen.insert(key).second) {
      return json.fail(ErrorCode::kRepeatedKey,
                       "a key appears twice in one object");
    }
    Json member = value(json);
    const Safely held(member);
    members.emplace(std::string(key), std::move(member));
  });
  return Json(std::move(members));
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

void JsonTree::take_apart(
    LinearJson& tree) noexcept {  // NOLINT(misc-no-recursion)
  if (auto* elements = tree.get_ptr<Json::array_t*>()) {
    for (Json& child : *elements) take_apart(child);
    elements->clear();
  } else if (auto* members = tree.get_ptr<Json::object_t*>()) {
    for (auto& member : *members) take_apart(member.second);
    members->clear();
  }
}

Result<JsonTree> parse_json_tree(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  JsonTree tree(value(json));
  json.end();
  if (json.error()) return fail(*json.error());
  return tree;
}

}  // namespace shardprop
