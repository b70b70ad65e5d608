// Detects tensors that are consecutive in memory.
#pragma once

#include <shardprop/collective/local_tensor.h>

#include <cstddef>
#include <optional>
#include <span>

namespace shardprop::collective {

// Returns all parts as one flat tensor if each is contiguous and starts at the
// end of the one before. Precondition: the parts have one dtype, and there is
// at least one.
inline std::optional<LocalTensor> one_stretch(
    std::span<const LocalTensor> parts) {
  const LocalTensor* first = nullptr;
  const std::byte* next = nullptr;
  std::int64_t count = 0;
  for (const LocalTensor& part : parts) {
    if (part.numel() == 0) continue;
    const auto* at = part.data_as<const std::byte>();
    if (!part.is_contiguous() || (first != nullptr && at != next)) {
      return std::nullopt;
    }
    if (first == nullptr) first = &part;
    next = at + part.bytes();
    count += part.numel();
  }
  if (first == nullptr) first = &parts[0];
  return LocalTensor::wrap(first->data(), {count}, first->dtype(),
                           first->owner(), first->device());
}

}  // namespace shardprop::collective
