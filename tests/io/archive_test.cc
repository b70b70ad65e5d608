#include <doctest/doctest.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include "io/program_fixture.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

using Records = std::vector<std::pair<std::string, std::string>>;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder that goes away with the test.
struct Scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("shardprop_archive_test_" + std::to_string(::getpid()));
  Scratch() { std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

std::string zipped(const Records& records, bool compress = false) {
  const Scratch scratch;
  const std::string path = (scratch.path / "made.zip").string();
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  REQUIRE(archive != nullptr);
  for (const auto& [name, text] : records) {
    zip_source_t* source =
        zip_source_buffer(archive, text.data(), text.size(), 0);
    const zip_int64_t index =
        zip_file_add(archive, name.c_str(), source, ZIP_FL_OVERWRITE);
    REQUIRE(index >= 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  REQUIRE(zip_close(archive) == 0);
  return read_file(path);
}

std::string gzipped(const std::string& text) {
  z_stream stream = {};
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9,
                       Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

ErrorCode code_of(const std::string& bytes, const LoadOptions& options = {}) {
  const auto graph = read_graph(bytes, "test", test_library(), options);
  REQUIRE_FALSE(graph);
  return graph.error().code;
}

std::uint64_t hash_of(const std::string& bytes,
                      const LoadOptions& options = {}) {
  const auto graph = read_graph(bytes, "test", test_library(), options);
  if (!graph) FAIL(to_string(graph.error()));
  return graph->hash();
}

}  // namespace

TEST_CASE("the graph is the same in every format") {
  const std::string json = program().dump();
  const std::uint64_t hash = hash_of(json);
  CHECK(hash_of(gzipped(json)) == hash);
  CHECK(hash_of(gzipped(json.substr(0, 100)) + gzipped(json.substr(100))) ==
        hash);
  CHECK(hash_of(gzipped(json) + std::string(512, '\0')) == hash);
  CHECK(hash_of(zipped({{"net/archive_format", "pt2"},
                        {"net/models/model.json", json}})) == hash);
  CHECK(hash_of(zipped({{"net/models/other.json", json}}, true)) == hash);
  CHECK(hash_of(zipped({{"serialized_exported_program.json", json},
                        {"version", "8.7"}})) == hash);
  CHECK(hash_of(zipped({{"root/serialized_exported_program.json", json}})) ==
        hash);
}

TEST_CASE("of several programs the one named, or `model`") {
  Json other = program();
  other["graph_module"]["graph"]["nodes"][2]["name"] = "act";
  const std::string a = program().dump();
  const std::string b = other.dump();
  const std::string both =
      zipped({{"r/models/model.json", a}, {"r/models/b.json", b}});
  CHECK(hash_of(both) == hash_of(a));
  LoadOptions options;
  options.program = "b";
  CHECK(hash_of(both, options) == hash_of(b));
  options.program = "c";
  CHECK(code_of(both, options) == ErrorCode::kNoProgram);
  CHECK(code_of(zipped({{"r/models/a.json", a}, {"r/models/b.json", b}})) ==
        ErrorCode::kSeveralPrograms);
}

TEST_CASE("names of one stored tensor are one value") {
  Json json = program();
  Json& module = json["graph_module"];
  module["graph"]["inputs"].push_back(tensor_argument("p_w2"));
  module["graph"]["tensor_values"]["p_w2"] = tensor_meta(7, {8, 4}, {4, 1});
  module["signature"]["input_specs"].push_back(
      {{"parameter",
        {{"arg", {{"name", "p_w2"}}}, {"parameter_name", "head.weight"}}}});
  const Json stored = {
      {"config",
       {{"fc.weight", {{"path_name", "weight_0"}, {"is_param", true}}},
        {"head.weight", {{"path_name", "weight_0"}, {"is_param", true}}},
        {"tied.weight", {{"path_name", "weight_0"}, {"is_param", true}}}}}};
  const auto graph = read_graph(
      zipped({{"r/models/model.json", json.dump()},
              {"r/data/weights/model_weights_config.json", stored.dump()}}),
      "test", test_library());
  REQUIRE(graph);
  const Value& fc = graph->value(*graph->find_value("fc.weight"));
  const Value& head = graph->value(*graph->find_value("head.weight"));
  CHECK(fc.id != head.id);
  CHECK(fc.buffer == head.buffer);
  CHECK(fc.aliases == std::vector<std::string>{"tied.weight"});
  CHECK(graph->find_value("tied.weight") == fc.id);

  CHECK(code_of(zipped({{"r/models/model.json", json.dump()},
                        {"r/data/weights/model_weights_config.json",
                         "{\"config\": 1}"}})) == ErrorCode::kFieldType);
}

TEST_CASE("archives without a program say what they hold") {
  CHECK(code_of(zipped({{"a.txt", "x"}})) == ErrorCode::kNoProgram);
  CHECK(code_of(zipped({{"r/archive_format", "pt2"},
                        {"r/models/", ""},
                        {"r/models/.json", "{}"}})) == ErrorCode::kNoProgram);
  const auto compiled = read_graph(
      zipped({{"r/data/aotinductor/model/a.so", "x"}}), "t", test_library());
  REQUIRE_FALSE(compiled);
  CHECK(compiled.error().code == ErrorCode::kNoProgram);
  CHECK(compiled.error().notes.front().find("AOTInductor") !=
        std::string::npos);
  CHECK(code_of(zipped({{"r/models/model.json", ""}})) ==
        ErrorCode::kNoProgram);
}

TEST_CASE("damaged archives and streams are errors") {
  const std::string json = program().dump();
  const std::string zip = zipped({{"r/models/model.json", json}}, true);
  for (const double part : {0.1, 0.5, 0.9, 0.99}) {
    CAPTURE(part);
    const auto size =
        static_cast<std::size_t>(static_cast<double>(zip.size()) * part);
    CHECK(code_of(zip.substr(0, size)) == ErrorCode::kArchiveDamaged);
  }
  CHECK(code_of("PK") == ErrorCode::kArchiveDamaged);
  CHECK(code_of("PK\x03\x04 and then nothing of a zip") ==
        ErrorCode::kArchiveDamaged);
  std::string flipped = zip;
  flipped[zip.size() / 2] = static_cast<char>(~flipped[zip.size() / 2]);
  CHECK_FALSE(read_graph(flipped, "t", test_library()));

  const std::string gz = gzipped(json);
  CHECK(code_of(gz.substr(0, gz.size() / 2)) == ErrorCode::kArchiveDamaged);
  CHECK(code_of(gz.substr(0, gz.size() - 4)) == ErrorCode::kArchiveDamaged);
  CHECK(code_of("\x1f\x8b") == ErrorCode::kArchiveDamaged);
  CHECK(code_of("\x1f\x8b no gzip at all") == ErrorCode::kArchiveDamaged);
  CHECK(code_of(gz + "junk") == ErrorCode::kArchiveDamaged);
  std::string crc = gz;
  crc[gz.size() - 6] = static_cast<char>(~crc[gz.size() - 6]);
  CHECK(code_of(crc) == ErrorCode::kArchiveDamaged);
  // It says that it holds four gigabytes, for which no room is made.
  std::string size = gz;
  size.replace(gz.size() - 4, 4, "\xff\xff\xff\xff");
  CHECK(code_of(size) == ErrorCode::kArchiveDamaged);
}

TEST_CASE("the limit holds before memory is spent") {
  const std::string bomb(std::size_t{64} << 20, ' ');
  LoadOptions options;
  options.max_input_bytes = 1 << 20;
  CHECK(code_of(bomb, options) == ErrorCode::kInputTooLarge);
  CHECK(code_of(gzipped(bomb), options) == ErrorCode::kInputTooLarge);
  CHECK(code_of(zipped({{"r/models/model.json", bomb}}, true), options) ==
        ErrorCode::kInputTooLarge);
  options.max_input_bytes = static_cast<std::int64_t>(program().dump().size());
  CHECK(hash_of(program().dump(), options) == hash_of(program().dump()));
  CHECK(hash_of(gzipped(program().dump()), options) ==
        hash_of(program().dump()));
  --options.max_input_bytes;
  CHECK(code_of(gzipped(program().dump()), options) ==
        ErrorCode::kInputTooLarge);
}

TEST_CASE("files are told apart by what they hold, errors name the file") {
  const Scratch scratch;
  const auto path = scratch.path / "tiny.v1.json.gz";
  std::ofstream(path, std::ios::binary) << program().dump();
  const auto graph = load_graph(path.string(), test_library());
  REQUIRE(graph);
  CHECK(graph->name() == "tiny.v1");

  const auto absent = load_graph("no/such/file.pt2", test_library());
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kFileUnreadable);
  CHECK(absent.error().location == "no/such/file.pt2");
  CHECK(load_graph(scratch.path.string(), test_library()).error().code ==
        ErrorCode::kFileUnreadable);
  std::ofstream(path, std::ios::binary) << "{\"graph_module\": 3}";
  CHECK(load_graph(path.string(), test_library()).error().location ==
        path.string() + ": $.graph_module");
}
