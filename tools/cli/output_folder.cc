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

namespace {

// Name of the folder of the replaced files, inside the folder of the new files.
// No new file has this name.
constexpr std::string_view kReplaced = ".replaced";

std::error_code rename_file(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  return failed;
}

}  // namespace

OutputFolder::OutputFolder(fs::path path, std::vector<NamedInput> inputs,
                           std::vector<std::string> earlier, Rename rename)
    : path_(std::move(path)),
      inputs_(std::move(inputs)),
      earlier_(std::move(earlier)),
      rename_(rename ? std::move(rename) : rename_file) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!staged_.empty()) fs::remove_all(staged_, ignored);
  // Only empty folders are removed: another process may have put a file there.
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
  // A dangling link existed before, so it must not be removed.
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

Result<void> OutputFolder::check_name(const std::string& name) const {
  const fs::path place = path_ / name;
  SP_CHECK(check_no_input(place.string(), inputs_));
  std::error_code failed;
  const fs::file_status found = fs::symlink_status(place, failed);
  if (!fs::exists(found)) return {};
  if (fs::is_directory(place, failed)) {
    return fail(cannot_write("-o " + place.string(), EISDIR));
  }
  if (fs::is_regular_file(found) &&
      std::find(earlier_.begin(), earlier_.end(), name) != earlier_.end()) {
    return {};
  }
  return fail(Error{ErrorCode::kCannotWriteOutput,
                    "the output would replace a file that this command did "
                    "not write",
                    "-o " + place.string(),
                    {},
                    "give another folder, or move the file away"});
}

Result<void> OutputFolder::write(const std::string& name,
                                 std::string_view data) {
  SP_CHECK(check_name(name));
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

// A link keeps the older file at its place until the new one replaces it in one
// step. On file systems without links, neither file exists for a moment.
std::error_code OutputFolder::save(const fs::path& place, bool is_removed,
                                   std::vector<Undo>& undo) const {
  std::error_code failed;
  if (!fs::exists(fs::symlink_status(place, failed))) {
    undo.push_back({place, {}});
    return {};
  }
  const fs::path saved = staged_ / kReplaced / place.filename();
  if (!is_removed) fs::create_hard_link(place, saved, failed);
  if (is_removed || failed) failed = rename_(place, saved);
  if (!failed) undo.push_back({place, saved});
  return failed;
}

Result<void> OutputFolder::replace_all(std::span<const std::string> old,
                                       std::vector<Undo>& undo) const {
  std::error_code failed;
  const auto cannot = [&](const fs::path& path) {
    return fail(cannot_write("-o " + path.string(), failed.value()));
  };
  fs::create_directory(staged_ / kReplaced, failed);
  if (failed) return cannot(path_);
  for (const std::string& name : names_) {
    failed = save(path_ / name, false, undo);
    if (failed) return cannot(path_ / name);
    failed = rename_(staged_ / name, path_ / name);
    if (!failed) continue;
    // Another process may put its own file there meanwhile.
    if (undo.back().saved.empty()) undo.pop_back();
    return cannot(path_ / name);
  }
  for (const std::string& name : old) {
    if (std::find(names_.begin(), names_.end(), name) != names_.end() ||
        !fs::is_regular_file(fs::symlink_status(path_ / name, failed))) {
      continue;
    }
    failed = save(path_ / name, true, undo);
    if (failed) return cannot(path_ / name);
  }
  return {};
}

void OutputFolder::restore(const std::vector<Undo>& undo) {
  std::error_code failed;
  for (auto at = undo.rbegin(); at != undo.rend(); ++at) {
    if (at->saved.empty()) {
      fs::remove(at->place, failed);
    } else if (rename_(at->saved, at->place)) {
      // The destructor must keep the folder that holds the older file.
      staged_.clear();
    }
  }
}

Result<void> OutputFolder::put(std::span<const std::string> old) {
  if (names_.empty()) return {};
  for (const std::string& name : names_) SP_CHECK(check_name(name));
  for (const std::string& name : old) {
    SP_CHECK(check_no_input((path_ / name).string(), inputs_));
  }
  std::vector<Undo> undo;
  auto done = replace_all(old, undo);
  is_put_ = done.has_value();
  if (!is_put_) restore(undo);
  return done;
}

std::vector<std::string> OutputFolder::written() const {
  std::vector<std::string> paths;
  for (const std::string& name : names_) {
    paths.push_back((path_ / name).string());
  }
  return paths;
}

}  // namespace shardprop::cli
