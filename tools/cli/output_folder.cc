#include "cli/output_folder.h"

#include "base/try.h"
#include "cli/output.h"

#include <stdlib.h>

#include <algorithm>
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
  // A link to nowhere is there: it is not ours to take away.
  for (; !folder.empty() && !fs::exists(fs::symlink_status(folder, failed));
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

Result<void> OutputFolder::take_away(
    const std::function<bool(std::string_view)>& is_old) {
  std::error_code failed;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(path_, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool is_file = !fs::is_directory(at->symlink_status(failed));
    const bool is_new =
        std::find(names_.begin(), names_.end(), name) != names_.end();
    if (is_file && !is_new && is_old(name)) old.push_back(at->path());
  }
  for (const fs::path& path : old) {
    fs::remove(path, failed);
    if (failed) {
      return fail(cannot_write("-o " + path.string(), failed.value()));
    }
  }
  return {};
}

Result<void> OutputFolder::put(
    const std::function<bool(std::string_view)>& is_old) {
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
  if (is_old) SP_CHECK(take_away(is_old));
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
