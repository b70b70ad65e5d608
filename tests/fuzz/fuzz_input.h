// Helpers that all fuzz targets share.
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace shardprop {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// Every refusal must have a message.
template <class T>
void require_reason(const Result<T>& refused) {
  require(!refused.error().message.empty());
  require(!to_string(refused.error()).empty());
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Returns the content of a file in tests/fuzz.
inline std::string fuzz_file(const char* name) {
  std::ifstream file(std::string(SHARDPROP_FUZZ_FOLDER "/") + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace shardprop
