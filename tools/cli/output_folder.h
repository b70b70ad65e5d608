// OutputFolder is a folder that gets several files, all of them or none.
//
//   OutputFolder folder("out", arguments.inputs());
//   SP_CHECK(folder.write("plan.json", plan));
//   SP_CHECK(folder.write("program.pt2", program));
//   SP_CHECK(folder.put());   // now both files are there
#pragma once

#include "cli/output.h"

#include <shardprop/base/result.h>

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace shardprop::cli {

class OutputFolder {
 public:
  // Moves a file within the folder. Tests give one that fails.
  using Rename = std::function<std::error_code(
      const std::filesystem::path& from, const std::filesystem::path& to)>;

  // `inputs` are files that no output may replace. `earlier` are the names of
  // the files in the folder that an output may replace: an earlier run of the
  // command wrote them.
  explicit OutputFolder(std::filesystem::path path,
                        std::vector<NamedInput> inputs = {},
                        std::vector<std::string> earlier = {},
                        Rename rename = {});
  // Removes the files that were written but not put.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Checks that a file of this name replaces no input and no file that an
  // earlier run did not write. The error is kCannotWriteOutput, at the file.
  Result<void> check_name(const std::string& name) const;
  // Writes the file to a hidden folder inside this one, and creates this one if
  // it is missing. Errors: kCannotWriteOutput.
  Result<void> write(const std::string& name, std::string_view data);
  // Moves the written files to their places, where they replace files of
  // earlier runs. The files that `old` names and this object did not write are
  // removed. After an error every file is as it was before. Errors:
  // kCannotWriteOutput.
  Result<void> put(std::span<const std::string> old = {});

  // The names of the files, in the order in which they were written.
  const std::vector<std::string>& names() const { return names_; }
  // The paths of the files, in the order in which they were written.
  std::vector<std::string> written() const;

 private:
  // Undo restores one replaced or removed file.
  struct Undo {
    std::filesystem::path place;
    std::filesystem::path saved;  // the older file; empty if there was none
  };

  Result<void> make();
  std::error_code save(const std::filesystem::path& place, bool is_removed,
                       std::vector<Undo>& undo) const;
  Result<void> replace_all(std::span<const std::string> old,
                           std::vector<Undo>& undo) const;
  void restore(const std::vector<Undo>& undo);

  std::filesystem::path path_;
  std::vector<NamedInput> inputs_;
  std::vector<std::string> earlier_;
  Rename rename_;
  std::filesystem::path made_;    // the outermost folder that was missing
  std::filesystem::path staged_;  // in path_; empty before the first file
  std::vector<std::string> names_;
  bool is_put_ = false;
};

}  // namespace shardprop::cli
