#include "collective/group_key.h"

#include <shardprop/base/hash.h>

namespace shardprop::collective {

std::uint64_t wire_key(const Group& group) {
  std::uint64_t key = hash_mix(static_cast<std::uint64_t>(group.num_lists()),
                               static_cast<std::uint64_t>(group.size()));
  for (std::int64_t list = 0; list < group.num_lists(); ++list) {
    for (std::int64_t i = 0; i < group.size(); ++i) {
      key = hash_mix(key, static_cast<std::uint64_t>(group.rank(list, i)));
    }
  }
  return key;
}

}  // namespace shardprop::collective
