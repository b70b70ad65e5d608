#include <shardprop/kernels/cpu.h>
#include <shardprop/kernels/cuda.h>

#include <array>

#include "check.h"
#include "engine.h"

namespace shardprop::kernels::testing {
namespace {

class HostEngine : public Engine {
 public:
  std::byte* enter(Arena& arena) override { return arena.bytes.data(); }
  void leave(Arena&) override {}
};

class CpuEngine : public HostEngine {
 public:
  explicit CpuEngine(ThreadPool* pool) : options_{pool} {}
  std::string name() const override {
    return options_.pool == nullptr ? "cpu" : "cpu with threads";
  }
  SHARDPROP_ENGINE_OPS(cpu, options_)

 private:
  cpu::CpuOptions options_;
};

class EmulatedEngine : public HostEngine {
 public:
  std::string name() const override { return "emulated cuda"; }
  SHARDPROP_ENGINE_OPS(cuda, cuda::CudaOptions{})
};

}  // namespace

std::span<Engine* const> engines() {
  static ThreadPool pool(3);
  static CpuEngine cpu(nullptr);
  static CpuEngine threads(&pool);
  static EmulatedEngine emulated;
  static const std::array<Engine*, 3> all = {&cpu, &threads, &emulated};
  return all;
}

}  // namespace shardprop::kernels::testing

int main(int argc, char** argv) { return check::run(argc > 1 ? argv[1] : ""); }
