// Letters beyond ASCII in a TOML file where none may stand.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace shardprop {

// The first byte beyond ASCII outside of quotes and comments, or where toml++
// looks for blanks: behind a backslash in a text of several lines. Those lead
// toml++ 3.3 to a place that it declares unreachable. Example: of `é = 1` 0, of
// `name = "é"  # é` nothing. A mark of the byte order is no letter.
std::optional<std::size_t> bare_letter(std::string_view toml);

}  // namespace shardprop
