// Runs verify() over ranks that share no memory. Findings are exchanged as
// numbers and one text of fixed length.

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"

#include <shardprop/collective/functional.h>
#include <shardprop/lower/lower.h>
#include <shardprop/verify/verify.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr std::size_t kTextBytes = 4096;
constexpr char kBetween = '\x1f';
constexpr std::size_t kHeader = 6;

std::vector<std::int64_t> numbers_of(const RankFindings& found) {
  const bool differs = found.mismatch.has_value();
  std::vector<std::int64_t> out = {
      found.compared,
      found.peak_bytes,
      differs ? 1 : 0,
      static_cast<std::int64_t>(found.mismatch_step),
      std::bit_cast<std::int64_t>(differs ? found.mismatch->expected : 0.0),
      std::bit_cast<std::int64_t>(differs ? found.mismatch->found : 0.0)};
  for (const double error : found.output_errors) {
    out.push_back(std::bit_cast<std::int64_t>(error));
  }
  out.insert(out.end(), found.step_payload_bytes.begin(),
             found.step_payload_bytes.end());
  out.insert(out.end(), found.step_calls.begin(), found.step_calls.end());
  return out;
}

std::string text_of(const RankFindings& found) {
  std::string out;
  if (found.mismatch) {
    const VerifyMismatch& m = *found.mismatch;
    for (const std::string* part :
         {&m.node, &m.op, &m.value, &m.strategy, &m.element, &m.error}) {
      out += *part + kBetween;
    }
  }
  out.resize(kTextBytes, '\0');
  return out;
}

VerifyMismatch mismatch_of(const std::string& text, std::int64_t rank) {
  VerifyMismatch m;
  m.rank = rank;
  std::size_t begin = 0;
  for (std::string* part :
       {&m.node, &m.op, &m.value, &m.strategy, &m.element, &m.error}) {
    const std::size_t end = std::min(text.find(kBetween, begin), text.size());
    *part = text.substr(std::min(begin, text.size()), end - begin);
    begin = end + 1;
  }
  return m;
}

RankFindings findings_of(const SpmdProgram& program,
                         const std::int64_t* numbers, const std::string& text,
                         std::int64_t rank) {
  RankFindings out;
  out.compared = numbers[0];
  out.peak_bytes = numbers[1];
  if (numbers[2] != 0) {
    out.mismatch = mismatch_of(text, rank);
    out.mismatch->expected = std::bit_cast<double>(numbers[4]);
    out.mismatch->found = std::bit_cast<double>(numbers[5]);
  }
  out.mismatch_step = static_cast<std::size_t>(numbers[3]);
  const std::int64_t* next = numbers + kHeader;
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    out.output_errors.push_back(std::bit_cast<double>(*next++));
  }
  out.step_payload_bytes.assign(next, next + program.steps.size());
  next += program.steps.size();
  out.step_calls.assign(next, next + program.steps.size());
  return out;
}

// Returns the arrays of all ranks of the mesh, concatenated by rank.
template <class T>
Result<LocalTensor> gathered(Communicator& communicator, const Group& group,
                             const T* mine, std::size_t count, DType dtype) {
  const Dims sizes{static_cast<std::int64_t>(count)};
  SP_ASSIGN(LocalTensor held, LocalTensor::empty(sizes, dtype));
  std::memcpy(held.data(), mine, count * sizeof(T));
  SP_ASSIGN(const AsyncTensor all,
            all_gather_tensor(communicator, held, 0, group));
  return all.wait();
}

Result<std::optional<VerifyReport>> compared_on(
    Communicator& communicator, const Plan& plan, const Graph& graph,
    std::shared_ptr<const OpLibrary> library, const VerifyOptions& options) {
  SP_ASSIGN(const SpmdProgram program, lower(plan, graph, *library));
  const std::int64_t ranks = program.mesh.size();
  if (communicator.size() < ranks) {
    return fail(ErrorCode::kInvalidArgument,
                "the mesh has " + std::to_string(ranks) +
                    " ranks, more than the processes, " +
                    std::to_string(communicator.size()),
                "start it by mpirun -n " + std::to_string(ranks));
  }
  if (communicator.rank() >= ranks) return std::nullopt;
  SP_ASSIGN(
      const Expected expected,
      Expected::create(graph, std::move(library), optimizer_of(plan), options));
  const RankFindings mine = verify_rank(program, expected, communicator);
  SP_ASSIGN(const Group group, Group::world(ranks));
  const std::vector<std::int64_t> numbers = numbers_of(mine);
  const std::string text = text_of(mine);
  SP_ASSIGN(const LocalTensor all_numbers,
            gathered(communicator, group, numbers.data(), numbers.size(),
                     DType::kI64));
  SP_ASSIGN(
      const LocalTensor all_texts,
      gathered(communicator, group, text.data(), text.size(), DType::kU8));
  if (communicator.rank() != 0) return std::nullopt;
  std::vector<RankFindings> findings;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const auto at = index(r);
    findings.push_back(findings_of(
        program, all_numbers.data_as<std::int64_t>() + at * numbers.size(),
        std::string(all_texts.data_as<char>() + at * kTextBytes, kTextBytes),
        r));
  }
  return verify_report(program, findings, plan);
}

}  // namespace

Result<std::optional<VerifyReport>> verify_on(
    Communicator& communicator, const Plan& plan, const Graph& graph,
    std::shared_ptr<const OpLibrary> library, const VerifyOptions& options) {
  return guarded([&] {
    return compared_on(communicator, plan, graph, std::move(library), options);
  });
}

}  // namespace shardprop
