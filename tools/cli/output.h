// Functions for standard output, and for files that are written completely or
// not at all. Output that could not be written is always an error.
#pragma once

#include <shardprop/base/result.h>

#include <array>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>

namespace shardprop::cli {

// Prepares the process for output; call it first. A broken pipe and a file at
// its size limit become errors of the write instead of signals. Closed standard
// streams are opened so that they refuse data, and no file gets their
// descriptor.
void prepare_output();

// A stream buffer on a file descriptor that remembers why a write failed.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);

  // Returns 0, or the errno of the first failed write.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> block_;
};

// Returns kCannotWriteOutput with the text of errno `number`.
Error cannot_write(const std::string& where, int number);

// The descriptor that a path names, open or not: /dev/stdout, /dev/stderr,
// /dev/fd/N, /proc/self/fd/N. It is written to and never replaced.
std::optional<int> descriptor_named(std::string_view path);

// Checks, before long work, that the file for its answer can be written. The
// error is kCannotWriteOutput, at the flag.
Result<void> check_target(const std::string& path);

// NamedInput is a file that a command reads, and where the user named it.
struct NamedInput {
  std::string path;
  std::string place;  // "--plan a.json"
};

// Checks that a file written to `path` replaces or changes none of the inputs,
// through links too. The error is kCannotWriteOutput, at the flag.
Result<void> check_no_input(const std::string& path,
                            std::span<const NamedInput> inputs);

// Writes a new file next to `path` and then replaces `path`, so that an older
// file remains until the new one is complete. A device or a fifo is written
// directly. The error is kCannotWriteOutput, at the flag.
Result<void> write_whole(const std::string& path, std::string_view data);

}  // namespace shardprop::cli
