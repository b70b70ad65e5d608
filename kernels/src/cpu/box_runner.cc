#include "box_runner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "rows.h"

namespace shardprop::kernels::cpu {
namespace {

// A tile of a transposition is copied here first and leaves in whole rows, so
// that they can be cast and streamed.
constexpr std::int64_t kTileRuns = 128;        // elements along dst
constexpr std::int64_t kTileBytes = 128;       // along src: two cache lines
constexpr std::int64_t kGather = 1024;         // elements of a strided row
constexpr std::int64_t kSegment = 256 * 1024;  // bytes of dst; longest item

enum class Kind : std::uint8_t {
  kRows,       // adjacent elements on both sides, or a fill
  kTranspose,  // adjacent on both sides, but along different dims
  kStrided,    // anything
};

// A box cut into items that can be done in any order.
struct Work {
  std::byte* dst;
  const std::byte* src;
  std::uint32_t first_dim;  // of its dims among those of all works
  std::uint8_t rank;        // at least 1
  std::uint8_t outer_rank;  // dims that an item has one index of
  Kind kind;
  std::int64_t pieces;  // that the innermost dim is cut into
  std::int64_t piece;   // elements of one
  std::int64_t items;
  std::int64_t item_bytes;  // read and written by one item
  std::int64_t before;      // read and written by the works before this one
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

class Runner {
 public:
  Runner(const BoxList& boxes, const Transform& transform)
      : rows_(row_kernels()),
        transform_(transform),
        from_(size_of(transform.from)),
        to_(size_of(transform.to)),
        plain_(transform.from == transform.to && transform.scale == 1.0) {
    for (std::int64_t i = 0; i < 64; ++i) {
      pattern_.bytes[i] =
          transform.fill == nullptr
              ? std::byte{0}
              : static_cast<const std::byte*>(transform.fill)[i % to_];
    }
    works_.reserve(boxes.size());
    dims_.reserve(2 * boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) add(boxes[i]);
    stream_ = exceeds_caches(bytes_);
    for (const Work& work : works_) order_rows(work);
  }

  void run(ThreadPool* pool) {
    tasks_ = task_count(bytes_, pool);
    if (tasks_ <= 1) {
      for (const Work& work : works_) run_items(work, 0, work.items);
      if (stream_) finish_stores();
      return;
    }
    pool->run(
        tasks_,
        [](void* self, std::int64_t task) {
          static_cast<const Runner*>(self)->run_task(task);
        },
        this);
  }

 private:
  void add(Box box) {
    if (box.rank == 0) box.add(1, to_, from_);
    const BoxDim& inner = box.dims[box.rank - 1];
    const bool filling = box.src == nullptr;
    Work work{};
    work.outer_rank = static_cast<std::uint8_t>(box.rank - 1);
    work.piece = std::min(inner.size, kSegment / to_);
    std::int64_t elements = work.piece;  // of one item
    std::int64_t parts = 1;              // that the last outer dim is cut into
    if (inner.dst == to_ && (filling || inner.src == from_)) {
      work.kind = Kind::kRows;
      if (box.rank > 1) parts = box.dims[--work.outer_rank].size;
    } else if (inner.dst == to_ && from_ <= 8 && to_transpose(box)) {
      work.kind = Kind::kTranspose;
      work.piece = kTileRuns;
      parts = tiles_across(box.dims[--work.outer_rank].size);
      elements = kTileRuns * (kTileBytes / from_);
    } else {
      work.kind = Kind::kStrided;
    }
    work.dst = box.dst;
    work.src = box.src;
    work.rank = static_cast<std::uint8_t>(box.rank);
    work.first_dim = static_cast<std::uint32_t>(dims_.size());
    dims_.insert(dims_.end(), box.dims.begin(), box.dims.begin() + box.rank);
    work.pieces = ceil_div(inner.size, work.piece);
    work.items = work.pieces * parts;
    for (int d = 0; d < work.outer_rank; ++d) work.items *= box.dims[d].size;
    work.item_bytes = elements * (to_ + (filling ? 0 : from_));
    work.before = bytes_;
    bytes_ += work.items * work.item_bytes;
    works_.push_back(work);
  }

  // Of a transposition, along src.
  std::int64_t tiles_across(std::int64_t elements) const {
    return ceil_div(elements, kTileBytes / from_);
  }

  const BoxDim* dims_of(const Work& work) const {
    return dims_.data() + work.first_dim;
  }

