#include "cli/output_folder.h"

#include "base/try.h"
#include "cli/output.h"

#include <stdlib.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace shardprop::cli {

namespace fs = std::filesystem;

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!staged_.empty()) fs::remove_all(staged_, ignored);
  // Empty ones only: others may have put something there meanwhile.
  if (is_put_ || made_.empty()) return;
  fs::path folder = path_.has_filename() ? path_ : path_.parent_path();
  while (fs::remove(folder, ignored) && folder != made_) {
    folder = folder.parent_path();
  }
}

Result<void> OutputFolder::make() {
  const auto cannot = [&](int number) {
    return fail(cannot_write("-o " + path_.string(), number));
  };
  if (path_.empty()) return cannot(ENOENT);
  std::error_code failed;
  fs::path folder = path_.has_filename() ? path_ : path_.parent_path();
  for (; !folder.empty() && !fs::exists(folder, failed);
       folder = folder.parent_path()) {
    made_ = folder;
  }
  fs::create_directories(path_, failed);
  if (failed) return cannot(failed.value());
  std::string staged = (path_ / ".shardprop-XXXXXX").string();
  if (::mkdtemp(staged.data()) == nullptr) return cannot(errno);
  staged_ = staged;
  return {};
}

Result<void> OutputFolder::write(const std::string& name,
                                 std::string_view data) {
  if (staged_.empty()) SP_CHECK(make());
  auto written = write_whole((staged_ / name).string(), data);
  if (!written) {
    Error error = std::move(written).error();
    error.location = "-o " + (path_ / name).string();
    return fail(std::move(error));
  }
  names_.push_back(name);
  return {};
}

Result<void> OutputFolder::put() {
  std::error_code failed;
  // Once the first file is replaced, the others should be, too.
  for (const std::string& name : names_) {
    if (!fs::is_directory(path_ / name, failed)) continue;
    return fail(cannot_write("-o " + (path_ / name).string(), EISDIR));
  }
  for (const std::string& name : names_) {
    fs::rename(staged_ / name, path_ / name, failed);
    if (failed) {
      return fail(
          cannot_write("-o " + (path_ / name).string(), failed.value()));
    }
    is_put_ = true;
  }
  return {};
}

std::vector<std::string> OutputFolder::written() const {
  std::vector<std::string> paths;
  for (const std::string& name : names_) {
    paths.push_back((path_ / name).string());
  }
  return paths;
}

}  // namespace shardprop::cli
