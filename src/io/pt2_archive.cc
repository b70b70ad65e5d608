#include "io/pt2_archive.h"

#include "base/try.h"
#include "io/inflate.h"
#include "io/json_reader.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop::pt2 {
namespace {

struct ZipClose {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Zip = std::unique_ptr<zip_t, ZipClose>;

struct ZipFileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipFile = std::unique_ptr<zip_file_t, ZipFileClose>;

constexpr std::string_view kModels = "models/";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kLegacy = "serialized_exported_program.json";

tl::unexpected<Error> damaged(const std::string& why) {
  return fail(ErrorCode::kArchiveDamaged, "the archive is damaged: " + why,
              "copy or download the file again");
}

// Converts an error of libzip: the file is damaged, or written in a way that
// this reader does not support.
tl::unexpected<Error> unreadable_record(const std::string& name,
                                        zip_error_t* error) {
  const int code = zip_error_code_zip(error);
  if (code == ZIP_ER_NOPASSWD || code == ZIP_ER_WRONGPASSWD) {
    return fail(ErrorCode::kArchiveDamaged, "the archive is encrypted: " + name,
                "write it again without a password");
  }
  if (code == ZIP_ER_COMPNOTSUPP || code == ZIP_ER_ENCRNOTSUPP ||
      code == ZIP_ER_OPNOTSUPP) {
    return fail(ErrorCode::kArchiveDamaged,
                "the archive is written in a way that cannot be read: " + name +
                    ": " + zip_error_strerror(error),
                "write it with torch.export.save(program, path)");
  }
  return damaged(name + ": " + zip_error_strerror(error));
}

std::string message_of(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Result<std::string> read_record(zip_t* archive, const std::string& name,
                                std::int64_t limit) {
  const ZipFile file(zip_fopen(archive, name.c_str(), ZIP_FL_ENC_RAW));
  if (file == nullptr) {
    return unreadable_record(name, zip_get_error(archive));
  }
  // The length that the record declares is not trusted.
  std::string out;
  std::array<char, 1 << 16> block;
  while (true) {
    const zip_int64_t got = zip_fread(file.get(), block.data(), block.size());
    if (got < 0) {
      return unreadable_record(name, zip_file_get_error(file.get()));
    }
    if (got == 0) return out;
    if (static_cast<std::int64_t>(out.size()) + got > limit) {
      return fail(too_large(limit).at(name));
    }
    out.append(block.data(), static_cast<std::size_t>(got));
  }
}

std::vector<std::string> record_names(zip_t* archive) {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name =
        zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

// Readers differ in the record that they choose if two records have one name.
Result<void> check_once(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(ErrorCode::kArchiveDamaged,
              "the archive holds " + twice->substr(0, 80) + " twice",
              "write it with torch.export.save(program, path)");
}

// Returns the folder that contains all records; torch names it after the file.
std::string common_root(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::size_t slash = names.front().find('/');
  if (slash == std::string::npos) return {};
  const std::string root = names.front().substr(0, slash + 1);
  const bool common =
      std::all_of(names.begin(), names.end(),
                  [&](const std::string& n) { return n.starts_with(root); });
  return common ? root : std::string();
}

tl::unexpected<Error> no_program(const std::vector<std::string>& names) {
  const bool compiled =
      std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.find("data/aotinductor/") != std::string::npos;
      });
  Error error{ErrorCode::kNoProgram,
              "the archive holds no exported program",
              {},
              {},
              "write it with torch.export.save(program, path)"};
  if (compiled) {
    error.notes.emplace_back("it is a compiled AOTInductor package");
  }
  // torch.export.save writes the weights first. They remain in the file if it
  // cannot write the program (flat_apply, flex_attention).
  const bool half_saved =
      std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.find("data/weights/") != std::string::npos;
      });
  if (half_saved) {
    error.notes.emplace_back(
        "it holds weights: torch.export.save failed after them");
    error.help =
        "save program.run_decompositions(), or use tools/export_model.py";
  }
  constexpr std::size_t kMostShown = 5;
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    error.notes.push_back("it holds " + names[i].substr(0, 80));
  }
  return fail(std::move(error));
}

