#include "batches.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "../plan/message.h"
#include "launch.h"

namespace shardprop::kernels::cuda {
namespace {

constexpr std::int64_t kWorthTransposing = 8;      // elements of a dim
constexpr std::int64_t kWorthLaunching = 1 << 16;  // elements in all
constexpr std::int64_t kMaxCount = std::numeric_limits<std::uint32_t>::max();

std::uint64_t address(const std::byte* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// True if the elements are in row-major order without gaps.
bool contiguous(const Operand& operand) {
  std::int64_t stride = operand.item_size();
  for (int d = operand.rank - 1; d >= 0; --d) {
    if (operand.sizes[d] != 1 && operand.strides[d] != stride) return false;
    stride *= operand.sizes[d];
  }
  return true;
}

// Returns the slots of one row of `width` elements (rows_body.h).
std::int64_t slots_per_row(std::int64_t width, std::int64_t widest) {
  const std::int64_t elements = 16 / widest;
  return (width + elements - 1) / elements + 1;
}

// Returns the tiles of one item; nullopt if 32 bits cannot count them.
std::optional<std::uint32_t> tiles_of(std::int64_t rows, std::int64_t width,
                                      std::int64_t widest) {
  const std::int64_t per_row = slots_per_row(width, widest);
  std::int64_t slots = 0;
  // A row plus a tile must also be countable in 32 bits.
  if (per_row > kMaxCount - kTileSlots ||
      __builtin_mul_overflow(rows, per_row, &slots)) {
    return std::nullopt;
  }
  const std::int64_t tiles = slots / kTileSlots + (slots % kTileSlots != 0);
  if (tiles > kMaxCount) return std::nullopt;
  return static_cast<std::uint32_t>(tiles);
}

template <class Params, class Item>
Item* items_of(Params& params) {
  if constexpr (std::is_same_v<Item, Segment>) {
    return params.segments;
  } else {
    return params.rectangles;
  }
}

template <class Params, class Item>
LaunchError launch_batch(RowTypes types, const RowsHeader& header,
                         const Item* items, void* stream) {
  Params params;
  params.header = header;
  std::copy_n(items, header.count, items_of<Params, Item>(params));
  return launch_rows(types, params, stream);
}

template <class Item>
constexpr std::size_t room(bool large) {
  if constexpr (std::is_same_v<Item, Segment>) {
    return large ? LargeRowsParams::kSegments : SmallRowsParams::kSegments;
  } else {
    return large ? LargeRowsParams::kRectangles : SmallRowsParams::kRectangles;
  }
}

std::int64_t rows_of(const RowsHeader& header, const Segment& segment) {
  return static_cast<std::int64_t>(segment.outer) * header.num_chunks;
}

std::int64_t rows_of(const RowsHeader&, const Rectangle& rectangle) {
  return rectangle.rows;
}

// Numbers the tiles of the items and launches them. One launch takes as many
// items as fit in its parameters and in 32 bits.
template <class Item>
LaunchError launch_items(RowTypes types, std::int64_t widest, RowsHeader header,
                         std::vector<Item> items, void* stream) {
  std::size_t begin = 0;
  while (begin < items.size()) {
    header.tiles = 0;
    std::size_t end = begin;
    for (; end < items.size() && end - begin < room<Item>(true); ++end) {
      Item& item = items[end];
      const std::uint32_t tiles =
          *tiles_of(rows_of(header, item), item.width, widest);
      if (tiles > kMaxCount - header.tiles) break;
      item.first_tile = header.tiles;
      header.tiles += tiles;
    }
    header.count = static_cast<std::uint32_t>(end - begin);
    const Item* first = items.data() + begin;
    const LaunchError error =
        header.count <= room<Item>(false)
            ? launch_batch<SmallRowsParams>(types, header, first, stream)
            : launch_batch<LargeRowsParams>(types, header, first, stream);
    if (error != 0) return error;
    begin = end;
  }
  return 0;
}

}  // namespace

Batches::Batches(const char* op, const Transform& transform)
    : op_(op),
      transform_(transform),
      from_(size_of(transform.from)),
      to_(size_of(transform.to)),
      plain_(transform.from == transform.to && transform.scale == 1.0) {}

RowsHeader Batches::header(RowKind kind) const {
  RowsHeader header{};
  header.kind = kind;
  header.num_chunks = 1;
  header.scale = transform_.scale;
  if (transform_.fill != nullptr) {
    for (std::int64_t i = 0; i < 16; i += to_) {
      std::memcpy(header.fill + i, transform_.fill,
                  static_cast<std::size_t>(to_));
    }
  }
  return header;
}

bool Batches::aligned(const Box& box) const {
  return address(box.dst) % static_cast<std::uint64_t>(to_) == 0 &&
         address(box.src) % static_cast<std::uint64_t>(from_) == 0;
}

void Batches::add_plan(const PackPlan& plan, RowKind kind) {
  segments_header_ = header(kind);
  segments_header_.chunk_stride = plan.chunk_stride();
  segments_header_.num_chunks = static_cast<std::uint32_t>(
      std::min<std::int64_t>(plan.num_chunks, kMaxCount));
  if (plan.num_chunks > kMaxCount) too_large_ = true;
  BoxList boxes;
  for (const PackItem& item : plan.items) {
    if (add_segment(plan, item, kind)) continue;
    if (kind == RowKind::kPack) {
      append_pack_boxes(plan, item, &boxes);
    } else {
      append_unpack_boxes(plan, item, &boxes);
    }
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) add_box(boxes[i]);
}

bool Batches::add_segment(const PackPlan& plan, const PackItem& item,
                          RowKind kind) {
  const std::int64_t packed_size = plan.packed.item_size();
  if (!contiguous(*item.tensor) || plan.column_stride() != packed_size) {
    return false;
  }
  // If several dims precede the shard dim, they must merge to one evenly spaced
  // dim.
  std::int64_t outer = 1;
  for (int d = 0; d < item.dim; ++d) outer *= item.tensor->sizes[d];
  std::int64_t outer_stride = 0;
  if (!plan.sharded && plan.lead > 0) {
    outer_stride = plan.packed.strides[plan.lead - 1];
    std::int64_t stride = outer_stride;
    for (int d = plan.lead - 1; d > 0; --d) {
      stride *= plan.packed.sizes[d];
      if (plan.packed.sizes[d - 1] != 1 &&
          plan.packed.strides[d - 1] != stride) {
        return false;
      }
    }
    // The stride 0 means adjacent rows.
    if (outer_stride == 0) return false;
  }
  segments_header_.outer_stride = outer_stride;
  const std::int64_t trailing = item.trailing();
  const std::byte* packed = plan.packed.data + item.column * packed_size;
  const bool pack = kind == RowKind::kPack;
  Segment segment{};
  segment.dst = address(pack ? packed : item.tensor->data);
  segment.src = address(pack ? item.tensor->data : packed);
  segment.width = item.chunk * trailing;
  segment.extent = item.tensor->sizes[item.dim] * trailing;
  if (!plain_ && (segment.dst % static_cast<std::uint64_t>(to_) != 0 ||
                  segment.src % static_cast<std::uint64_t>(from_) != 0)) {
    return false;
  }
  std::int64_t rows = 0;
  if (outer > kMaxCount ||
      __builtin_mul_overflow(outer, plan.num_chunks, &rows) ||
      rows > kMaxCount ||
      !tiles_of(rows, plain_ ? segment.width * to_ : segment.width,
                plain_ ? 1 : std::max(from_, to_))) {
    too_large_ = true;
    return true;
  }
  segment.outer = static_cast<std::uint32_t>(outer);
  segments_.push_back(segment);
  return true;
}

void Batches::add_part(const Box& box) {
  // The box is rows of the buffer that fill one tensor completely. simplify()
  // has dropped dims of size 1.
  BoxDim rows{1, 0, 0};
  BoxDim columns{1, to_, from_};
  if (box.rank > 0) columns = box.dims[box.rank - 1];
  if (box.rank == 1 && columns.src != from_) {
    rows = columns;
    columns = {1, to_, from_};
  } else if (box.rank == 2) {
    rows = box.dims[0];
  }
  const bool fits = box.rank <= 2 && columns.dst == to_ &&
                    columns.src == from_ && rows.size <= kMaxCount &&
                    (rows.size == 1 || rows.dst == columns.size * to_) &&
                    (plain_ || aligned(box)) &&
                    tiles_of(rows.size, columns.size * to_, 1);
  if (!fits) return add_box(box);
  if (segments_.empty()) {
    segments_header_ = header(RowKind::kUnpack);
    segments_header_.num_chunks = static_cast<std::uint32_t>(rows.size);
    segments_header_.chunk_stride = rows.src;
  }
  if (segments_header_.num_chunks != rows.size ||
      segments_header_.chunk_stride != rows.src) {
    return add_box(box);
  }
  segments_.push_back({.dst = address(box.dst),
                       .src = address(box.src),
                       .width = columns.size,
                       .extent = rows.size * columns.size,
                       .outer = 1,
                       .first_tile = 0});
}

void Batches::add_box(const Box& box) {
  const bool patterned = box.src == nullptr && transform_.fill != nullptr;
  const bool by_rows = (plain_ && !patterned) || aligned(box);
  if (!by_rows || transposes(box)) {
    elements_.push_back(box);
    return;
  }
  const BoxDim unit{1, to_, from_};
  const BoxDim& inner = box.rank > 0 ? box.dims[box.rank - 1] : unit;
  const bool dense = box.rank > 0 && inner.dst == to_ &&
                     (box.src == nullptr || inner.src == from_);
  Box rows = box;
  // A box that has no dense dim becomes rows of one element.
  if (!dense) rows.dims[rows.rank++] = unit;
  add_rectangles(rows);
}

// True if the box needs a launch of its own: it is dense on both sides, but
// along different dims.
bool Batches::transposes(const Box& box) const {
  if (box.src == nullptr || box.rank < 2 || from_ > 8 || !aligned(box)) {
    return false;
  }
  const BoxDim& inner = box.dims[box.rank - 1];
  if (inner.dst != to_ || inner.src == from_ ||
      inner.size < kWorthTransposing) {
    return false;
  }
  return std::any_of(box.dims.begin(), box.dims.begin() + box.rank - 1,
                     [this](const BoxDim& dim) {
                       return dim.src == from_ && dim.size >= kWorthTransposing;
                     }) &&
         box.count() >= kWorthLaunching;
}

void Batches::add_rectangles(Box box) {
  const int outer = box.rank - 1;
  // Dims that a rectangle cannot hold are unrolled.
  if (outer > kOuterDims) {
    const BoxDim first = box.dims[0];
    std::rotate(box.dims.begin(), box.dims.begin() + 1,
                box.dims.begin() + box.rank);
    --box.rank;
    for (std::int64_t i = 0; i < first.size; ++i) {
      add_rectangles(box);
      box.dst += first.dst;
      if (box.src != nullptr) box.src += first.src;
    }
    return;
  }
  Rectangle rectangle{};
  rectangle.dst = address(box.dst);
  rectangle.src = address(box.src);
  rectangle.width = box.dims[outer].size;
  rectangle.rank = static_cast<std::uint32_t>(outer);
  std::int64_t rows = 1;
  for (int d = 0; d < outer; ++d) {
    // The product stays in range: it is at most the size of the tensor.
    rows *= box.dims[d].size;
    rectangle.sizes[d] = static_cast<std::uint32_t>(box.dims[d].size);
    rectangle.dst_strides[d] = box.dims[d].dst;
    rectangle.src_strides[d] = box.dims[d].src;
  }
  if (rows > kMaxCount ||
      !tiles_of(rows, plain_ ? rectangle.width * to_ : rectangle.width,
                plain_ ? 1 : std::max(from_, to_))) {
    too_large_ = true;
    return;
  }
  rectangle.rows = static_cast<std::uint32_t>(rows);
  rectangles_.push_back(rectangle);
}

int Batches::unit(std::uint64_t common_alignment) const {
  if (!plain_) return 0;
  const std::uint64_t lowest = common_alignment & -common_alignment;
  return static_cast<int>(std::min<std::uint64_t>(lowest, 16));
}

Status Batches::launch(void* stream) {
  if (too_large_) {
    return {StatusCode::kUnsupported,
            message(op_, ": more rows or tiles of work than 32 bits count")};
  }
  if (Status status = launch_segments(stream); !status.ok()) return status;
  if (Status status = launch_rectangles(stream); !status.ok()) return status;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    Status status = launch_elements_of(elements_[i], stream);
    if (!status.ok()) return status;
  }
  return {};
}

Status Batches::failure(int error) const {
  if (error == 0) return {};
  return {StatusCode::kCuda, message(op_, ": ", describe(error))};
}

Status Batches::launch_segments(void* stream) const {
  if (segments_.empty()) return {};
  std::vector<Segment> segments = segments_;
  std::int64_t widest = std::max(from_, to_);
  std::uint64_t common =
      16U | static_cast<std::uint64_t>(segments_header_.chunk_stride) |
      static_cast<std::uint64_t>(segments_header_.outer_stride);
  for (const Segment& segment : segments) {
    common |= segment.dst | segment.src |
              static_cast<std::uint64_t>(segment.width * to_) |
              static_cast<std::uint64_t>(segment.extent * to_);
  }
  const int bytes = unit(common);
  if (bytes != 0) {
    widest = bytes;
    for (Segment& segment : segments) {
      segment.width = segment.width * to_ / bytes;
      segment.extent = segment.extent * to_ / bytes;
    }
  }
  return failure(launch_items({bytes, transform_.from, transform_.to}, widest,
                              segments_header_, std::move(segments), stream));
}

Status Batches::launch_rectangles(void* stream) const {
  if (rectangles_.empty()) return {};
  std::vector<Rectangle> rectangles = rectangles_;
  std::int64_t widest = std::max(from_, to_);
  std::uint64_t common = 16;
  for (const Rectangle& rectangle : rectangles) {
    common |= rectangle.dst | rectangle.src |
              static_cast<std::uint64_t>(rectangle.width * to_);
    for (std::uint32_t d = 0; d < rectangle.rank; ++d) {
      common |= static_cast<std::uint64_t>(rectangle.dst_strides[d]) |
                static_cast<std::uint64_t>(rectangle.src_strides[d]);
    }
  }
  int bytes = unit(common);
  if (bytes != 0) {
    // A fill value is one element, so units are elements.
    if (transform_.fill != nullptr) bytes = static_cast<int>(to_);
    widest = bytes;
    for (Rectangle& rectangle : rectangles) {
      rectangle.width = rectangle.width * to_ / bytes;
    }
  }
  return failure(launch_items({bytes, transform_.from, transform_.to}, widest,
                              header(RowKind::kRectangles),
                              std::move(rectangles), stream));
}

Status Batches::launch_elements_of(const Box& box, void* stream) const {
  ElementsParams params{};
  params.dst = address(box.dst);
  params.src = address(box.src);
  params.from = static_cast<std::int32_t>(transform_.from);
  params.to = static_cast<std::int32_t>(transform_.to);
  params.from_size = static_cast<std::int32_t>(from_);
  params.to_size = static_cast<std::int32_t>(to_);
  params.plain = plain_ ? 1 : 0;
  params.rank = static_cast<std::uint32_t>(box.rank);
  params.count = box.count();
  params.scale = transform_.scale;
  std::memcpy(params.fill, header(RowKind::kRectangles).fill,
              sizeof params.fill);
  auto dims = box.dims;
  if (box.rank == 0) {
    dims[0] = {1, to_, from_};
    params.rank = 1;
  }
  const auto end = dims.begin() + params.rank - 1;
  const bool by_squares = transposes(box);
  if (by_squares) {
    const auto dense = std::find_if(dims.begin(), end, [&](const BoxDim& dim) {
      return dim.src == from_ && dim.size >= kWorthTransposing;
    });
    std::rotate(dense, dense + 1, end);
  }
  for (std::uint32_t d = 0; d < params.rank; ++d) {
    params.sizes[d] = dims[d].size;
    params.dst_strides[d] = dims[d].dst;
    params.src_strides[d] = dims[d].src;
  }
  const auto ceil_div = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a / b + (a % b != 0));
  };
  if (!by_squares) {
    params.tiles = ceil_div(params.count, kTileSlots);
    return failure(launch_elements(params, stream));
  }
  params.tiles =
      ceil_div(end->size, kTileSide) * ceil_div((end - 1)->size, kTileSide);
  for (auto dim = dims.begin(); dim != end - 1; ++dim) {
    params.tiles *= static_cast<std::uint64_t>(dim->size);
  }
  return failure(launch_transposition(static_cast<int>(from_), params, stream));
}

}  // namespace shardprop::kernels::cuda
