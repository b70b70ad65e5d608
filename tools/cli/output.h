// Standard output, and files that are written whole or not at all. Output that
// could not be written is always an error.
#pragma once

#include <shardprop/base/result.h>

#include <array>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <string_view>

namespace shardprop::cli {

// To be called before anything else: a pipe that nobody reads any more and a
// file at its size limit become errors of the write instead of a signal, and
// the standard streams are open, if only to refuse what is written to them, so
// that no file takes their place.
void prepare_output();

// A stream buffer on a file descriptor that remembers why a write failed.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor);

  // 0 while all was written.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 16> block_;
};

// kCannotWriteOutput, with the reason as errno has it.
Error cannot_write(const std::string& where, int number);

// The descriptor that a path names, open or not: /dev/stdout, /dev/stderr,
// /dev/fd/N, /proc/self/fd/N. It is written to and never replaced.
std::optional<int> descriptor_named(std::string_view path);

// Whether there is a place for the file, asked before long work whose answer it
// gets. Errors: kCannotWriteOutput, at the flag.
Result<void> check_target(const std::string& path);

// NamedInput is a file that a command reads, and where the user named it.
struct NamedInput {
  std::string path;
  std::string place;  // "--plan a.json"
};

// Whether a file written to `path` would replace or change one of the inputs,
// through links too. Error: kCannotWriteOutput, at the flag.
Result<void> check_no_input(const std::string& path,
                            std::span<const NamedInput> inputs);

// Written beside the file, which is then replaced: an older one stays as it was
// until all of the new one is there. What is no plain file (a device, a fifo)
// is written as it is. Errors: kCannotWriteOutput, at the flag.
Result<void> write_whole(const std::string& path, std::string_view data);

}  // namespace shardprop::cli