  // Rows go in the order of one side, so that the other side is met in as many
  // places at once as the last outer dim is long. Beyond the caches few places
  // keep the pages open and the prefetchers going; within them, what counts is
  // how many rows run in one call.
  void order_rows(const Work& work) {
    if (work.kind != Kind::kRows || work.rank < 3 || work.src == nullptr) {
      return;
    }
    BoxDim* const in_dst = dims_.data() + work.first_dim;
    const int outer = work.rank - 1;
    std::array<BoxDim, kMaxBoxDims> in_src;
    std::copy_n(in_dst, outer, in_src.begin());
    std::stable_sort(in_src.begin(), in_src.begin() + outer,
                     [](const BoxDim& a, const BoxDim& b) {
                       return std::abs(a.src) > std::abs(b.src);
                     });
    const std::int64_t by_dst = in_dst[outer - 1].size;
    const std::int64_t by_src = in_src[outer - 1].size;
    if (stream_ ? by_src < by_dst : by_src > by_dst) {
      std::copy_n(in_src.begin(), outer, in_dst);
    }
  }

  // If there is a dim that src is dense along, brings it next to the innermost.
  bool to_transpose(Box& box) const {
    const auto end = box.dims.begin() + box.rank - 1;
    const auto dense =
        std::find_if(box.dims.begin(), end, [this](const BoxDim& dim) {
          return dim.src == from_ && dim.size >= 4;
        });
    if (dense == end || end->size < 4) return false;
    std::rotate(dense, dense + 1, end);
    return true;
  }

  void run_task(std::int64_t task) const {
    const std::int64_t from = bytes_ / tasks_ * task;
    const std::int64_t to =
        task + 1 == tasks_ ? bytes_ : bytes_ / tasks_ * (task + 1);
    auto work = std::upper_bound(
        works_.begin(), works_.end(), from,
        [](std::int64_t at, const Work& next) { return at < next.before; });
    // An item belongs to the task in whose range it starts.
    for (--work; work != works_.end() && work->before < to; ++work) {
      const auto items_before = [&](std::int64_t at) {
        const std::int64_t within =
            std::max<std::int64_t>(at - work->before, 0);
        return std::min(ceil_div(within, work->item_bytes), work->items);
      };
      run_items(*work, items_before(from), items_before(to));
    }
    if (stream_) finish_stores();
  }

  void run_items(const Work& work, std::int64_t begin, std::int64_t end) const {
    switch (work.kind) {
      case Kind::kRows:
        return run_rows(work, begin, end);
      case Kind::kTranspose:
        return run_tiles(work, begin, end);
      case Kind::kStrided:
        for (std::int64_t i = begin; i < end; ++i) run_strided(work, i);
    }
  }

  struct Place {
    std::byte* dst;
    const std::byte* src;
  };

  // Where an index into the outer dims, row-major, starts.
  Place place(const Work& work, std::int64_t index) const {
    Place at{work.dst, work.src};
    for (int d = work.outer_rank - 1; d >= 0; --d) {
      const BoxDim& dim = dims_of(work)[d];
      const std::int64_t i = index % dim.size;
      index /= dim.size;
      at.dst += i * dim.dst;
      if (at.src != nullptr) at.src += i * dim.src;
    }
    return at;
  }

  void run_rows(const Work& work, std::int64_t begin, std::int64_t end) const {
    const BoxDim* const inner = dims_of(work) + work.rank - 1;
    const BoxDim row_dim = work.rank > 1 ? inner[-1] : BoxDim{1, 0, 0};
    const std::int64_t per_outer = row_dim.size * work.pieces;
    while (begin < end) {
      const Place at = place(work, begin / per_outer);
      const std::int64_t row = begin % per_outer / work.pieces;
      const std::int64_t piece = begin % work.pieces;
      Panel panel{at.dst + row * row_dim.dst,
                  at.src,
                  row_dim.dst,
                  row_dim.src,
                  1,
                  inner->size};
      if (at.src != nullptr) panel.src += row * row_dim.src;
      std::int64_t items = 0;
      if (work.pieces == 1) {
        items = std::min(row_dim.size - row, end - begin);
        panel.rows = items;
      } else {
        items = std::min(work.pieces - piece, end - begin);
        const std::int64_t first = piece * work.piece;
        panel.width = std::min(inner->size - first, items * work.piece);
        panel.dst += first * to_;
        if (at.src != nullptr) panel.src += first * from_;
      }
      run_panel(panel, stream_);
      begin += items;
    }
  }

  void run_panel(Panel panel, bool stream) const {
    if (panel.src == nullptr) {
      panel.width *= to_;
      rows_.fill(panel, pattern_, stream);
    } else if (plain_) {
      panel.width *= to_;
      rows_.copy(panel, stream);
    } else if (transform_.from == DType::kFloat64) {
      rows_.scale_f64(panel, transform_.scale);
    } else {
      rows_.cast[static_cast<int>(transform_.from)][static_cast<int>(
          transform_.to)](panel, static_cast<float>(transform_.scale), stream);
    }
  }

