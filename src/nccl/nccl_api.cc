#include "nccl/nccl_api.h"

#include "base/try.h"

#include <dlfcn.h>

namespace shardprop::nccl {
namespace {

constexpr int kOldest = 21900;

template <class F>
bool find(void* library, const char* name, F*& into) {
  into = reinterpret_cast<F*>(dlsym(library, name));
  return into != nullptr;
}

}  // namespace

Result<NcclApi> load_nccl(const std::string& library) {
  const std::string name = library.empty() ? "libnccl.so.2" : library;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail(ErrorCode::kEngineMissing,
                "NCCL cannot be opened: " +
                    std::string(why == nullptr ? name.c_str() : why),
                "install NCCL 2.19 or later, or name its file");
  }
  NcclApi api;
  const bool whole =
      find(handle, "ncclGetVersion", api.get_version) &&
      find(handle, "ncclGetUniqueId", api.get_unique_id) &&
      find(handle, "ncclCommInitRankConfig", api.comm_init_rank_config) &&
      find(handle, "ncclCommGetAsyncError", api.comm_get_async_error) &&
      find(handle, "ncclCommAbort", api.comm_abort) &&
      find(handle, "ncclCommDestroy", api.comm_destroy) &&
      find(handle, "ncclGroupStart", api.group_start) &&
      find(handle, "ncclGroupEnd", api.group_end) &&
      find(handle, "ncclSend", api.send) &&
      find(handle, "ncclRecv", api.recv) &&
      find(handle, "ncclAllReduce", api.all_reduce) &&
      find(handle, "ncclReduceScatter", api.reduce_scatter) &&
      find(handle, "ncclAllGather", api.all_gather) &&
      find(handle, "ncclBroadcast", api.broadcast) &&
      find(handle, "ncclGetErrorString", api.get_error_string);
  int version = 0;
  if (!whole || api.get_version(&version) != kSuccess || version < kOldest) {
    return fail(
        ErrorCode::kEngineMissing,
        name + " is NCCL " +
            (version == 0 ? "of a version unknown" : std::to_string(version)) +
            ", older than 2.19");
  }
  return api;
}

Result<void> checked(const NcclApi& api, int code, const char* call) {
  if (code == kSuccess || code == kInProgress) return {};
  return fail(ErrorCode::kEngine,
              std::string(call) + ": " + api.get_error_string(code));
}

}  // namespace shardprop::nccl
