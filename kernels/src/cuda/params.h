#pragma once

#include <cstddef>
#include <cstdint>

// The kernel parameters, which are passed to the device by value. Addresses are
// integers, so that tests can run the same code on the host.
namespace shardprop::kernels::cuda {

inline constexpr std::size_t kMaxParamBytes = 32764;  // since CUDA 12.1
inline constexpr std::uint32_t kThreads = 128;        // of a block
inline constexpr std::uint32_t kBlocksPerSm = 5;      // that the grid asks for
// The vectors that a thread moves at a time, so that as many loads are in
// flight.
inline constexpr std::uint32_t kUnroll = 4;
inline constexpr std::uint32_t kTileSlots = kThreads * kUnroll;

// One tensor and its columns of a packed buffer, both contiguous within a row.
// There are outer x num_chunks rows (a, k) of `width` elements. In the tensor
// the rows are adjacent, and each a has `extent` elements, so its last chunks
// may be shorter. In the packed buffer the rows are strides apart.
struct Segment {
  std::uint64_t dst;
  std::uint64_t src;
  std::int64_t width;   // elements
  std::int64_t extent;  // elements
  std::uint32_t outer;
  std::uint32_t first_tile;
};

// Rows of adjacent elements with any strides. If src is 0, they are filled.
inline constexpr int kOuterDims = 6;
struct Rectangle {
  std::uint64_t dst;
  std::uint64_t src;
  std::int64_t width;  // elements
  std::uint32_t rank;
  std::uint32_t first_tile;
  std::uint32_t rows;
  std::uint32_t sizes[kOuterDims];
  std::int64_t dst_strides[kOuterDims];  // bytes
  std::int64_t src_strides[kOuterDims];  // bytes
};

enum class RowKind : std::uint32_t { kPack, kUnpack, kRectangles };

struct RowsHeader {
  RowKind kind;
  std::uint32_t count;  // of segments or rectangles
  std::uint32_t tiles;  // of all of them
  std::uint32_t num_chunks;
  // Strides of the packed buffer in bytes. If outer_stride is 0, the rows of
  // one chunk are adjacent.
  std::int64_t outer_stride;
  std::int64_t chunk_stride;
  double scale;
  // One vector of the value that fills rows without a source.
  alignas(16) std::uint8_t fill[16];
};

// The cost of a launch depends on the size of its parameters, so short lists
// use a small block.
template <std::size_t kBytes>
struct RowsParams {
  RowsHeader header;
  static constexpr std::size_t kRoom = kBytes - sizeof(RowsHeader);
  static constexpr std::size_t kSegments = kRoom / sizeof(Segment);
  static constexpr std::size_t kRectangles = kRoom / sizeof(Rectangle);
  union {
    Segment segments[kSegments];
    Rectangle rectangles[kRectangles];
  };
};

using SmallRowsParams = RowsParams<4096>;
// The limit, rounded down to the alignment.
using LargeRowsParams = RowsParams<kMaxParamBytes / 16 * 16>;
static_assert(sizeof(LargeRowsParams) <= kMaxParamBytes);
static_assert(LargeRowsParams::kSegments >= 500);

// A rectangle that is moved element by element. Its sides are dense along
// different dims or not dense, or they are not aligned to their elements. Types
// are DType numbers.
inline constexpr int kElementDims = 17;
inline constexpr std::uint32_t kTileSide = 32;
struct ElementsParams {
  std::uint64_t dst;
  std::uint64_t src;  // 0: fill
  std::int32_t from;
  std::int32_t to;
  std::int32_t from_size;  // bytes
  std::int32_t to_size;    // bytes
  std::uint32_t plain;     // bits are copied
  std::uint32_t rank;      // at least 1; 2 for a transposition
  std::uint64_t tiles;     // of kTileSlots elements, or of kTileSide squared
  std::int64_t count;      // elements
  double scale;
  std::int64_t sizes[kElementDims];
  std::int64_t dst_strides[kElementDims];  // bytes
  std::int64_t src_strides[kElementDims];  // bytes
  alignas(16) std::uint8_t fill[16];
};

// Operand 0 is the output. `words` has the address of each operand and, unless
// it is dense, its strides in bytes.
struct ReduceParams {
  std::int32_t op;
  std::uint32_t inputs;
  std::uint32_t rank;
  std::uint32_t dense;  // all operands are, and aligned to whole vectors
  std::uint32_t loose;  // some operand is not aligned to its elements
  std::uint64_t tiles;  // of kThreads vectors or elements
  std::int64_t count;   // elements
  double scale;
  std::int64_t sizes[16];
  static constexpr std::size_t kWords = 480;
  std::int64_t words[kWords];
};
static_assert(sizeof(ReduceParams) <= 4096);

}  // namespace shardprop::kernels::cuda
