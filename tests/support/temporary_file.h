// `TemporaryFile` is a file with a text, which is removed at the end.
//
//   const TemporaryFile file("mesh = 4\n");
//   load(file.path());
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace shardprop::testing {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text)
      : path_((std::filesystem::temp_directory_path() / "shardprop-XXXXXX")
                  .string()) {
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error("no temporary file");
    close(descriptor);
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace shardprop::testing
