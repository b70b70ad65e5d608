#pragma once

#include "access.h"
#include "params.h"

// One thread of the rows kernel, as a plain function of the block and the
// thread.
//
// Each row is split into slots, which are vectors that are aligned in the
// output. The first and the last slot of a row may be partial. A row has one
// slot more than fits, because it may start anywhere in its first slot.
//
// The slots of all rows of an item are numbered, kTileSlots of them are a tile,
// and tiles are numbered through all items. Short rows thus share a tile, and
// long rows have many tiles. Only partial slots are processed by element.
namespace shardprop::kernels::cuda {

struct Row {
  std::uint64_t dst;
  std::uint64_t src;
  std::int64_t width;  // elements to write
  std::int64_t valid;  // elements to read; what follows is filled
};

template <class Item>
SHARDPROP_HD std::uint32_t find_item(const Item* items, std::uint32_t count,
                                     std::uint32_t tile, std::uint32_t low) {
  std::uint32_t high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (items[middle].first_tile <= tile ? low : high) = middle;
  }
  return low;
}

// Returns a quotient that is known to fit in 32 bits. 64-bit divisions are slow
// on a GPU.
SHARDPROP_HD std::uint32_t divide(std::uint64_t a, std::uint32_t b) {
  if (a >> 32 == 0) return static_cast<std::uint32_t>(a) / b;
  return static_cast<std::uint32_t>(a / b);
}

SHARDPROP_HD std::int64_t clamp(std::int64_t value, std::int64_t most) {
  return value < 0 ? 0 : value > most ? most : value;
}

SHARDPROP_HD Row segment_row(const RowsHeader& header, const Segment& segment,
                             std::uint32_t row, std::int64_t from,
                             std::int64_t to) {
  const std::uint32_t a = row / header.num_chunks;
  const std::uint32_t k = row - a * header.num_chunks;
  const std::int64_t before = k * segment.width;
  const std::int64_t there = clamp(segment.extent - before, segment.width);
  const std::int64_t in_tensor = a * segment.extent + before;
  const bool pack = header.kind == RowKind::kPack;
  const std::int64_t outer_stride = header.outer_stride != 0
                                        ? header.outer_stride
                                        : segment.width * (pack ? to : from);
  const std::int64_t in_packed = a * outer_stride + k * header.chunk_stride;
  return {segment.dst +
              static_cast<std::uint64_t>(pack ? in_packed : in_tensor * to),
          segment.src +
              static_cast<std::uint64_t>(pack ? in_tensor * from : in_packed),
          pack ? segment.width : there, there};
}

SHARDPROP_HD Row rectangle_row(const Rectangle& rectangle, std::uint32_t row) {
  Row result{rectangle.dst, rectangle.src, rectangle.width,
             rectangle.src == 0 ? 0 : rectangle.width};
  for (std::uint32_t d = rectangle.rank; d-- > 0;) {
    const std::uint32_t outer = row / rectangle.sizes[d];
    const std::uint32_t i = row - outer * rectangle.sizes[d];
    row = outer;
    result.dst += static_cast<std::uint64_t>(i * rectangle.dst_strides[d]);
    result.src += static_cast<std::uint64_t>(i * rectangle.src_strides[d]);
  }
  return result;
}

template <class From, class To>
struct Slots {
  static constexpr int kFrom = sizeof(From);
  static constexpr int kTo = sizeof(To);
  // The wider side has vectors of 16 bytes.
  static constexpr int kElements = 16 / (kFrom > kTo ? kFrom : kTo);
  static constexpr int kFromWords = kElements * kFrom / 4;
  static constexpr int kToWords = kElements * kTo / 4;

  // The vectors in flight at a time. Sixteen conversions need more registers,
  // so fewer vectors are in flight.
  static constexpr std::uint32_t kAtOnce =
      kElements == 16 && !Conversion<To, From>::kMoves ? 2 : kUnroll;

  // Fits 32 bits: batches.cc refuses longer rows.
  static SHARDPROP_HD std::uint32_t per_row(std::int64_t width) {
    return static_cast<std::uint32_t>((width + kElements - 1) / kElements) + 1;
  }

  // The kind of a slot: a full vector to move, a full vector to fill, a partial
  // vector that is processed by element, or no elements.
  enum class How { kNothing, kVector, kFill, kElements };
  struct Slot {
    How how = How::kNothing;
    std::uint64_t dst;
    Words<kFromWords> value;
  };

  // Returns the first element of a slot; negative if the row starts within it.
  static SHARDPROP_HD std::int64_t first_of(const Row& row,
                                            std::uint32_t index) {
    const auto offset = static_cast<std::int64_t>(
        row.dst % static_cast<std::uint64_t>(kElements * kTo) / kTo);
    return static_cast<std::int64_t>(index) * kElements - offset;
  }

  // Loads the slot if it can be moved as a vector.
  static SHARDPROP_HD Slot load(const Row& row, std::uint32_t index) {
    Slot slot;
    const std::int64_t first = first_of(row, index);
    const std::int64_t last = first + kElements;
    if (first >= row.width) return slot;
    const std::uint64_t src =
        row.src + static_cast<std::uint64_t>(first * kFrom);
    slot.dst = row.dst + static_cast<std::uint64_t>(first * kTo);
    slot.how = How::kElements;
    if (first < 0 || last > row.width) return slot;
    if (first >= row.valid) {
      slot.how = How::kFill;
      return slot;
    }
    if (last > row.valid) return slot;
    constexpr std::uint64_t kMask = kElements * kFrom - 1;
    if ((src & kMask) == 0) {
      slot.how = How::kVector;
      slot.value = load_words<kFromWords>(src);
      return slot;
    }
    // Both aligned vectors around it must be part of the row.
    const std::uint64_t end =
        row.src + static_cast<std::uint64_t>(row.valid * kFrom);
    if ((src & ~kMask) >= row.src && (src | kMask) + kMask + 1 < end) {
      slot.how = How::kVector;
      slot.value = load_shifted<kFromWords>(src);
    }
    return slot;
  }

