// Files that the command line writes: whole or not at all, all of a folder or
// none, and with the permissions that the process gives new files.
#include "cli/output.h"
#include "cli/output_folder.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using cli::OutputFolder;
namespace fs = std::filesystem;

namespace {

// TestFolder is a folder that exists as long as a test runs.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (fs::temp_directory_path() / "output-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TestFolder() { fs::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }
  // All files with their contents, and links with their targets.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_).string();
      if (entry.is_symlink()) {
        found[name] = "-> " + fs::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        std::ifstream file(entry.path());
        found[name] = {std::istreambuf_iterator<char>(file), {}};
      } else {
        found[name] = "folder";
      }
    }
    return found;
  }

 private:
  fs::path path_;
};

mode_t mode_of(const fs::path& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a folder gets all files or none, whichever move fails") {
  for (int failing = 0;; ++failing) {
    CAPTURE(failing);
    const TestFolder test;
    test.write("a", "old a");
    test.write("stale", "old stale");
    test.write("mine", "mine");
    const auto before = test.files();
    int moves = 0;
    bool is_failed = false;
    const auto rename = [&](const fs::path& from, const fs::path& to) {
      if (!is_failed && moves++ == failing) {
        is_failed = true;
        return std::make_error_code(std::errc::no_space_on_device);
      }
      std::error_code failed;
      fs::rename(from, to, failed);
      return failed;
    };
    bool is_done = false;
    {
      OutputFolder folder(test.path(), {}, {"a"}, rename);
      for (const char* name : {"a", "b", "c"}) {
        REQUIRE(folder.write(name, std::string("new ") + name));
      }
      const std::vector<std::string> old = {"stale", "a", "missing"};
      const auto put = folder.put(old);
      is_done = put.has_value();
      if (!put) {
        CHECK(put.error().code == ErrorCode::kCannotWriteOutput);
        CHECK(put.error().location.starts_with("-o "));
      }
    }
    CHECK(is_done == !is_failed);
    if (!is_done) {
      CHECK(test.files() == before);
      continue;
    }
    CHECK(test.files() == std::map<std::string, std::string>{{"a", "new a"},
                                                             {"b", "new b"},
                                                             {"c", "new c"},
                                                             {"mine", "mine"}});
    // It takes three moves for the new files, and one for the stale file.
    CHECK(failing == 4);
    break;
  }
}

TEST_CASE("a folder that replaced nothing leaves no folder behind") {
  const TestFolder test;
  const auto fail = [](const fs::path&, const fs::path&) {
    return std::make_error_code(std::errc::io_error);
  };
  {
    OutputFolder folder(test.path() / "new" / "folder", {}, {}, fail);
    REQUIRE(folder.write("a", "text"));
    CHECK_FALSE(folder.put());
  }
  CHECK(test.files().empty());
}

TEST_CASE("a folder keeps away from inputs") {
  const TestFolder test;
  test.write("a", "input");
  test.write("real", "input");
  fs::create_symlink("real", test.path() / "b");
  const std::vector<cli::NamedInput> inputs = {
      {(test.path() / "a").string(), "GRAPH a"},
      {(test.path() / "b").string(), "--plan b"}};
  const auto before = test.files();
  {
    OutputFolder folder(test.path(), inputs);
    for (const char* name : {"a", "b", "real"}) {
      const auto written = folder.write(name, "output");
      REQUIRE_FALSE(written);
      CHECK(written.error().code == ErrorCode::kCannotWriteOutput);
      CHECK(written.error().notes.size() == 1);
    }
    REQUIRE(folder.write("c", "output"));
    const std::vector<std::string> old = {"a"};
    CHECK_FALSE(folder.put(old));
  }
  CHECK(test.files() == before);
}

TEST_CASE("a folder replaces only files of earlier runs") {
  const TestFolder test;
  for (const char* name : {"earlier", "mine", "real"}) test.write(name, name);
  fs::create_symlink("real", test.path() / "link");
  fs::create_symlink("nowhere", test.path() / "dangling");
  fs::create_directory(test.path() / "folder");
  {
    OutputFolder folder(test.path(), {},
                        {"earlier", "link", "dangling", "folder"});
    for (const char* name : {"mine", "link", "dangling", "folder"}) {
      CAPTURE(name);
      const auto written = folder.write(name, "output");
      REQUIRE_FALSE(written);
      CHECK(written.error().code == ErrorCode::kCannotWriteOutput);
      CHECK(written.error().location == "-o " + (test.path() / name).string());
      CHECK_FALSE(written.error().help.empty());
    }
    REQUIRE(folder.write("earlier", "output"));
    REQUIRE(folder.write("late", "output"));
    // A file that comes after the check stays, too.
    test.write("late", "mine");
    CHECK_FALSE(folder.put());
    fs::remove(test.path() / "late");
    REQUIRE(folder.put());
  }
  fs::remove(test.path() / "dangling");
  fs::remove(test.path() / "folder");
  CHECK(test.files() ==
        std::map<std::string, std::string>{{"earlier", "output"},
                                           {"late", "output"},
                                           {"link", "-> real"},
                                           {"mine", "mine"},
                                           {"real", "real"}});
}

TEST_CASE("new files have the mode that the process gives") {
  const TestFolder test;
  const std::string path = (test.path() / "file").string();
  const mode_t older = ::umask(027);
  REQUIRE(cli::write_whole(path, "text"));
  CHECK(mode_of(path) == 0640);
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  REQUIRE(cli::write_whole(path, "other"));
  CHECK(mode_of(path) == 0604);
  ::umask(older);
}

TEST_CASE("writing a file never clears the mask of other threads") {
  const TestFolder test;
  const mode_t older = ::umask(077);
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int i = 0; i < 20'000 && !is_over; ++i) {
      static_cast<void>(
          cli::write_whole((test.path() / "file").string(), "text"));
      std::error_code failed;
      fs::remove(test.path() / "file", failed);
    }
    is_over = true;
  });
  bool is_open = false;
  while (!is_over) {
    const fs::path path = test.path() / "other";
    std::ofstream(path) << "text";
    is_open = is_open || mode_of(path) != 0600;
    if (is_open) is_over = true;
    fs::remove(path);
  }
  writer.join();
  ::umask(older);
  CHECK_FALSE(is_open);
}
