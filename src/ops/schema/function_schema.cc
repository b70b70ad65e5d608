#include <shardprop/ops/function_schema.h>

#include "base/try.h"
#include "ops/schema/schema_parser.h"

#include <algorithm>
#include <utility>

namespace shardprop {

Result<FunctionSchema> FunctionSchema::parse(std::string_view text,
                                             std::string_view tags) {
  SP_ASSIGN(ParsedSchema parsed, parse_schema(text));
  FunctionSchema schema;
  schema.name_ = std::move(parsed.name);
  schema.arguments_ = std::move(parsed.arguments);
  schema.returns_ = std::move(parsed.returns);
  while (!tags.empty()) {
    const std::size_t comma = tags.find(',');
    schema.tags_.emplace_back(tags.substr(0, comma));
    tags = comma == std::string_view::npos ? std::string_view{}
                                           : tags.substr(comma + 1);
  }
  return schema;
}

std::string_view FunctionSchema::ns() const {
  return std::string_view(name_).substr(0, name_.find('.'));
}

std::string_view FunctionSchema::base_name() const {
  const std::size_t first = name_.find('.') + 1;
  return std::string_view(name_).substr(first, name_.find('.', first) - first);
}

std::string_view FunctionSchema::overload() const {
  const std::size_t first = name_.find('.') + 1;
  return std::string_view(name_).substr(name_.find('.', first) + 1);
}

std::optional<std::size_t> FunctionSchema::argument_index(
    std::string_view name) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].name == name) return i;
  }
  return std::nullopt;
}

bool FunctionSchema::has_tag(std::string_view tag) const {
  return std::find(tags_.begin(), tags_.end(), tag) != tags_.end();
}

namespace {

bool writes(const ArgumentSchema& argument) {
  return argument.alias && argument.alias->writes;
}

}  // namespace

bool FunctionSchema::is_mutating() const {
  return std::any_of(arguments_.begin(), arguments_.end(), writes);
}

bool FunctionSchema::is_out() const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [](const auto& a) { return writes(a) && a.keyword_only; });
}

bool FunctionSchema::is_inplace() const {
  return std::any_of(arguments_.begin(), arguments_.end(), [](const auto& a) {
    return writes(a) && !a.keyword_only;
  });
}

}  // namespace shardprop
