#include "box_runner.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "call_size.h"
#include "move_elements.h"
#include "rows.h"

namespace shardprop::kernels::cpu {
namespace {

// A tile of a transposition is first copied to a buffer and leaves it in
// complete rows, so that the rows can be cast and streamed.
constexpr std::int64_t kTileRuns = 128;   // elements along dst
constexpr std::int64_t kTileBytes = 128;  // along src: two cache lines
constexpr std::int64_t kGather = 1024;    // elements of a strided row
constexpr std::int64_t kLongRow = 1024;   // bytes that need no blocks
constexpr std::int64_t kFewPlaces = 16;   // to read from at once
constexpr std::int64_t kBlockRows = 8;
constexpr std::int64_t kBlockBytes = 64 << 10;  // read, and fetched ahead
constexpr std::int64_t kSegment = 256 << 10;    // bytes of dst; longest item

enum class Kind : std::uint8_t {
  kRows,       // adjacent elements on both sides, or a fill
  kBlocks,     // rows that adjoin in src, some at a time, see rows_of_block()
  kTranspose,  // adjacent on both sides, but along different dims
  kStrided,    // anything
};

// A box split into items that may run in any order.
struct Work {
  std::byte* dst;
  const std::byte* src;
  std::uint32_t first_dim;  // of its dims among those of all works
  std::uint8_t rank;        // at least 1
  std::uint8_t outer_rank;  // dims that an item has one index of
  Kind kind;
  std::int64_t pieces;  // that the innermost dim is cut into
  std::int64_t piece;   // elements of one; kBlocks: rows, of the dim before
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
    stream_ = exceeds_caches(bytes_of(boxes));
    works_.reserve(boxes.size());
    dims_.reserve(2 * boxes.size());
    for (std::size_t i = 0; i < boxes.size(); ++i) add(boxes[i]);
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
  // Returns the bytes that all boxes read and write.
  std::int64_t bytes_of(const BoxList& boxes) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const Box box = boxes[i];
      bytes += box.count() * (to_ + (box.src == nullptr ? 0 : from_));
    }
    return bytes;
  }

  void add(Box box) {
    if (box.rank == 0) box.add(1, to_, from_);
    const BoxDim& inner = box.dims[box.rank - 1];
    const bool filling = box.src == nullptr;
    Work work{};
    work.kind = Kind::kStrided;
    work.outer_rank = static_cast<std::uint8_t>(box.rank - 1);
    work.piece = std::min(inner.size, kSegment / to_);
    work.pieces = ceil_div(inner.size, work.piece);
    std::int64_t elements = work.piece;  // of one item
    std::int64_t parts = 1;              // that the last outer dim is cut into
    if (inner.dst == to_ && (filling || inner.src == from_)) {
      work.kind = Kind::kRows;
      if (!filling && box.rank > 2) order_rows(box);
      if (const std::int64_t rows = rows_of_block(box); rows > 1) {
        work.kind = Kind::kBlocks;
        work.outer_rank -= 2;
        work.piece = rows;
        work.pieces = ceil_div(box.dims[work.outer_rank].size, rows);
        elements = rows * box.dims[box.rank - 2].size * inner.size;
      } else if (box.rank > 1) {
        parts = box.dims[--work.outer_rank].size;
      }
    } else if (inner.dst == to_ && from_ <= 8 && to_transpose(box)) {
      work.kind = Kind::kTranspose;
      work.piece = kTileRuns;
      work.pieces = ceil_div(inner.size, kTileRuns);
      parts = tiles_across(box.dims[--work.outer_rank].size);
      elements = kTileRuns * (kTileBytes / from_);
    }
    work.dst = box.dst;
    work.src = box.src;
    work.rank = static_cast<std::uint8_t>(box.rank);
    work.first_dim = static_cast<std::uint32_t>(dims_.size());
    dims_.insert(dims_.end(), box.dims.begin(), box.dims.begin() + box.rank);
    work.items = work.pieces * parts;
    for (int d = 0; d < work.outer_rank; ++d) work.items *= box.dims[d].size;
    work.item_bytes = elements * (to_ + (filling ? 0 : from_));
    work.before = bytes_;
    bytes_ += work.items * work.item_bytes;
    works_.push_back(work);
  }

