#include "execute/region_copy.h"

#include <shardprop/placement/tensor_meta.h>

#include <algorithm>
#include <utility>

namespace shardprop::execute {
namespace {

// Elements of one dim: `count` equally spaced runs of `size` elements.
struct Runs {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t size = 0;
  std::int64_t count = 1;
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;
};

// Returns the elements that both lists of intervals share, in the order of
// `to`.
std::vector<Runs> common_runs(const Intervals& from, const Intervals& to) {
  std::vector<Runs> out;
  std::int64_t to_at = 0;
  for (const Interval& wanted : to) {
    std::int64_t from_at = 0;
    for (const Interval& held : from) {
      const std::int64_t begin = std::max(held.begin, wanted.begin);
      const std::int64_t end = std::min(held.end, wanted.end);
      if (begin < end) {
        out.push_back({.from = from_at + begin - held.begin,
                       .to = to_at + begin - wanted.begin,
                       .size = end - begin});
      }
      from_at += held.size();
    }
    to_at += wanted.size();
  }
  return out;
}

std::vector<Runs> grouped(const std::vector<Runs>& single) {
  std::vector<Runs> out;
  for (const Runs& next : single) {
    if (!out.empty()) {
      Runs& last = out.back();
      const std::int64_t from_step =
          next.from - (last.from + (last.count - 1) * last.from_step);
      const std::int64_t to_step =
          next.to - (last.to + (last.count - 1) * last.to_step);
      const bool first = last.count == 1;
      if (last.size == next.size &&
          (first || (from_step == last.from_step && to_step == last.to_step))) {
        last.from_step = from_step;
        last.to_step = to_step;
        ++last.count;
        continue;
      }
    }
    out.push_back(next);
  }
  return out;
}

Dims unit(std::size_t dims, std::size_t dim, std::int64_t step) {
  Dims out(dims);
  out[dim] = step;
  return out;
}

std::int64_t dot(const Dims& a, const Dims& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Dims difference(const Dims& a, const Dims& b) {
  Dims out = a;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= b[i];
  return out;
}

Dims times(Dims step, std::int64_t factor) {
  for (std::int64_t& entry : step) entry *= factor;
  return step;
}

// Replaces the indices of one side by offsets in a row-major buffer.
void flatten(Dims& start, const Dims& strides, std::int64_t offset) {
  start = Dims{dot(start, strides) + offset};
}

// Merges an axis with the next inner one if the inner axis ends at the next
// step of the outer one.
std::vector<CopyAxis> joined(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> out;
  for (const CopyAxis& axis : axes) {
    if (axis.size == 1) continue;
    if (!out.empty() && out.back().from == times(axis.from, axis.size) &&
        out.back().to == times(axis.to, axis.size)) {
      out.back().size *= axis.size;
      out.back().from = axis.from;
      out.back().to = axis.to;
    } else {
      out.push_back(axis);
    }
  }
  return out;
}

// Merges runs of neighbours with equal axes and distances, in one pass.
RegionCopies merged_once(const RegionCopies& copies) {
  RegionCopies out;
  std::size_t first = 0;
  while (first < copies.size()) {
    const RegionCopy& head = copies[first];
    std::size_t end = first + 1;
    CopyAxis along;
    while (end < copies.size() && copies[end].axes == head.axes) {
      Dims from = difference(copies[end].from, copies[end - 1].from);
      Dims to = difference(copies[end].to, copies[end - 1].to);
      if (end == first + 1) {
        along.from = std::move(from);
        along.to = std::move(to);
      } else if (from != along.from || to != along.to) {
        break;
      }
      ++end;
    }
    out.push_back(head);
    if (end > first + 1) {
      along.size = static_cast<std::int64_t>(end - first);
      out.back().axes.insert(out.back().axes.begin(), std::move(along));
    }
    first = end;
  }
  return out;
}

}  // namespace

std::int64_t RegionCopy::numel() const {
  std::int64_t count = 1;
  for (const CopyAxis& axis : axes) count *= axis.size;
  return count;
}

std::int64_t numel(const RegionCopies& copies) {
  std::int64_t count = 0;
  for (const RegionCopy& copy : copies) count += copy.numel();
  return count;
}

RegionCopies common_copies(const LocalRegion& from, const LocalRegion& to) {
  const std::size_t dims = from.dims().size();
  RegionCopies out{{Dims(dims), Dims(dims), {}}};
  for (std::size_t d = 0; d < dims; ++d) {
    const std::vector<Runs> runs =
        grouped(common_runs(from.dims()[d], to.dims()[d]));
    RegionCopies longer;
    longer.reserve(out.size() * runs.size());
    for (const RegionCopy& start : out) {
      for (const Runs& run : runs) {
        RegionCopy& copy = longer.emplace_back(start);
        copy.from[d] = run.from;
        copy.to[d] = run.to;
        if (run.count > 1) {
          copy.axes.push_back({run.count, unit(dims, d, run.from_step),
                               unit(dims, d, run.to_step)});
        }
        if (run.size > 1) {
          copy.axes.push_back({run.size, unit(dims, d, 1), unit(dims, d, 1)});
        }
      }
    }
    out = std::move(longer);
  }
  return out;
}

RegionCopies from_buffer(RegionCopies copies,
                         std::span<const std::int64_t> shape,
                         std::int64_t offset) {
  const Dims strides = contiguous_strides(shape);
  for (RegionCopy& copy : copies) {
    flatten(copy.from, strides, offset);
    for (CopyAxis& axis : copy.axes) flatten(axis.from, strides, 0);
  }
  return copies;
}

RegionCopies to_buffer(RegionCopies copies, std::span<const std::int64_t> shape,
                       std::int64_t offset) {
  const Dims strides = contiguous_strides(shape);
  for (RegionCopy& copy : copies) {
    flatten(copy.to, strides, offset);
    for (CopyAxis& axis : copy.axes) flatten(axis.to, strides, 0);
  }
  return copies;
}

RegionCopies merged(RegionCopies copies) {
  std::erase_if(copies,
                [](const RegionCopy& copy) { return copy.numel() == 0; });
  // Groups over several mesh dims need one pass per dim.
  for (;;) {
    RegionCopies fewer = merged_once(copies);
    if (fewer.size() == copies.size()) break;
    copies = std::move(fewer);
  }
  for (RegionCopy& copy : copies) copy.axes = joined(copy.axes);
  return copies;
}

}  // namespace shardprop::execute
