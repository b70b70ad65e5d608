// `NcclApi` is a table of the functions of NCCL that this module calls. It is
// filled from the library at run time, or by a test.
//
// Types and values are those of nccl.h 2.19, which every later NCCL keeps.
#pragma once

#include <shardprop/base/result.h>

#include <climits>
#include <cstddef>
#include <string>

namespace shardprop::nccl {

using Comm = void*;    // ncclComm_t
using Stream = void*;  // cudaStream_t

struct UniqueId {
  char internal[128];
};

// ncclConfig_t of 2.19. The library reads only the first `size` bytes.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21900;
  int blocking = INT_MIN;
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

enum Code : int { kSuccess = 0, kRemoteError = 6, kInProgress = 7 };

constexpr int kNcclUint8 = 1;  // ncclUint8 of ncclDataType_t

struct NcclApi {
  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(UniqueId* id) = nullptr;
  int (*comm_init_rank_config)(Comm* comm, int ranks, UniqueId id, int rank,
                               Config* config) = nullptr;
  int (*comm_get_async_error)(Comm comm, int* state) = nullptr;
  int (*comm_abort)(Comm comm) = nullptr;
  int (*comm_destroy)(Comm comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void* from, std::size_t count, int type, int peer,
              Comm comm, Stream stream) = nullptr;
  int (*recv)(void* into, std::size_t count, int type, int peer, Comm comm,
              Stream stream) = nullptr;
  int (*all_reduce)(const void* from, void* into, std::size_t count, int type,
                    int op, Comm comm, Stream stream) = nullptr;
  int (*reduce_scatter)(const void* from, void* into, std::size_t count,
                        int type, int op, Comm comm, Stream stream) = nullptr;
  int (*all_gather)(const void* from, void* into, std::size_t count, int type,
                    Comm comm, Stream stream) = nullptr;
  int (*broadcast)(const void* from, void* into, std::size_t count, int type,
                   int root, Comm comm, Stream stream) = nullptr;
  const char* (*get_error_string)(int code) = nullptr;
};

// Opens the library; it stays open. Error: kEngineMissing.
Result<NcclApi> load_nccl(const std::string& library);

// Converts a code to a result. kInProgress is a success. Error: kEngine.
Result<void> checked(const NcclApi& api, int code, const char* call);

}  // namespace shardprop::nccl