  void run_tiles(const Work& work, std::int64_t begin, std::int64_t end) const {
    const BoxDim& along = dims_of(work)[work.rank - 1];   // dst is dense
    const BoxDim& across = dims_of(work)[work.rank - 2];  // src is
    const std::int64_t tile_rows = kTileBytes / from_;
    alignas(64) std::byte tile[kTileRuns * kTileBytes];
    const auto transpose =
        rows_.transpose[std::countr_zero(static_cast<std::uint64_t>(from_))];
    const std::int64_t per_outer = work.pieces * tiles_across(across.size);
    for (; begin < end; ++begin) {
      const Place at = place(work, begin / per_outer);
      const std::int64_t c = begin % per_outer / work.pieces * tile_rows;
      const std::int64_t r = begin % work.pieces * kTileRuns;
      const std::int64_t columns = std::min(tile_rows, across.size - c);
      const std::int64_t runs = std::min(kTileRuns, along.size - r);
      transpose({.dst = tile,
                 .src = at.src + r * along.src + c * from_,
                 .dst_stride = kTileRuns * from_,
                 .src_stride = along.src,
                 .rows = runs,
                 .width = columns});
      run_panel({.dst = at.dst + c * across.dst + r * to_,
                 .src = tile,
                 .dst_stride = across.dst,
                 .src_stride = kTileRuns * from_,
                 .rows = columns,
                 .width = runs},
                stream_);
    }
  }

  // Gathers, transforms and scatters, each step only where it is needed.
  void run_strided(const Work& work, std::int64_t index) const {
    const Place at = place(work, index / work.pieces);
    const std::int64_t begin = index % work.pieces * work.piece;
    const BoxDim& inner = dims_of(work)[work.rank - 1];
    const std::int64_t end = std::min(begin + work.piece, inner.size);
    alignas(64) std::byte gathered[kGather * 16];
    alignas(64) std::byte result[kGather * 16];
    for (std::int64_t i = begin; i < end; i += kGather) {
      const std::int64_t count = std::min(kGather, end - i);
      std::byte* const dst = at.dst + i * inner.dst;
      const bool dense = inner.dst == to_;
      Panel panel{dense ? dst : result, nullptr, 0, 0, 1, count};
      if (at.src != nullptr) {
        panel.src = at.src + i * inner.src;
        if (inner.src != from_) {
          move(gathered, from_, panel.src, inner.src, from_, count);
          panel.src = gathered;
        }
      }
      run_panel(panel, false);
      if (!dense) move(dst, inner.dst, result, to_, to_, count);
    }
  }

  template <std::size_t kSize>
  static void move_elements(std::byte* dst, std::int64_t dst_stride,
                            const std::byte* src, std::int64_t src_stride,
                            std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(dst + i * dst_stride, src + i * src_stride, kSize);
    }
  }

  static void move(std::byte* dst, std::int64_t dst_stride,
                   const std::byte* src, std::int64_t src_stride,
                   std::int64_t size, std::int64_t count) {
    switch (size) {
      case 1:
        return move_elements<1>(dst, dst_stride, src, src_stride, count);
      case 2:
        return move_elements<2>(dst, dst_stride, src, src_stride, count);
      case 4:
        return move_elements<4>(dst, dst_stride, src, src_stride, count);
      case 8:
        return move_elements<8>(dst, dst_stride, src, src_stride, count);
      default:
        return move_elements<16>(dst, dst_stride, src, src_stride, count);
    }
  }

  const RowKernels& rows_;
  const Transform transform_;
  const std::int64_t from_;
  const std::int64_t to_;
  const bool plain_;  // bits are copied
  Pattern pattern_;
  std::vector<Work> works_;
  std::vector<BoxDim> dims_;
  std::int64_t bytes_ = 0;
  std::int64_t tasks_ = 1;
  bool stream_ = false;
};

// Of the caches that one core reaches. sysconf() is asked last: on AMD it adds
// up the whole package, most of which a core does not reach.
std::int64_t last_level_cache() {
  for (const char* path : {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                           "/sys/devices/system/cpu/cpu0/cache/index2/size"}) {
    std::int64_t kib = 0;
    char unit = 0;
    if (std::ifstream file(path); file >> kib >> unit && unit == 'K') {
      return kib * 1024;
    }
  }
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long size = sysconf(level); size > 0) return size;
  }
  return 32 << 20;  // where nobody tells
}

}  // namespace

bool exceeds_caches(std::int64_t bytes) {
  static const std::int64_t last_level = last_level_cache();
  return bytes > last_level;
}

void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool) {
  constexpr std::int64_t kWorthWaking = 4 << 20;
  constexpr std::int64_t kTask = 1 << 19;
  if (pool == nullptr || pool->threads() == 1 || bytes < kWorthWaking) return 1;
  // Some more than threads, for those that are held up.
  return std::min<std::int64_t>(bytes / kTask, 8L * pool->threads());
}

void run_boxes(const BoxList& boxes, const Transform& transform,
               const CpuOptions& options) {
  if (!boxes.empty()) Runner(boxes, transform).run(options.pool);
}

}  // namespace shardprop::kernels::cpu
