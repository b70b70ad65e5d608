// `Device` is the place of a tensor's memory: the host or a GPU.
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

// Prints "host" or "cuda:0".
std::string to_string(Device device);

}  // namespace shardprop
