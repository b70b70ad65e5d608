#include "cli/trial_memory.h"

#include "base/memory_at_hand.h"
#include "base/quantities.h"
#include "base/saturating.h"
#include "base/try.h"

#include <shardprop/collective/local_tensor.h>
#include <shardprop/placement/local_region.h>

#include <cstdint>

namespace shardprop::cli {
namespace {

// Adds the bytes of the tensor on all ranks of the spec's mesh.
std::int64_t bytes_on_ranks(const TensorSpec& spec) {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < spec.mesh().size(); ++i) {
    std::int64_t one = item_size(spec.meta().dtype());
    for (const std::int64_t size :
         local_shape(spec.layout(), spec.mesh(), spec.meta().shape(),
                     spec.mesh().coordinate_at_index(i))) {
      one = sat_mul(one, size);
    }
    bytes = sat_add(bytes, one);
  }
  return bytes;
}

}  // namespace

Result<void> check_trial_memory(const TensorSpec& src, const TensorSpec& dst,
                                std::size_t ranks,
                                const ProgramOf& program_of) {
  // When the last rank has moved its data, each source exists three times (as
  // input and copied before and after the run), and each result once.
  SP_CHECK(
      check_fits(sat_add(sat_mul(3, bytes_on_ranks(src)), bytes_on_ranks(dst)),
                 "the tensors of all ranks"));
  SP_ASSIGN(const RedistributeProgram first,
            program_of(src.mesh().rank_at_index(0)));
  const auto count = static_cast<std::int64_t>(ranks);
  const auto view = static_cast<std::int64_t>(sizeof(LocalTensor));
  return check_fits(
      sat_mul(sat_mul(count, static_cast<std::int64_t>(first.widest_call())),
              view),
      "the messages among " + count_text(count) + " ranks");
}

}  // namespace shardprop::cli
