#include <shardprop/plan/pin.h>

#include <fmt/format.h>

#include <utility>

namespace shardprop {

Result<Pin> Pin::parse(std::string_view text) {
  // The last `=`: names may hold one, placements may not.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail(
        Error{ErrorCode::kPinSyntax,
              "a pin needs a name and placements",
              fmt::format("--pin '{}'", text),
              {},
              "write NAME=PLACEMENTS, as in 'layers.*.wq.weight=R,S(0)'"});
  }
  auto layout = Layout::parse(text.substr(equals + 1));
  if (!layout) {
    return fail(std::move(layout).error().at(fmt::format("--pin '{}'", text)));
  }
  return Pin{std::string(text.substr(0, equals)), *std::move(layout)};
}

std::string to_string(const Pin& pin) {
  return fmt::format("{}={}", pin.pattern, to_string(pin.layout));
}

bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  // Where the last star stood, and the run it was last tried with.
  std::size_t star = std::string_view::npos;
  std::size_t run_end = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      run_end = n;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace shardprop
