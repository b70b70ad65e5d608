#include "c/boundary.h"

#include "base/guard.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace shardprop::c {
namespace {

// The handle of the error that no memory is left. Freeing it does nothing.
constexpr std::uintptr_t kOutOfMemoryHandle = 2;

shardprop_error* out_of_memory() {
  return reinterpret_cast<shardprop_error*>(kOutOfMemoryHandle);  // NOLINT
}
bool is_out_of_memory(const shardprop_error* error) {
  return reinterpret_cast<std::uintptr_t>(error) == kOutOfMemoryHandle;
}

constexpr const char* kOutOfMemoryMessage = "no memory is left";
constexpr const char* kOutOfMemoryHelp =
    "free memory, raise its limit, or ask for less";

}  // namespace

shardprop_error* error_of(const Error& error) noexcept {
  try {
    shardprop_error* out = nullptr;
    if (!give(&out, {error, to_string(error)})) return out_of_memory();
    return out;
  } catch (...) {
    return out_of_memory();
  }
}

shardprop_error* error_of(const std::exception_ptr& thrown) noexcept {
  try {
    if (const auto refused = refusal(thrown)) return error_of(*refused);
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& broken) {
    try {
      return error_of(Error{
          ErrorCode::kInvalidArgument,
          std::string("an invariant of shardprop is broken: ") + broken.what(),
          {},
          {},
          "please report it with the call that led to it"});
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return out_of_memory();
  }
}

tl::unexpected<Error> bad_handle(std::string_view what) {
  return fail(ErrorCode::kInvalidArgument,
              "the handle of a " + std::string(what) +
                  " is null, freed or of another type",
              "pass one that was made and not freed");
}

Result<const char*> text_of(const char* text, std::string_view name) {
  if (text != nullptr) return text;
  return fail(ErrorCode::kInvalidArgument,
              "`" + std::string(name) + "` is null", "pass a text");
}

Result<std::size_t> index_of(std::int64_t i, std::size_t count,
                             std::string_view what) {
  if (i >= 0 && static_cast<std::uint64_t>(i) < count) {
    return static_cast<std::size_t>(i);
  }
  return fail(ErrorCode::kInvalidArgument,
              std::string(what) + " " + std::to_string(i) + " does not exist",
              "there are " + std::to_string(count) + ", counted from 0");
}

Result<std::size_t> count_of(const void* list, std::int64_t count,
                             std::string_view name) {
  if (count < 0 || count > std::int64_t{1} << 32 ||
      (count > 0 && list == nullptr)) {
    return fail(ErrorCode::kInvalidArgument,
                "`" + std::string(name) + "` is not a list of " +
                    std::to_string(count) + " elements",
                "pass as many elements as are counted");
  }
  return static_cast<std::size_t>(count);
}

Result<void> give_text(char** out, const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return {};
}

}  // namespace shardprop::c

using shardprop::c::peek;

int32_t shardprop_version(void) { return SHARDPROP_VERSION; }

int32_t shardprop_error_code(const shardprop_error* error) {
  if (shardprop::c::is_out_of_memory(error)) {
    return static_cast<int32_t>(shardprop::ErrorCode::kOutOfMemory);
  }
  const auto* found = peek(error);
  return found == nullptr ? 0 : static_cast<int32_t>(found->error.code);
}
const char* shardprop_error_message(const shardprop_error* error) {
  if (shardprop::c::is_out_of_memory(error)) {
    return shardprop::c::kOutOfMemoryMessage;
  }
  const auto* found = peek(error);
  return found == nullptr ? "" : found->error.message.c_str();
}
const char* shardprop_error_place(const shardprop_error* error) {
  const auto* found = peek(error);
  return found == nullptr ? "" : found->error.location.c_str();
}
const char* shardprop_error_help(const shardprop_error* error) {
  if (shardprop::c::is_out_of_memory(error)) {
    return shardprop::c::kOutOfMemoryHelp;
  }
  const auto* found = peek(error);
  return found == nullptr ? "" : found->error.help.c_str();
}
const char* shardprop_error_text(const shardprop_error* error) {
  if (shardprop::c::is_out_of_memory(error)) {
    return shardprop::c::kOutOfMemoryMessage;
  }
  const auto* found = peek(error);
  return found == nullptr ? "" : found->text.c_str();
}
void shardprop_error_free(shardprop_error* error) {
  shardprop::c::release(error);
}
void shardprop_text_free(char* text) { std::free(text); }
