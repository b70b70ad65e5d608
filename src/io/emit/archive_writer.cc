#include "io/emit/archive_writer.h"

#include <shardprop/base/error.h>

#include <zip.h>
#include <zlib.h>

#include <memory>

namespace shardprop::emit {
namespace {

Result<std::string> failed(const char* what) {
  return fail(ErrorCode::kOutOfMemory,
              std::string("an archive cannot be made: ") + what);
}

struct DropSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};

std::string read_all(zip_source_t* source) {
  std::string out;
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_source_stat(source, &stat) != 0 || zip_source_open(source) != 0) {
    return out;
  }
  out.resize(stat.size);
  const zip_int64_t got = zip_source_read(source, out.data(), out.size());
  zip_source_close(source);
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return out;
}

}  // namespace

Result<std::string> zip_archive(
    const std::vector<std::pair<std::string, std::string>>& records,
    std::string_view folder) {
  zip_error_t error;
  zip_error_init(&error);
  std::unique_ptr<zip_source_t, DropSource> memory(
      zip_source_buffer_create(nullptr, 0, 0, &error));
  if (!memory) return failed(zip_error_strerror(&error));
  zip_t* archive = zip_open_from_source(memory.get(), ZIP_TRUNCATE, &error);
  if (archive == nullptr) return failed(zip_error_strerror(&error));
  zip_source_keep(memory.get());  // closing the archive gives one away
  for (const auto& [name, data] : records) {
    zip_source_t* source =
        zip_source_buffer(archive, data.data(), data.size(), 0);
    const std::string path = std::string(folder) + "/" + name;
    const zip_int64_t index =
        source == nullptr
            ? -1
            : zip_file_add(archive, path.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      zip_discard(archive);
      return failed("a record cannot be added");
    }
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             ZIP_CM_STORE, 0);
    // A fixed date, so that the same program always gives the same file.
    zip_file_set_dostime(archive, static_cast<zip_uint64_t>(index), 0, 0x21, 0);
  }
  if (zip_close(archive) != 0) {
    zip_discard(archive);
    return failed("it cannot be closed");
  }
  return read_all(memory.get());
}

std::string gzip(std::string_view data) {
  constexpr int kGzip = 15 + 16;
  constexpr int kLevel = 4;  // programs are repetitive: more gains little
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());  // NOLINT
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw InternalError("gzip ended early");
  return out;
}

}  // namespace shardprop::emit
