// `TextLines` collects lines of text.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace shardprop {

struct TextLines {
  std::string text;

  // Adds one line.
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format,
                   std::forward<Args>(args)...);
    text += '\n';
  }
};

}  // namespace shardprop