// Returns the record of the requested program.
Result<std::string> find_program(const std::vector<std::string>& names,
                                 const std::string& root,
                                 const std::string& wanted) {
  const std::string folder = root + std::string(kModels);
  std::vector<std::string> found;  // without folder and ending
  for (const std::string& name : names) {
    if (name == root + std::string(kLegacy)) return name;
    if (name.starts_with(folder) && name.ends_with(kJson) &&
        name.size() > folder.size() + kJson.size()) {
      found.push_back(name.substr(folder.size(),
                                  name.size() - folder.size() - kJson.size()));
    }
  }
  if (found.empty()) return no_program(names);
  const auto has = [&](const std::string& name) {
    return std::find(found.begin(), found.end(), name) != found.end();
  };
  std::string chosen = wanted;
  if (wanted.empty()) {
    chosen = found.size() == 1 ? found.front() : std::string("model");
  }
  if (has(chosen)) return folder + chosen + std::string(kJson);
  constexpr std::size_t kMostListed = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(found.size(), kMostListed); ++i) {
    list += list.empty() ? "`" : ", `";
    list.append(found[i], 0, 80);
    list += '`';
  }
  if (found.size() > kMostListed) {
    list += " and " + std::to_string(found.size() - kMostListed) + " more";
  }
  if (!wanted.empty()) {
    return fail(ErrorCode::kNoProgram,
                "the archive holds no program named `" + wanted + "`",
                "it holds " + list);
  }
  return fail(ErrorCode::kSeveralPrograms,
              "the archive holds several programs, none of them named `model`",
              "choose with --program one of " + list);
}

// {"config": {"fc.weight": {"path_name": "weight_0", ...}, ...}}
Result<StoredTensors> read_stored(const std::string& text) {
  StoredTensors stored;
  StringArena arena;
  JsonReader json(text, arena);
  json.object([&](std::string_view section) {
    if (section != "config") return json.skip();
    json.members([&](std::string_view name) {
      json.object([&](std::string_view key) {
        if (key != "path_name") return json.skip();
        stored.emplace_back(std::string(name), std::string(json.string()));
      });
    });
  });
  json.end();
  if (json.error()) return fail(*json.error());
  return stored;
}

// Returns the record of the archive that lists the stored tensors of the
// program.
std::optional<std::string> stored_record(const std::vector<std::string>& names,
                                         const std::string& root,
                                         const std::string& program) {
  const std::size_t slash = program.rfind('/');
  const std::string stem =
      program.substr(slash + 1, program.size() - slash - 1 - kJson.size());
  const std::string prefix = root + "data/weights/" + stem;
  for (const char* ending :
       {"_weights_config.json", "_model_param_config.json"}) {
    std::string name = prefix;
    name += ending;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return name;
    }
  }
  return std::nullopt;
}

Result<ArchivedProgram> read_zip(zip_t* archive, const std::string& program,
                                 std::int64_t limit) {
  const std::vector<std::string> names = record_names(archive);
  SP_CHECK(check_once(names));
  const std::string root = common_root(names);
  SP_ASSIGN(const std::string record, find_program(names, root, program));
  ArchivedProgram out;
  SP_ASSIGN(out.json, read_record(archive, record, limit));
  if (const auto list = stored_record(names, root, record)) {
    SP_ASSIGN(const std::string text, read_record(archive, *list, limit));
    auto stored = read_stored(text);
    if (!stored) return fail(std::move(stored).error().at(*list));
    out.stored = *std::move(stored);
  }
  return out;
}

}  // namespace

bool is_zip(std::string_view bytes) { return bytes.starts_with("PK"); }

Result<ArchivedProgram> read_archive_file(const std::string& path,
                                          const std::string& program,
                                          std::int64_t limit) {
  int code = 0;
  const Zip archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    return damaged(message_of(error));
  }
  return read_zip(archive.get(), program, limit);
}

Result<ArchivedProgram> read_archive(std::string_view bytes,
                                     const std::string& program,
                                     std::int64_t limit) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source =
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return damaged(message_of(error));
  const Zip archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    return damaged(message_of(error));
  }
  return read_zip(archive.get(), program, limit);
}

}  // namespace shardprop::pt2
