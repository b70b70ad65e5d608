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
  // `suffix` is the end of the name, such as ".toml".
  explicit TemporaryFile(std::string_view text, std::string_view suffix = {})
      : path_((std::filesystem::temp_directory_path() / "shardprop-XXXXXX")
                  .string()
                  .append(suffix)) {
    const int descriptor =
        mkstemps(path_.data(), static_cast<int>(suffix.size()));
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
