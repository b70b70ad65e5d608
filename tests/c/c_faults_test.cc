// The C API on a machine that runs out of memory.
#include <doctest/doctest.h>
#include <shardprop.h>

#include "faults/failing_machine.h"

#include <cstdint>

namespace {

namespace failing_machine = shardprop::failing_machine;

constexpr std::int32_t kOutOfMemory = 910;

// Runs every part of the C API except planning, whose faults another test
// covers. It frees every object that it creates, even after an error. `run()`
// returns the code of the first error, or 0.
class Scenario {
 public:
  std::int32_t run() {
    shardprop_mesh* mesh = nullptr;
    shardprop_topology* topology = nullptr;
    shardprop_library* library = nullptr;
    shardprop_library* mine = nullptr;
    shardprop_propagator* propagator = nullptr;
    shardprop_cache* cache = nullptr;
    shardprop_spec* a = nullptr;
    shardprop_spec* b = nullptr;
    shardprop_call* call = nullptr;
    shardprop_sharding* first = nullptr;
    shardprop_sharding* second = nullptr;
    shardprop_redistribution* plan = nullptr;
    shardprop_spec* out = nullptr;
    char* text = nullptr;
    const bool done =
        ok(shardprop_mesh_parse("2,2", &mesh)) &&
        ok(shardprop_topology_find(nullptr, &topology)) &&
        ok(shardprop_library_standard(&library)) &&
        ok(shardprop_library_add(library,
                                 "mine::glu(Tensor x, Tensor g) -> Tensor",
                                 nullptr, "pointwise.promoted", &mine)) &&
        ok(shardprop_propagator_create(mesh, topology, mine, 0, &propagator)) &&
        ok(shardprop_cache_create(propagator, 64, 0, &cache)) &&
        ok(shardprop_spec_parse("f32[16,8] S(0),R", mesh, &a)) &&
        ok(shardprop_spec_parse("f32[8,4] R,S(0)", mesh, &b)) &&
        ok(shardprop_call_create(mine, "aten.mm.default", &call)) &&
        ok(shardprop_call_tensor(call, nullptr, a)) &&
        ok(shardprop_call_tensor(call, nullptr, b)) &&
        ok(shardprop_propagate(propagator, call, &first)) &&
        ok(shardprop_cache_propagate(cache, call, &second)) &&
        ok(shardprop_cache_set_library(cache, library)) &&
        ok(shardprop_candidates(propagator, call, &text)) &&
        ok(shardprop_redistribution_plan(a, a, topology, &plan)) &&
        ok(shardprop_sharding_output(second, 0, &out));
    // An output is there exactly when its call went well.
    CHECK(done == (out != nullptr));
    CHECK((code_ == 0) == done);
    shardprop_text_free(text);
    shardprop_spec_free(out);
    shardprop_redistribution_free(plan);
    shardprop_sharding_free(second);
    shardprop_sharding_free(first);
    shardprop_call_free(call);
    shardprop_spec_free(b);
    shardprop_spec_free(a);
    shardprop_cache_free(cache);
    shardprop_propagator_free(propagator);
    shardprop_library_free(mine);
    shardprop_library_free(library);
    shardprop_topology_free(topology);
    shardprop_mesh_free(mesh);
    return code_;
  }

 private:
  bool ok(shardprop_error* error) {
    if (error == nullptr) return true;
    code_ = shardprop_error_code(error);
    CHECK(shardprop_error_message(error)[0] != '\0');
    CHECK(shardprop_error_help(error)[0] != '\0');
    shardprop_error_free(error);
    return false;
  }

  std::int32_t code_ = 0;
};

// The call keeps its arguments, no matter which allocation fails.
TEST_CASE("memory that fails leaves a call as it was") {
  failing_machine::heal();
  shardprop_mesh* mesh = nullptr;
  shardprop_topology* topology = nullptr;
  shardprop_library* library = nullptr;
  shardprop_propagator* propagator = nullptr;
  REQUIRE(shardprop_mesh_parse("2", &mesh) == nullptr);
  REQUIRE(shardprop_topology_find(nullptr, &topology) == nullptr);
  REQUIRE(shardprop_library_standard(&library) == nullptr);
  REQUIRE(shardprop_propagator_create(mesh, topology, library,
                                      SHARDPROP_MOVES_ALLOWED,
                                      &propagator) == nullptr);
  shardprop_spec* x = nullptr;
  // More dims than are stored without an allocation.
  REQUIRE(shardprop_spec_parse("f32[2,1,1,1,1,1,1,1,1,1] S(0)", mesh, &x) ==
          nullptr);
  const shardprop_spec* specs[] = {x, x, x};
  int refused = 0;
  for (std::int64_t i = 0;; ++i) {
    CAPTURE(i);
    shardprop_call* call = nullptr;
    REQUIRE(shardprop_call_create(library, "aten.cat.default", &call) ==
            nullptr);
    failing_machine::memory_after(i);
    shardprop_error* error = shardprop_call_tensors(call, "tensors", specs, 3);
    failing_machine::heal();
    const bool failed = error != nullptr;
    if (failed) CHECK(shardprop_error_code(error) == kOutOfMemory);
    shardprop_error_free(error);
    if (failed) {
      ++refused;
      REQUIRE(shardprop_call_tensors(call, "tensors", specs, 3) == nullptr);
    }
    shardprop_sharding* sharding = nullptr;
    CHECK(shardprop_propagate(propagator, call, &sharding) == nullptr);
    CHECK(shardprop_sharding_input_count(sharding) == 3);
    shardprop_sharding_free(sharding);
    shardprop_call_free(call);
    if (!failed) break;
  }
  CHECK(refused > 3);
  shardprop_spec_free(x);
  shardprop_propagator_free(propagator);
  shardprop_library_free(library);
  shardprop_topology_free(topology);
  shardprop_mesh_free(mesh);
}

TEST_CASE("a thousand allocations that fail, through the C API") {
  failing_machine::heal();
  REQUIRE(Scenario().run() == 0);
  failing_machine::heal();
  REQUIRE(Scenario().run() == 0);
  const std::int64_t needed = failing_machine::allocations();
  REQUIRE(needed > 1000);
  int refused = 0;
  constexpr std::int64_t kTries = 1000;
  for (std::int64_t i = 0; i < kTries; ++i) {
    CAPTURE(i);
    failing_machine::memory_after(needed * i / kTries);
    const std::int32_t code = Scenario().run();
    failing_machine::heal();
    CHECK((code == 0 || code == kOutOfMemory));
    refused += code == 0 ? 0 : 1;
  }
  CHECK(refused > kTries * 9 / 10);
}

}  // namespace
