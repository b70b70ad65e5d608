#include "io/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace shardprop {

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

Error too_large(std::int64_t limit) {
  return Error{ErrorCode::kInputTooLarge,
               "the file holds more than " + std::to_string(limit) + " bytes",
               {},
               {},
               "raise --max-input if it is meant to be this large"};
}

namespace {

// Owns zlib's state for one stream.
class Inflater {
 public:
  Inflater() {
    constexpr int kGzipOnly = 15 + 16;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

tl::unexpected<Error> damaged(const char* why) {
  return fail(ErrorCode::kArchiveDamaged,
              std::string("the gzip stream is damaged: ") + why,
              "copy or download the file again");
}

// Returns the bytes to reserve at once, so that the output is not copied as it
// grows. The last 4 bytes of the stream have the size of its last member,
// modulo 2^32. The bound is `kMostPacked`, the highest compression ratio of
// programs.
std::size_t room_for(std::string_view bytes, std::int64_t limit) {
  constexpr std::size_t kTold = 4;
  constexpr std::size_t kMostPacked = 64;
  if (bytes.size() < kTold) return 0;
  std::size_t told = 0;
  for (std::size_t i = 0; i < kTold; ++i) {
    const auto byte =
        static_cast<unsigned char>(bytes[bytes.size() - kTold + i]);
    told |= std::size_t{byte} << (8 * i);
  }
  return std::min({told, kMostPacked * bytes.size(),
                   static_cast<std::size_t>(std::max<std::int64_t>(limit, 0))});
}

}  // namespace

Result<std::string> inflate_gzip(std::string_view bytes, std::int64_t limit) {
  Inflater inflater;
  if (!inflater.ready()) return damaged("zlib does not start");
  z_stream& stream = inflater.stream();
  std::string out;
  out.reserve(room_for(bytes, limit));
  std::vector<char> block(1 << 16);
  std::size_t at = 0;
  bool ended = false;
  while (!ended || at < bytes.size()) {
    if (ended) {
      // Zeroes after the end are padding; other bytes must be another member.
      if (!is_gzip(bytes.substr(at))) {
        const std::string_view rest = bytes.substr(at);
        if (rest.find_first_not_of('\0') == std::string_view::npos) break;
        return damaged("more follows after its end");
      }
      inflateReset(&stream);
      ended = false;
    }
    const std::size_t fed = std::min<std::size_t>(
        bytes.size() - at, std::numeric_limits<uInt>::max());
    // zlib does not write through next_in; its type lacks const for historical
    // reasons.
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
    stream.avail_in = static_cast<uInt>(fed);
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = block.size() - stream.avail_out;
    at += fed - stream.avail_in;
    if (static_cast<std::int64_t>(out.size() + made) > limit) {
      return fail(too_large(limit));
    }
    out.append(block.data(), made);
    if (status == Z_STREAM_END) {
      ended = true;
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && made == 0 && at == bytes.size())) {
      return damaged("it ends too early");
    } else if (status != Z_OK) {
      return damaged(stream.msg == nullptr ? "it is not a gzip stream"
                                           : stream.msg);
    }
  }
  return out;
}

}  // namespace shardprop
