#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace shardprop::kernels {

// The numbers are part of the C API and never change.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // a list, size, dim, dtype or pointer that is wrong
  kUnsupported = 2,      // sound, but beyond what the kernels do
  kOverlap = 3,          // the output shares memory with itself or an input
  kCuda = 4,             // a CUDA call failed
  kOutOfMemory = 5,      // no host memory for the descriptors (C API only)
};

// `Status` is the result of a call. If it is not kOk, nothing has been written,
// and the message names the tensor and its wrong size:
//   chunk_cat: tensors[3] has size 5 in dim 0, tensors[0] has 4
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

}  // namespace shardprop::kernels
