// Fuzzes the notation of meshes, layouts, tensors and specs. A text that parses
// must print as text that reads back as the same value. Its redistribution to a
// replicated layout must have a plan. A text that is refused must have a
// reason.
//
// Input: a mesh, a newline, and a text that is tried as everything else.
#include "fuzz_input.h"

#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/planner.h>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)

template <class T>
void check_round_trip(std::string_view text) {
  const Result<T> read = T::parse(text);
  if (!read) return require_reason(read);
  const Result<T> again = T::parse(to_string(*read));
  require(again.has_value() && *again == *read);
}

// Small enough to look at every rank, and at every piece of every dim.
bool is_small(const TensorSpec& spec) {
  if (spec.mesh().size() > 64) return false;
  for (const std::int64_t size : spec.meta().shape()) {
    if (size > 1000) return false;
  }
  return true;
}

void check_regions(const TensorSpec& spec) {
  const Dims largest = max_local_shape(spec);
  bool reached = spec.meta().rank() == 0;
  for (std::int64_t i = 0; i < spec.mesh().size(); ++i) {
    const Coordinate at = spec.mesh().coordinate_at_index(i);
    const LocalRegion region = local_region(spec, at);
    const Dims shape = region.shape();
    require(shape ==
            local_shape(spec.layout(), spec.mesh(), spec.meta().shape(), at));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      require(shape[d] <= largest[d]);
      reached = reached || shape[d] == largest[d];
    }
  }
  require(reached);
}

// Plans the redistribution from the layout to the replicated one.
void check_redistribution(const TensorSpec& spec) {
  const Result<TensorSpec> whole = TensorSpec::create(
      spec.mesh(), Layout::replicated(spec.mesh().ndim()), spec.meta());
  require(whole.has_value());
  const auto plan = plan_redistribution(spec, *whole, default_topology());
  if (!plan) return require_reason(plan);
  require(plan->nanoseconds >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = input.find('\n');
  const std::string_view first = input.substr(0, line);
  const std::string_view rest =
      line == std::string_view::npos ? first : input.substr(line + 1);

  check_round_trip<DeviceMesh>(first);
  check_round_trip<Placement>(rest);
  check_round_trip<Layout>(rest);
  check_round_trip<TensorMeta>(rest);

  const Result<DeviceMesh> mesh = DeviceMesh::parse(first);
  const Result<TensorSpec> spec =
      TensorSpec::parse(rest, mesh ? *mesh : DeviceMesh());
  if (!spec) {
    require_reason(spec);
    return 0;
  }
  const Result<TensorSpec> again =
      TensorSpec::parse(to_string(*spec), spec->mesh());
  require(again.has_value() && *again == *spec);
  if (!is_small(*spec)) return 0;
  check_regions(*spec);
  if (spec->mesh().ndim() <= 3) check_redistribution(*spec);
  return 0;
}
