// InputFile: a file that is read once, from front to back: a plain file, a pipe
// or a fifo. Directories, devices and sockets are refused, with what they are.
//
//   SP_ASSIGN(InputFile file, InputFile::open(path));
//   SP_ASSIGN(const std::string text, file.read_all(max_bytes));
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace shardprop {

class InputFile {
 public:
  // Errors: kFileUnreadable, at the path.
  static Result<InputFile> open(const std::string& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  // Not a pipe or fifo: may be opened again, to be read from the start.
  bool is_plain() const { return plain_; }

  // Up to `size` bytes, as soon as there are any; 0 at the end. Errors:
  // kFileUnreadable.
  Result<std::size_t> read(char* into, std::size_t size);

  // What was not read yet. Errors: besides, kInputTooLarge.
  Result<std::string> read_all(std::int64_t limit);

 private:
  InputFile(std::string path, int descriptor, bool plain)
      : path_(std::move(path)), descriptor_(descriptor), plain_(plain) {}

  std::string path_;
  int descriptor_ = -1;
  bool plain_ = false;
};

// All that the file holds. Errors: kFileUnreadable and kInputTooLarge, at the
// path.
Result<std::string> read_file(const std::string& path, std::int64_t limit);

}  // namespace shardprop