  // Returns the number of tiles of a transposition along src.
  std::int64_t tiles_across(std::int64_t elements) const {
    return ceil_div(elements, kTileBytes / from_);
  }

  const BoxDim* dims_of(const Work& work) const {
    return dims_.data() + work.first_dim;
  }

  // Beyond the caches, rows are read in the order of memory. Reading from
  // several places at once can take twice the time, depending on their
  // distance; writing to several places does not. Short rows that are adjacent
  // in dst and come from few places keep the order of dst. Within the caches,
  // the number of rows per call is decisive.
  void order_rows(Box& box) const {
    const int outer = box.rank - 1;
    const BoxDim& places = box.dims[outer - 1];
    const std::int64_t bytes = box.dims[outer].size * to_;
    if (stream_ && bytes < kLongRow && places.dst == bytes &&
        places.size <= kFewPlaces) {
      return;
    }
    std::array<BoxDim, kMaxBoxDims> in_src;
    std::copy_n(box.dims.begin(), outer, in_src.begin());
    std::stable_sort(in_src.begin(), in_src.begin() + outer,
                     [](const BoxDim& a, const BoxDim& b) {
                       return std::abs(a.src) > std::abs(b.src);
                     });
    if (stream_ || in_src[outer - 1].size > box.dims[outer - 1].size) {
      std::copy_n(in_src.begin(), outer, box.dims.begin());
    }
  }

  // Returns the rows of a block if memory is read sequentially but written in
  // short rows to several places; else 0. A block consists of the longer rows
  // that are adjacent in src. It is written to one place after the other while
  // the next block is fetched.
  std::int64_t rows_of_block(const Box& box) const {
    if (!stream_ || !plain_ || box.src == nullptr || box.rank < 3) return 0;
    const BoxDim& inner = box.dims[box.rank - 1];
    const BoxDim& places = box.dims[box.rank - 2];
    const BoxDim& rows = box.dims[box.rank - 3];
    if (places.src != inner.size * inner.src || places.src >= kLongRow ||
        rows.src != places.size * places.src) {
      return 0;
    }
    return std::min({kBlockRows, kBlockBytes / rows.src, rows.size});
  }

  // If src is dense along some dim, moves this dim next to the innermost one.
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
      case Kind::kBlocks:
        return run_blocks(work, begin, end);
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

  // Returns the start of a row-major index into the outer dims.
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

  void run_blocks(const Work& work, std::int64_t begin,
                  std::int64_t end) const {
    const BoxDim& rows = dims_of(work)[work.rank - 3];
    const BoxDim& places = dims_of(work)[work.rank - 2];
    const BoxDim& inner = dims_of(work)[work.rank - 1];
    for (; begin < end; ++begin) {
      Place at = place(work, begin / work.pieces);
      const std::int64_t first = begin % work.pieces * work.piece;
      const std::int64_t count = std::min(work.piece, rows.size - first);
      at.dst += first * rows.dst;
      at.src += first * rows.src;
      const bool last = first + count == rows.size;
      const std::byte* next = last ? nullptr : at.src + count * rows.src;
      for (std::int64_t i = 0; i < places.size; ++i) {
        run_panel({.dst = at.dst + i * places.dst,
                   .src = at.src + i * places.src,
                   .dst_stride = rows.dst,
                   .src_stride = rows.src,
                   .rows = count,
                   .width = inner.size,
                   .ahead = next},
                  stream_);
        if (!last) next += count * places.src;
      }
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

  // Gathers, transforms and scatters; skips the steps that are not needed.
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
          move_elements(gathered, from_, panel.src, inner.src, from_, count);
          panel.src = gathered;
        }
      }
      run_panel(panel, false);
      if (!dense) move_elements(dst, inner.dst, result, to_, to_, count);
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

}  // namespace

void run_boxes(const BoxList& boxes, const Transform& transform,
               const CpuOptions& options) {
  if (!boxes.empty()) Runner(boxes, transform).run(options.pool);
}

}  // namespace shardprop::kernels::cpu
