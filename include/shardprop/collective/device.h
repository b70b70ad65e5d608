// Device: where the memory of a tensor is.
#pragma once

#include <cstdint>
#include <string>

namespace shardprop {

enum class DeviceType : std::uint8_t { kHost, kCuda };

struct Device {
  DeviceType type = DeviceType::kHost;
  std::int32_t index = 0;  // 0 on the host
  friend bool operator==(const Device&, const Device&) = default;
};

// "host", "cuda:0".
std::string to_string(Device device);

}  // namespace shardprop
