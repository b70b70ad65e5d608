#include "io/input_file.h"

#include "base/try.h"
#include "io/inflate.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace shardprop {
namespace {

tl::unexpected<Error> unreadable(const std::string& path, std::string why,
                                 std::string help = "check the path") {
  return fail(Error{ErrorCode::kFileUnreadable,
                    "the file cannot be read: " + std::move(why),
                    path.empty() ? "''" : path,
                    {},
                    std::move(help)});
}

tl::unexpected<Error> no_such_file(const std::string& path) {
  if (path.empty()) return unreadable(path, "its name is empty");
  if (path == "-") {
    return unreadable(path, "it does not exist",
                      "standard input is /dev/stdin");
  }
  struct stat link = {};
  if (::lstat(path.c_str(), &link) == 0) {
    return unreadable(path, "it is a link to a file that does not exist");
  }
  return unreadable(path, "it does not exist");
}

tl::unexpected<Error> failed(const std::string& path, int number) {
  if (number == ENOENT) return no_such_file(path);
  return unreadable(path, std::generic_category().message(number));
}

// Names the kind of a path that is not a finite stream of bytes; null for a
// stream.
const char* what_else(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device";
  if (S_ISSOCK(mode)) return "it is a socket";
  return nullptr;
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path, Deadline deadline) {
  // The kind is also checked before the open, because opening a device may act
  // on it.
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return failed(path, errno);
  const auto refused = [&]() -> const char* {
    return what_else(status.st_mode);
  };
  if (const char* what = refused()) {
    return unreadable(path, what, "give a file or a pipe");
  }
  // Opening a fifo without a writer would block without end.
  const int waits = deadline ? O_NONBLOCK : 0;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | waits);
  if (descriptor < 0) return failed(path, errno);
  InputFile file(path, descriptor, deadline);
  if (::fstat(descriptor, &status) != 0) return failed(path, errno);
  if (const char* what = refused()) {
    return unreadable(path, what, "give a file or a pipe");
  }
  file.plain_ = S_ISREG(status.st_mode);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      plain_(other.plain_),
      deadline_(other.deadline_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(plain_, other.plain_);
  std::swap(deadline_, other.deadline_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> InputFile::wait() const {
  using std::chrono::milliseconds;
  constexpr milliseconds kLongest = std::chrono::hours(1);
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(
        *deadline_ - std::chrono::steady_clock::now());
    pollfd of = {descriptor_, POLLIN, 0};
    const auto shortest = std::clamp(left, milliseconds(0), kLongest);
    const int ready = ::poll(&of, 1, static_cast<int>(shortest.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return failed(path_, errno);
    if (ready == 0 && left <= kLongest) {
      return fail(Error{ErrorCode::kStopped,
                        "time ran out before all of the file had come",
                        path_,
                        {},
                        "leave it more time, or save it to a file first"});
    }
  }
}

Result<std::size_t> InputFile::read(char* into, std::size_t size) {
  for (;;) {
    if (deadline_ && !plain_) SP_CHECK(wait());
    const ssize_t got = ::read(descriptor_, into, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN) return failed(path_, errno);
  }
}

Result<std::string> InputFile::read_all(std::int64_t limit) {
  std::string out;
  std::string block(std::size_t{1} << 18, '\0');
  for (;;) {
    SP_ASSIGN(const std::size_t got, read(block.data(), block.size()));
    if (got == 0) return out;
    out.append(block, 0, got);
    if (static_cast<std::int64_t>(out.size()) > limit) {
      return fail(too_large(limit).at(path_));
    }
  }
}

Result<std::string> read_file(const std::string& path, std::int64_t limit,
                              Deadline deadline) {
  SP_ASSIGN(InputFile file, InputFile::open(path, deadline));
  return file.read_all(limit);
}

}  // namespace shardprop
