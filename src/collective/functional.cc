#include <shardprop/collective/functional.h>

#include <shardprop/base/error.h>

#include "base/index.h"
#include "base/try.h"
#include "collective/dim_of.h"

#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// Returns the given output, or a new one.
Result<LocalTensor> output_of(Communicator& communicator, const Dims& sizes,
                              DType dtype, const LocalTensor* given,
                              const std::string& where) {
  if (given == nullptr) return communicator.allocate(sizes, dtype);
  if (given->sizes() != sizes || given->dtype() != dtype) {
    const LocalTensor wanted = LocalTensor::wrap(nullptr, sizes, dtype);
    return fail(Error{ErrorCode::kCollectiveCall,
                      "the output given is " + to_string(*given) + ", not " +
                          to_string(wanted),
                      where});
  }
  return *given;
}

const LocalTensor* given(const CollectiveOptions& options) {
  return options.out ? &*options.out : nullptr;
}

Result<AsyncTensor> started(Communicator& communicator, const Group& group,
                            CollectiveCall call, LocalTensor result) {
  SP_ASSIGN(std::shared_ptr<Work> work,
            communicator.start(group, std::move(call)));
  return AsyncTensor(std::move(result), std::move(work));
}

// Appends `parts` equal pieces of `tensor` along `dim` to `list`.
void append_parts(std::vector<LocalTensor>& list, const LocalTensor& tensor,
                  int dim, std::int64_t parts) {
  const std::int64_t share = tensor.size(dim) / parts;
  for (std::int64_t r = 0; r < parts; ++r) {
    list.push_back(tensor.narrow(dim, r * share, share));
  }
}

// Returns one message per member, each of consecutive rows.
std::vector<Message> messages_of(const LocalTensor& tensor,
                                 std::span<const std::int64_t> rows) {
  std::vector<Message> messages;
  std::int64_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    messages.push_back(
        {static_cast<std::int64_t>(r), {tensor.narrow(0, at, rows[r])}});
    at += rows[r];
  }
  return messages;
}

// Returns the `t`-th output that the caller gave to a coalesced collective, or
// null.
Result<const LocalTensor*> given(const CoalescedOptions& options, std::size_t t,
                                 std::size_t count) {
  if (options.outs.empty()) return nullptr;
  if (options.outs.size() != count) {
    return fail(Error{ErrorCode::kCollectiveCall,
                      std::to_string(options.outs.size()) +
                          " outputs are given for " + std::to_string(count) +
                          " inputs",
                      options.where});
  }
  return &options.outs[t];
}

Result<std::vector<AsyncTensor>> started(Communicator& communicator,
                                         const Group& group,
                                         CollectiveCall call,
                                         std::span<const LocalTensor> results) {
  SP_ASSIGN(const std::shared_ptr<Work> work,
            communicator.start(group, std::move(call)));
  std::vector<AsyncTensor> out;
  out.reserve(results.size());
  for (const LocalTensor& result : results) out.emplace_back(result, work);
  return out;
}

}  // namespace

Result<AsyncTensor> all_reduce(Communicator& communicator,
                               const LocalTensor& input, ReduceOp op,
                               const Group& group,
                               const CollectiveOptions& options) {
  SP_ASSIGN(const LocalTensor out,
            output_of(communicator, input.sizes(), input.dtype(),
                      given(options), options.where));
  return started(communicator, group,
                 {.kind = CollectiveKind::kAllReduce,
                  .op = op,
                  .inputs = {input},
                  .outputs = {out},
                  .where = options.where},
                 out);
}

Result<AsyncTensor> all_gather_tensor(Communicator& communicator,
                                      const LocalTensor& input, int gather_dim,
                                      const Group& group,
                                      const CollectiveOptions& options) {
  SP_ASSIGN(const Dims sizes,
            all_gather_shape(input.sizes(), gather_dim, group.size()));
  SP_ASSIGN(const int dim, collective::dim_of(sizes, gather_dim));
  SP_ASSIGN(const LocalTensor out, output_of(communicator, sizes, input.dtype(),
                                             given(options), options.where));
  CollectiveCall call{.kind = CollectiveKind::kAllGather,
                      .inputs = {input},
                      .where = options.where};
  append_parts(call.outputs, out, dim, group.size());
  return started(communicator, group, std::move(call), out);
}

Result<AsyncTensor> reduce_scatter_tensor(Communicator& communicator,
                                          const LocalTensor& input, ReduceOp op,
                                          int scatter_dim, const Group& group,
                                          const CollectiveOptions& options) {
  SP_ASSIGN(const Dims sizes,
            reduce_scatter_shape(input.sizes(), scatter_dim, group.size()));
  SP_ASSIGN(const int dim, collective::dim_of(sizes, scatter_dim));
  SP_ASSIGN(const LocalTensor out, output_of(communicator, sizes, input.dtype(),
                                             given(options), options.where));
  CollectiveCall call{.kind = CollectiveKind::kReduceScatter,
                      .op = op,
                      .outputs = {out},
                      .where = options.where};
  append_parts(call.inputs, input, dim, group.size());
  return started(communicator, group, std::move(call), out);
}

