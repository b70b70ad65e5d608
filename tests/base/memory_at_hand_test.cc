#include "base/memory_at_hand.h"

#include "support/result_checks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace shardprop {
namespace {

TEST_CASE("some memory is at hand, and not all that there could be") {
  CHECK(memory_at_hand() > 0);
  CHECK(check_fits(0, "things").has_value());
  CHECK(check_fits(1 << 10, "things").has_value());
#ifdef __linux__
  const auto refused =
      check_fits(std::numeric_limits<std::int64_t>::max() - 1, "things");
  CHECK_CODE(refused, ErrorCode::kOutOfMemory);
  CHECK(refused.error().message.starts_with(
      "things take at least 8192.0 PiB of memory, "));
#endif
}

// A folder of control groups with the kernel's files.
class FakeGroups {
 public:
  FakeGroups()
      : root_(std::filesystem::temp_directory_path() /
              ("shardprop_groups." + std::to_string(::getpid()))) {}
  ~FakeGroups() { std::filesystem::remove_all(root_); }

  void add(const std::string& path, const std::string& most,
           const std::string& now, const std::string& stat) const {
    const std::filesystem::path folder = root_ / path;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "memory.max") << most << "\n";
    std::ofstream(folder / "memory.current") << now << "\n";
    std::ofstream(folder / "memory.stat") << stat;
  }
  std::int64_t left(const std::string& path) const {
    return left_in_group(root_.string(), path);
  }

 private:
  std::filesystem::path root_;
};

TEST_CASE("only files on disk are freed when a control group is full") {
  const FakeGroups groups;
  // 300 of the 500 bytes of "file" are shared memory, which stays.
  groups.add("job", "1000", "900",
             "anon 400\nfile 500\nshmem 300\ninactive_anon 600\n"
             "inactive_file 150\nactive_file 50\n");
  CHECK(groups.left("/job") == 1000 - 900 + 200);
  // The group above has less left.
  groups.add(".", "2000", "1950", "file 40\ninactive_file 40\n");
  CHECK(groups.left("/job") == 90);
  CHECK(groups.left("/") == 90);
  // Figures that are read at different times.
  groups.add("odd", "1000", "10", "inactive_file 500\nactive_file 0\n");
  CHECK(groups.left("/odd") == 90);
  groups.add(".", "max", "1950", "");
  CHECK(groups.left("/odd") == 1000);
  CHECK(groups.left("/missing") == std::numeric_limits<std::int64_t>::max());
  CHECK(groups.left("") == std::numeric_limits<std::int64_t>::max());
}

// Sanitizers need far more addresses than memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a limit on addresses is one on memory") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit little = before;
  little.rlim_cur = rlim_t{1} << 30;
  REQUIRE(::setrlimit(RLIMIT_AS, &little) == 0);
  const std::int64_t left = memory_at_hand();
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(left <= std::int64_t{1} << 30);
}
#endif

}  // namespace
}  // namespace shardprop
