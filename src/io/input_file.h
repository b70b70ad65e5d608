// `InputFile` is a file that is read once, from front to back: a plain file, a
// pipe or a fifo. Directories, devices and sockets are refused, and the error
// names their kind. Reads wait for a silent pipe until the deadline, if there
// is one.
//
//   SP_ASSIGN(InputFile file, InputFile::open(path));
//   SP_ASSIGN(const std::string text, file.read_all(max_bytes));
#pragma once

#include <shardprop/base/result.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

class InputFile {
 public:
  // Errors: kFileUnreadable, located at the path.
  static Result<InputFile> open(const std::string& path,
                                Deadline deadline = std::nullopt);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  // True if the file is not a pipe or fifo, so that it can be opened and read
  // again.
  bool is_plain() const { return plain_; }

  // Reads up to `size` bytes, as soon as some are available. Returns 0 at the
  // end. Errors: kFileUnreadable, kStopped (the deadline has passed).
  Result<std::size_t> read(char* into, std::size_t size);

  // Returns the rest of the file. Errors: as `read`, and kInputTooLarge.
  Result<std::string> read_all(std::int64_t limit);

 private:
  InputFile(std::string path, int descriptor, Deadline deadline)
      : path_(std::move(path)), descriptor_(descriptor), deadline_(deadline) {}

  // Waits until bytes are available, or until the end.
  Result<void> wait() const;

  std::string path_;
  int descriptor_ = -1;
  bool plain_ = false;
  Deadline deadline_;
};

// Returns the contents of the file. Errors, located at the path:
// kFileUnreadable, kInputTooLarge, kStopped.
Result<std::string> read_file(const std::string& path, std::int64_t limit,
                              Deadline deadline = std::nullopt);

}  // namespace shardprop
