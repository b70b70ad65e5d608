// A matrix sharded by rows becomes one sharded by columns, on four ranks that
// are threads; every rank prints what it ends with:
//
//   reshard 3,8
#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/executor.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/planner.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRanks = 4;

// Element (i, j) of the whole is 10 i + j.
void fill(const LocalTensor& rows, std::int64_t first_row) {
  auto* to = rows.data_as<std::int32_t>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    for (std::int64_t j = 0; j < rows.size(1); ++j) {
      *to++ = static_cast<std::int32_t>(10 * (first_row + i) + j);
    }
  }
}

std::string text(const LocalTensor& tensor) {
  std::string out = to_string(tensor) + ":";
  const auto* from = tensor.data_as<std::int32_t>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    out += ' ' + std::to_string(from[i]);
  }
  return out;
}

int refuse(const Error& error) {
  std::fputs(to_string(error).c_str(), stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: reshard ROWS,COLUMNS\n", stderr);
    return 2;
  }
  const Result<DeviceMesh> mesh = DeviceMesh::parse("4");
  if (!mesh) return refuse(mesh.error());
  const std::string tensor = "i32[" + std::string(argv[1]) + "] ";
  const Result<TensorSpec> src = TensorSpec::parse(tensor + "S(0)", *mesh);
  if (!src) return refuse(src.error());
  const Result<TensorSpec> dst = TensorSpec::parse(tensor + "S(1)", *mesh);
  if (!dst) return refuse(dst.error());
  const Result<RedistributePlan> plan =
      plan_redistribution(*src, *dst, default_topology());
  if (!plan) return refuse(plan.error());

  std::vector<std::string> lines(kRanks);
  const auto ends =
      run_ranks(kRanks, {}, [&](Communicator& communicator) -> Result<void> {
        const std::int64_t rank = communicator.rank();
        const auto program =
            RedistributeProgram::create(*plan, *src, *dst, rank);
        if (!program) return fail(program.error());
        const auto rows =
            LocalTensor::empty(program->source_shape(), DType::kI32);
        if (!rows) return fail(rows.error());
        fill(*rows, chunk(src->meta().size(0), kRanks, rank).begin);
        const auto columns = run(*program, communicator, *rows);
        if (!columns) return fail(columns.error());
        lines[static_cast<std::size_t>(rank)] = text(*columns);
        return {};
      });
  for (const Result<void>& end : ends) {
    if (!end) return refuse(end.error());
  }
  for (const std::string& line : lines) std::puts(line.c_str());
  return 0;
}
