#include "base/name_folding.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace shardprop {
namespace {

constexpr char kMark = '\x01';

}  // namespace

bool is_number(std::string_view text) {
  // A number of 10 or more digits is not an index.
  return !text.empty() && text.size() < 10 &&
         std::all_of(
             text.begin(), text.end(),
             [](char c) { return '0' <= c && c <= '9'; });
}

NumberedName numbered_name(std::string_view name) {
  NumberedName out;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    if (is_number(part)) {
      std::int64_t number = 0;
      std::from_chars(part.data(), part.data() + part.size(), number);
      out.numbers.push_back(number);
      out.pattern += kMark;
    } else {
      out.pattern += part;
    }
    if (dot == std::string_view::npos) return out;
    out.pattern += '.';
    name.remove_prefix(dot + 1);
  }
}

std::string with_numbers(const std::string& pattern,
                         const std::vector<std::set<std::int64_t>>& places) {
  std::string text;
  std::size_t place = 0;
  for (const char c : pattern) {
    if (c != kMark) {
      text += c;
      continue;
    }
    const std::set<std::int64_t>& numbers = places[place++];
    text += runs_text({numbers.begin(), numbers.end()});
  }
  return text;
}

std::string runs_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (j > i) text += (j == i + 1 ? "," : "..") + std::to_string(numbers[j]);
    i = j + 1;
  }
  return text;
}

std::vector<FoldedName> fold_names(const std::vector<std::string>& names,
                                   const std::vector<std::string>& groups) {
  struct Class {
    std::vector<std::size_t> members;
    std::vector<std::set<std::int64_t>> places;
  };
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  std::vector<std::pair<std::string, Class>> classes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NumberedName parts = numbered_name(names[i]);
    const auto [it, fresh] =
        index.try_emplace({parts.pattern, groups[i]}, classes.size());
    if (fresh) {
      classes.emplace_back(parts.pattern, Class{});
      classes.back().second.places.resize(parts.numbers.size());
    }
    Class& entry = classes[it->second].second;
    entry.members.push_back(i);
    for (std::size_t k = 0; k < parts.numbers.size(); ++k) {
      entry.places[k].insert(parts.numbers[k]);
    }
  }
  std::vector<FoldedName> out;
  for (const auto& [pattern, entry] : classes) {
    std::size_t combinations = 1;
    for (const auto& numbers : entry.places) combinations *= numbers.size();
    if (combinations == entry.members.size()) {
      out.push_back({with_numbers(pattern, entry.places), entry.members});
      continue;
    }
    for (const std::size_t member : entry.members) {
      out.push_back({names[member], {member}});
    }
  }
  return out;
}

std::string starred_name(std::string_view name) {
  std::string out;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (begin > 0) out += '.';
    out += is_number(part) ? std::string_view("*") : part;
    begin = end + 1;
  }
  return out;
}

std::string layer_path(std::string_view module_path) {
  for (std::size_t begin = 0; begin < module_path.size();) {
    const std::size_t end =
        std::min(module_path.find('.', begin), module_path.size());
    if (is_number(module_path.substr(begin, end - begin))) {
      return std::string(module_path.substr(0, end));
    }
    begin = end + 1;
  }
  return "";
}

std::string path_in_layer(std::string_view module_path) {
  std::size_t inside = 0;
  for (std::size_t begin = 0; begin < module_path.size();) {
    const std::size_t end =
        std::min(module_path.find('.', begin), module_path.size());
    if (is_number(module_path.substr(begin, end - begin))) {
      inside = std::min(end + 1, module_path.size());
    }
    begin = end + 1;
  }
  return std::string(inside < module_path.size() ? module_path.substr(inside)
                                                 : module_path);
}

}  // namespace shardprop