Result<AsyncTensor> all_to_all_single(Communicator& communicator,
                                      const LocalTensor& input,
                                      const Splits& splits, const Group& group,
                                      const CollectiveOptions& options) {
  const std::int64_t ranks = group.size();
  SP_ASSIGN(const Dims sizes,
            all_to_all_single_shape(input.sizes(), splits, ranks));
  SP_ASSIGN(const LocalTensor out, output_of(communicator, sizes, input.dtype(),
                                             given(options), options.where));
  const std::vector<std::int64_t> equal(static_cast<std::size_t>(ranks),
                                        input.size(0) / ranks);
  return started(communicator, group,
                 {.kind = CollectiveKind::kAllToAll,
                  .sends = messages_of(input, splits.input.value_or(equal)),
                  .receives = messages_of(out, splits.output.value_or(equal)),
                  .where = options.where},
                 out);
}

Result<AsyncTensor> broadcast(Communicator& communicator,
                              const LocalTensor& input, std::int64_t root,
                              const Group& group,
                              const CollectiveOptions& options) {
  SP_ASSIGN(const LocalTensor out,
            output_of(communicator, input.sizes(), input.dtype(),
                      given(options), options.where));
  CollectiveCall call{.kind = CollectiveKind::kBroadcast,
                      .root = root,
                      .outputs = {out},
                      .where = options.where};
  const auto place = group.place_of(communicator.rank());
  if (place && place->index == root) call.inputs = {input};
  return started(communicator, group, std::move(call), out);
}

Result<AsyncTensor> permute_tensor(Communicator& communicator,
                                   const LocalTensor& input,
                                   std::span<const std::int64_t> destinations,
                                   const Group& group,
                                   const CollectiveOptions& options) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> sources(ranks, -1);
  bool permutes = destinations.size() == ranks;
  for (std::size_t i = 0; permutes && i < ranks; ++i) {
    const std::int64_t to = destinations[i];
    permutes = to >= 0 && to < group.size() && sources[index(to)] < 0;
    if (permutes) {
      sources[index(to)] = static_cast<std::int64_t>(i);
    }
  }
  if (!permutes) {
    return fail(Error{ErrorCode::kCollectiveCall,
                      "the destinations are not a permutation of the " +
                          std::to_string(ranks) + " members",
                      options.where});
  }
  SP_ASSIGN(const LocalTensor out,
            output_of(communicator, input.sizes(), input.dtype(),
                      given(options), options.where));
  CollectiveCall call{.kind = CollectiveKind::kPermute, .where = options.where};
  if (const auto place = group.place_of(communicator.rank())) {
    const auto me = index(place->index);
    call.sends = {{destinations[me], {input}}};
    call.receives = {{sources[me], {out}}};
  }
  return started(communicator, group, std::move(call), out);
}

Result<std::vector<AsyncTensor>> all_reduce_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options) {
  CollectiveCall call{.kind = CollectiveKind::kAllReduce,
                      .op = op,
                      .inputs = {inputs.begin(), inputs.end()},
                      .where = options.where};
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    SP_ASSIGN(const LocalTensor* const out, given(options, t, inputs.size()));
    SP_ASSIGN(LocalTensor result,
              output_of(communicator, inputs[t].sizes(), inputs[t].dtype(), out,
                        options.where));
    call.outputs.push_back(std::move(result));
  }
  const std::vector<LocalTensor> results = call.outputs;
  return started(communicator, group, std::move(call), results);
}

Result<std::vector<AsyncTensor>> all_gather_into_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    const Group& group, const CoalescedOptions& options) {
  CollectiveCall call{.kind = CollectiveKind::kAllGather,
                      .inputs = {inputs.begin(), inputs.end()},
                      .where = options.where};
  std::vector<LocalTensor> results;
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    SP_ASSIGN(const Dims sizes,
              all_gather_shape(inputs[t].sizes(), 0, group.size()));
    SP_ASSIGN(const LocalTensor* const out, given(options, t, inputs.size()));
    SP_ASSIGN(
        LocalTensor result,
        output_of(communicator, sizes, inputs[t].dtype(), out, options.where));
    append_parts(call.outputs, result, 0, group.size());
    results.push_back(std::move(result));
  }
  return started(communicator, group, std::move(call), results);
}

Result<std::vector<AsyncTensor>> reduce_scatter_tensor_coalesced(
    Communicator& communicator, std::span<const LocalTensor> inputs,
    ReduceOp op, const Group& group, const CoalescedOptions& options) {
  CollectiveCall call{
      .kind = CollectiveKind::kReduceScatter, .op = op, .where = options.where};
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    SP_ASSIGN(const Dims sizes,
              reduce_scatter_shape(inputs[t].sizes(), 0, group.size()));
    SP_ASSIGN(const LocalTensor* const out, given(options, t, inputs.size()));
    SP_ASSIGN(
        LocalTensor result,
        output_of(communicator, sizes, inputs[t].dtype(), out, options.where));
    append_parts(call.inputs, inputs[t], 0, group.size());
    call.outputs.push_back(std::move(result));
  }
  const std::vector<LocalTensor> results = call.outputs;
  return started(communicator, group, std::move(call), results);
}

}  // namespace shardprop
