#include "cli/output.h"

#include "base/parse_int.h"
#include "base/try.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace shardprop::cli {
namespace {

// Returns 0, or the errno of the failed write.
int write_all(int descriptor, std::string_view data) {
  while (!data.empty()) {
    const ssize_t wrote = ::write(descriptor, data.data(), data.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {
      // The pipe is non-blocking, so the write waits until the pipe accepts
      // data.
      pollfd ready{descriptor, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Descriptor closes its file descriptor in the destructor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return descriptor_; }
  // Some file systems report a full disk only here.
  int close() {
    return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
  }

 private:
  int descriptor_;
};

int write_in_place(const std::string& path, std::string_view data) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return errno;
  if (const int number = write_all(file.get(), data)) return number;
  return file.close();
}

// Creates a file of a free name in `folder`, and sets `path` to it. The kernel
// applies the process's mask to `mode`. The mask is never read: reading it
// would clear it for a moment, in which another thread may create a file.
int create_in(const std::filesystem::path& folder, mode_t mode,
              std::string& path) {
  constexpr int kMostNames = 10'000;
  const std::string stem = ".shardprop-" + std::to_string(::getpid()) + "-";
  for (int i = 0; i < kMostNames; ++i) {
    path = (folder / (stem + std::to_string(i))).string();
    const int file =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

int write_beside(const std::filesystem::path& target, const struct stat* older,
                 std::string_view data) {
  std::string beside;
  // Other users cannot read the file before it has the older file's mode.
  Descriptor file(
      create_in(target.parent_path(), older == nullptr ? 0666 : 0600, beside));
  if (file.get() < 0) return errno;
  int number = write_all(file.get(), data);
  if (number == 0 && older != nullptr &&
      ::fchmod(file.get(), older->st_mode & 07777) != 0) {
    number = errno;
  }
  const int closed = file.close();
  if (number == 0) number = closed;
  if (number == 0 && ::rename(beside.c_str(), target.c_str()) != 0) {
    number = errno;
  }
  if (number != 0) ::unlink(beside.c_str());
  return number;
}

// Resolves links to the file that they name, which need not exist yet. The
// links are kept.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code none;
  for (int i = 0; i < kMostLinks; ++i) {
    const auto next = std::filesystem::read_symlink(path, none);
    if (none) break;
    path = path.parent_path() / next;
  }
  return path;
}

// Whether a file written to `path` takes the place of the plain file that
// `input` names: they are one file, or one name in one folder.
bool replaces(const std::filesystem::path& path,
              const std::filesystem::path& input) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(input, missing)) return false;
  if (std::filesystem::equivalent(path, input, missing)) return true;
  const auto folder_of = [](const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
  };
  return path.filename() == input.filename() &&
         std::filesystem::equivalent(folder_of(path), folder_of(input),
                                     missing);
}

}  // namespace

void prepare_output() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free descriptor, which is this one.
    if (::fcntl(standard, F_GETFD) < 0) {
      static_cast<void>(::open("/dev/null", O_RDONLY));
    }
  }
}

DescriptorBuffer::DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
  setp(block_.data(), block_.data() + block_.size());
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return 0;
  return sputc(traits_type::to_char_type(c));
}

int DescriptorBuffer::sync() {
  const std::string_view data(pbase(),
                              static_cast<std::size_t>(pptr() - pbase()));
  if (error_ == 0) error_ = write_all(descriptor_, data);
  setp(block_.data(), block_.data() + block_.size());
  return error_ == 0 ? 0 : -1;
}

Error cannot_write(const std::string& where, int number) {
  std::string help = "check that the folder exists and can be written to";
  if (number == EPIPE) {
    help = "whoever reads the pipe ended before all was written";
  } else if (number == ENOSPC || number == EDQUOT || number == EFBIG) {
    help = "make room, or write elsewhere";
  } else if (number == EISDIR) {
    help = "name a file";
  } else if (number == EBADF) {
    help = "it is closed; write to a file with -o FILE";
  }
  return {ErrorCode::kCannotWriteOutput,
          "the output cannot be written: " +
              std::generic_category().message(number),
          where,
          {},
          std::move(help)};
}

std::optional<int> descriptor_named(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = parse_int(path.substr(folder.size()));
    if (number && *number >= 0 && *number <= INT_MAX) {
      return static_cast<int>(*number);
    }
  }
  return std::nullopt;
}

Result<void> check_target(const std::string& path) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  int number = 0;
  if (const std::optional<int> descriptor = descriptor_named(path)) {
    const int flags = ::fcntl(*descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) number = EBADF;
  } else if (path.empty()) {
    number = ENOENT;
  } else if (exists && S_ISDIR(status.st_mode)) {
    number = EISDIR;
  } else if (exists && !S_ISREG(status.st_mode)) {
    if (::access(path.c_str(), W_OK) != 0) number = errno;
  } else {
    const std::filesystem::path folder = behind_links(path).parent_path();
    const std::string name = folder.empty() ? "." : folder.string();
    if (::access(name.c_str(), W_OK | X_OK) != 0) number = errno;
  }
  if (number != 0) return fail(cannot_write("-o " + path, number));
  return {};
}

Result<void> check_no_input(const std::string& path,
                            std::span<const NamedInput> inputs) {
  for (const NamedInput& input : inputs) {
    if (!replaces(path, input.path)) continue;
    return fail(Error{ErrorCode::kCannotWriteOutput,
                      "the output would replace an input of this command",
                      "-o " + path,
                      {"input: " + input.place},
                      "write to another place"});
  }
  return {};
}

Result<void> write_whole(const std::string& path, std::string_view data) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  int number = 0;
  if (exists && S_ISDIR(status.st_mode)) {
    number = EISDIR;
  } else if (exists && !S_ISREG(status.st_mode)) {
    number = write_in_place(path, data);
  } else {
    number = write_beside(behind_links(path), exists ? &status : nullptr, data);
  }
  if (number != 0) return fail(cannot_write("-o " + path, number));
  return {};
}

}  // namespace shardprop::cli
