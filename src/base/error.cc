#include <shardprop/base/error.h>

#include "base/printable.h"

#include <utility>

namespace shardprop {

std::string code_string(ErrorCode code) {
  std::string digits = std::to_string(static_cast<int>(code));
  return "SP" + std::string(4 - digits.size(), '0') + digits;
}

std::string_view code_name(ErrorCode code) {
  switch (code) {
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) \
  case ErrorCode::name:                                   \
    return #name;
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
  }
  throw InternalError("an error code outside its table");
}

std::string_view code_meaning(ErrorCode code) {
  switch (code) {
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) \
  case ErrorCode::name:                                   \
    return meaning;
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
  }
  throw InternalError("an error code outside its table");
}

int code_exit(ErrorCode code) {
  switch (code) {
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) \
  case ErrorCode::name:                                   \
    return exit;
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
  }
  throw InternalError("an error code outside its table");
}

Error Error::at(const std::string& where) && {
  location = location.empty() ? where : where + ": " + location;
  return std::move(*this);
}

Error Error::with_note(std::string note) && {
  notes.push_back(std::move(note));
  return std::move(*this);
}

Error Error::with_help(std::string text) && {
  help = std::move(text);
  return std::move(*this);
}

std::string to_string(const Error& error) {
  std::string out = "error[" + code_string(error.code) +
                    "]: " + printable(error.message) + '\n';
  const auto line = [&](std::string_view margin, std::string_view text) {
    if (!text.empty()) out.append(margin).append(printable(text)) += '\n';
  };
  line("  --> ", error.location);
  for (const std::string& note : error.notes) line("   |  ", note);
  line("   = help: ", error.help);
  return out;
}

}  // namespace shardprop
