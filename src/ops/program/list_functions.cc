// The functions of programs on lists of tensors and numbers.

#include "ops/program/trace_dims.h"
#include "ops/program/tracer.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

const TensorValues& list_of(const TraceValue& value) {
  const auto* list = std::get_if<TensorValues>(&value);
  require(list != nullptr, "a program needs a list of tensors");
  return *list;
}

std::size_t first_given(const TensorValues& list) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [](const auto& one) { return bool{one}; });
  require(found != list.end(), "a program needs a tensor in a list");
  return index(found - list.begin());
}

// Returns the number of dims of x[i, :, j] after those of the indices. The
// indexed dims have the position of the first index if the indices are
// adjacent. Otherwise they come first.
std::int64_t dims_behind(const TensorValue& x, const TensorValues& list) {
  const std::size_t first = first_given(list);
  std::size_t last = first;
  std::int64_t count = 0;
  for (std::size_t i = first; i < list.size(); ++i) {
    if (!list[i]) continue;
    last = i;
    ++count;
  }
  const auto run = static_cast<std::int64_t>(last - first + 1);
  return x.meta.rank() -
         (run == count ? static_cast<std::int64_t>(last + 1) : count);
}

std::int64_t element(const std::vector<std::int64_t>& list, std::int64_t i) {
  require(i >= 0, "a list has no negative index");
  const std::size_t at = list.size() == 1 ? 0 : index(i);
  require(at < list.size(), "a list has too few numbers");
  return list[at];
}

}  // namespace

std::optional<TraceValue> Tracer::list_function(const std::string& name,
                                                const Values& v) {
  if (name == "first_given") {
    return Argument(static_cast<std::int64_t>(first_given(list_of(v.at(0)))));
  }
  if (name == "dims_behind") {
    return Argument(dims_behind(tensor_of(v.at(0)), list_of(v.at(1))));
  }
  if (name == "element") {
    // The list has one number for each dim, or one for all.
    return Argument(element(integers_of(v.at(0)), integer_of(v.at(1))));
  }
  if (name == "unpadded") {
    // unpadded(padding, n, i) is the padding of n dims, with 0 for the i-th.
    const auto given = integers_of(v.at(0));
    require(integer_of(v.at(1)) <= kMostDimsOfProgram,
            "unpadded() has too many dims");
    std::vector<std::int64_t> padding;
    for (std::int64_t i = 0; i < integer_of(v.at(1)); ++i) {
      padding.push_back(i == integer_of(v.at(2)) ? 0 : element(given, i));
    }
    return Argument(std::move(padding));
  }
  if (name == "local_indices") return local_indices(v.at(0), v.at(1));
  if (name == "outside") return outside(v.at(0), list_of(v.at(1)));
  if (name == "indices_or") {
    // indices_or(list, mask, other): if the mask is true, the first index is
    // `other` and the other indices are 0.
    TensorValues out = list_of(v.at(0));
    TraceValue fill = v.at(2);
    for (auto& one : out) {
      if (!one) continue;
      one = tensor_of(operation("masked_fill", {*one, v.at(1), fill}, {}));
      fill = Argument(std::int64_t{0});
    }
    return out;
  }
  return std::nullopt;
}

// local_indices(x, indices) are the indices of x[i, :, j], relative to the
// rank's part.
TraceValue Tracer::local_indices(const TraceValue& x,
                                 const TraceValue& indices) {
  TensorValues out = list_of(indices);
  require(std::cmp_less_equal(out.size(), tensor_of(x).meta.rank()),
          "there are more indices than dims");
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i]) continue;
    const Argument dim(static_cast<std::int64_t>(i));
    const Argument size(tensor_of(x).meta.size(static_cast<int>(i)));
    out[i] =
        tensor_of(combined("-", operation("remainder", {*out[i], size}, {}),
                           of_the_rank("offset", tensor_of(x), dim)));
  }
  return out;
}

// outside(x, local) is true if one of the indices is outside of the rank's
// part.
TraceValue Tracer::outside(const TraceValue& x, const TensorValues& local) {
  std::optional<TraceValue> out;
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (!local[i]) continue;
    const Argument dim(static_cast<std::int64_t>(i));
    const TraceValue before =
        combined("<", *local[i], Argument(std::int64_t{0}));
    const TraceValue behind =
        combined(">=", *local[i], of_the_rank("local_size", tensor_of(x), dim));
    const TraceValue either = combined("|", before, behind);
    out = out ? combined("|", *out, either) : either;
  }
  require(out.has_value(), "there is no index");
  return *out;
}

}  // namespace shardprop