  static SHARDPROP_HD void move_elements(const Row& row, std::uint32_t index,
                                         const RowsHeader& header) {
    const std::int64_t first = first_of(row, index);
#pragma unroll 1
    for (int i = 0; i < kElements; ++i) {
      const std::int64_t at = first + i;
      if (at < 0 || at >= row.width) continue;
      To value;
      if (at < row.valid) {
        value = Conversion<To, From>::apply(
            load_element<From>(row.src +
                               static_cast<std::uint64_t>(at * kFrom)),
            header.scale);
      } else {
        memcpy(&value, header.fill, sizeof value);
      }
      store_element(row.dst + static_cast<std::uint64_t>(at * kTo), value);
    }
  }

  static SHARDPROP_HD void store(const Slot& slot, const RowsHeader& header) {
    Words<kToWords> value;
    if (slot.how == How::kVector) {
      From from[kElements];
      memcpy(from, &slot.value, sizeof from);
      To to[kElements];
#pragma unroll
      for (int i = 0; i < kElements; ++i) {
        to[i] = Conversion<To, From>::apply(from[i], header.scale);
      }
      memcpy(&value, to, sizeof to);
    } else if (slot.how == How::kFill) {
      memcpy(&value, header.fill, sizeof value);
    } else {
      return;
    }
    store_words<kToWords>(slot.dst, value);
  }

  // Processes the slots of one thread, kAtOnce at a time. `locate(u, &row,
  // &slot)` finds the row of the u-th slot and its position there. It returns
  // false if there is none.
  template <std::uint32_t kAtOnce, class Locate>
  static SHARDPROP_HD void run(const RowsHeader& header, const Locate& locate) {
    bool elements = false;
#pragma unroll 1
    for (std::uint32_t from = 0; from < kUnroll; from += kAtOnce) {
      Slot slots[kAtOnce];
#pragma unroll
      for (std::uint32_t u = 0; u < kAtOnce; ++u) {
        Row row;
        std::uint32_t slot;
        if (locate(from + u, &row, &slot)) slots[u] = load(row, slot);
        elements |= slots[u].how == How::kElements;
      }
#pragma unroll
      for (std::uint32_t u = 0; u < kAtOnce; ++u) store(slots[u], header);
    }
    // The ends of rows are located again, because keeping them would need
    // registers.
    if (!elements) return;
#pragma unroll 1
    for (std::uint32_t u = 0; u < kUnroll; ++u) {
      Row row;
      std::uint32_t slot;
      if (locate(u, &row, &slot) && load(row, slot).how == How::kElements) {
        move_elements(row, slot, header);
      }
    }
  }
};

template <class From, class To, class Params>
SHARDPROP_HD void run_rows(const Params& params, std::uint32_t block,
                           std::uint32_t blocks, std::uint32_t thread) {
  using S = Slots<From, To>;
  const RowsHeader& header = params.header;
  std::uint32_t item = 0;
  for (std::uint64_t next = block; next < header.tiles; next += blocks) {
    const auto tile = static_cast<std::uint32_t>(next);
    const bool rectangles = header.kind == RowKind::kRectangles;
    item = rectangles ? find_item(params.rectangles, header.count, tile, item)
                      : find_item(params.segments, header.count, tile, item);
    std::uint32_t first_tile;
    std::uint32_t rows;
    std::int64_t width;
    if (rectangles) {
      const Rectangle& rectangle = params.rectangles[item];
      first_tile = rectangle.first_tile;
      rows = rectangle.rows;
      width = rectangle.width;
    } else {
      const Segment& segment = params.segments[item];
      first_tile = segment.first_tile;
      rows = segment.outer * header.num_chunks;
      width = segment.width;
    }
    const std::uint32_t per_row = S::per_row(width);
    const std::uint64_t begin =
        static_cast<std::uint64_t>(tile - first_tile) * kTileSlots;
    const std::uint32_t first_row = divide(begin, per_row);
    const auto first_slot = static_cast<std::uint32_t>(
        begin - static_cast<std::uint64_t>(first_row) * per_row);
    const auto row_of = [&](std::uint32_t number) {
      return rectangles ? rectangle_row(params.rectangles[item], number)
                        : segment_row(header, params.segments[item], number,
                                      sizeof(From), sizeof(To));
    };
    if (first_slot + kTileSlots <= per_row) {
      const Row row = row_of(first_row);
      S::template run<S::kAtOnce>(
          header, [&](std::uint32_t u, Row* found, std::uint32_t* slot) {
            *found = row;
            *slot = first_slot + u * kThreads + thread;
            return true;
          });
    } else {
      S::template run<2>(header,
                         [&](std::uint32_t u, Row* found, std::uint32_t* slot) {
                           *slot = first_slot + u * kThreads + thread;
                           const std::uint32_t more = *slot / per_row;
                           *slot -= more * per_row;
                           if (more >= rows - first_row) return false;
                           *found = row_of(first_row + more);
                           return true;
                         });
    }
  }
}

}  // namespace shardprop::kernels::cuda
