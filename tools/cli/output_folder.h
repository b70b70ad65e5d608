// A folder that gets several files, all of them or none.
//
//   OutputFolder folder("out");
//   SP_CHECK(folder.write("plan.json", plan));
//   SP_CHECK(folder.write("program.pt2", program));
//   SP_CHECK(folder.put());   // now they are there
#pragma once

#include <shardprop/base/result.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path path) : path_(std::move(path)) {}
  // Takes away what was written and not put.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Into a folder beside the others' sight; the folder is made if it is not
  // there. Errors: kCannotWriteOutput.
  Result<void> write(const std::string& name, std::string_view data);
  // Where they belong; older files of their names are replaced, and those whose
  // names `is_old` knows are taken away: they went with what was there before.
  // Errors: kCannotWriteOutput.
  Result<void> put(const std::function<bool(std::string_view)>& is_old = {});

  // Where the files are, in the order in which they were written.
  std::vector<std::string> written() const;

 private:
  Result<void> make();
  Result<void> take_away(const std::function<bool(std::string_view)>& is_old);

  std::filesystem::path path_;
  std::filesystem::path made_;    // the outermost folder that was not there
  std::filesystem::path staged_;  // in path_; empty before the first file
  std::vector<std::string> names_;
  bool is_put_ = false;
};

}  // namespace shardprop::cli
