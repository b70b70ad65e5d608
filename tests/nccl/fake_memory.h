// Creates memory of a fake device. The host cannot touch it: its address is a
// page without any access, and the device works on another mapping of the page.
#pragma once

#include <cstddef>

namespace shardprop::testing {

// Null if the system has no more.
void* device_block(std::size_t bytes);
std::size_t device_block_bytes(const void* block);
void free_device_block(void* block);
// The device's own address of a place that the host calls `address`. It is
// `address` itself outside of all blocks, in memory shared with the host.
void* on_device(const void* address);

}  // namespace shardprop::testing
