// Compares the instruction sets with each other and with exact results.

#include <bit>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "../src/cpu/rows.h"
#include "check.h"
#include "reference.h"

namespace shardprop::kernels::testing {
namespace {

using cpu::all_row_kernels;
using cpu::Panel;
using cpu::RowKernels;

bool full_counts() {
  const char* full = std::getenv("SHARDPROP_FULL");
  return full != nullptr && std::string(full) == "1";
}

std::vector<std::uint64_t> all_bits(DType dtype) {
  std::vector<std::uint64_t> bits;
  if (dtype != DType::kFloat32) {
    for (std::uint64_t i = 0; i < 1ULL << (8 * size_of(dtype)); ++i) {
      bits.push_back(i);
    }
    return bits;
  }
  // Every 65,537th f32 (4,099th at full counts), and the neighbours of every
  // number of the narrower types and of the midpoints between two numbers, at
  // which rounding changes.
  const std::uint64_t apart = full_counts() ? 4099 : 65537;
  for (std::uint64_t i = 0; i < 1ULL << 32; i += apart) bits.push_back(i);
  for (const DType narrow : {DType::kFloat16, DType::kBFloat16,
                             DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
    for (const std::uint64_t at : all_bits(narrow)) {
      const auto here = std::bit_cast<std::uint32_t>(
          static_cast<float>(number_of(at, narrow)));
      const auto next = std::bit_cast<std::uint32_t>(
          static_cast<float>(number_of(at + 1, narrow)));
      const std::uint32_t middle = here + (next - here) / 2;
      for (std::uint32_t off = 0; off < 3; ++off) {
        bits.push_back(here + off - 1);
        bits.push_back(middle + off - 1);
      }
    }
  }
  return bits;
}

TEST("every instruction set rounds every number to the nearest") {
  for (int from = 0; from < kCastableCount; ++from) {
    const auto source = static_cast<DType>(from);
    const std::vector<std::uint64_t> bits = all_bits(source);
    const std::int64_t item = size_of(source);
    std::vector<std::byte> in(bits.size() * static_cast<std::size_t>(item));
    for (std::size_t i = 0; i < bits.size(); ++i) {
      std::memcpy(&in[i * static_cast<std::size_t>(item)], &bits[i],
                  static_cast<std::size_t>(item));
    }
    for (int to = 0; to < kCastableCount; ++to) {
      const auto target = static_cast<DType>(to);
      const auto size = static_cast<std::size_t>(size_of(target));
      std::vector<std::uint64_t> want(bits.size());
      for (std::size_t i = 0; i < bits.size(); ++i) {
        want[i] =
            nearest(static_cast<float>(number_of(bits[i], source)), target);
      }
      for (const RowKernels* kernels : all_row_kernels()) {
        for (const bool stream : {false, true}) {
          // Off by an element, so that streaming starts within a line.
          std::vector<std::byte> out((bits.size() + 1) * size);
          kernels->cast[from][to](
              {.dst = out.data() + size,
               .src = in.data(),
               .dst_stride = 0,
               .src_stride = 0,
               .rows = 1,
               .width = static_cast<std::int64_t>(bits.size())},
              1.0F, stream);
          int wrong = 0;
          for (std::size_t i = 0; i < bits.size(); ++i) {
            std::uint64_t got = 0;
            std::memcpy(&got, &out[(i + 1) * size], size);
            if (!same(got, want[i], target)) ++wrong;
          }
          CHECK_FOR(wrong == 0, std::string(kernels->name) + " " +
                                    std::string(to_string(source)) + " to " +
                                    std::string(to_string(target)) + ": " +
                                    std::to_string(wrong) + " wrong");
        }
      }
    }
  }
}

TEST("a streamed cast of any number of pages equals a cached one") {
  constexpr std::int64_t kMost = 9 * 2048 + 70;  // pages of the narrower side
  std::vector<float> in(kMost);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1.5F * float(i);
  const auto f32 = static_cast<int>(DType::kFloat32);
  const auto bf16 = static_cast<int>(DType::kBFloat16);
  for (const RowKernels* kernels : all_row_kernels()) {
    for (std::int64_t width = 0; width <= kMost; width += 61) {
      std::vector<std::uint16_t> narrow[2];
      std::vector<float> wide[2];
      for (const bool stream : {false, true}) {
        // One more element, which no kernel may write.
        narrow[stream].assign(static_cast<std::size_t>(width) + 1, 7);
        wide[stream].assign(static_cast<std::size_t>(width) + 1, 7.0F);
        Panel panel{.dst = reinterpret_cast<std::byte*>(narrow[stream].data()),
                    .src = reinterpret_cast<const std::byte*>(in.data()),
                    .dst_stride = 0,
                    .src_stride = 0,
                    .rows = 1,
                    .width = width};
        kernels->cast[f32][bf16](panel, 1.0F, stream);
        panel.src = panel.dst;
        panel.dst = reinterpret_cast<std::byte*>(wide[stream].data());
        kernels->cast[bf16][f32](panel, 1.0F, stream);
      }
      CHECK_FOR(narrow[0] == narrow[1] && wide[0] == wide[1] &&
                    narrow[1].back() == 7 && wide[1].back() == 7.0F,
                std::string(kernels->name) + ", " + std::to_string(width));
    }
  }
}

TEST("every instruction set copies, fills and transposes alike") {
  std::mt19937_64 random(1);
  constexpr std::int64_t kRows = 3;
  for (int round = 0; round < 600; ++round) {
    // First all short widths, which include the limits of each loop, then any
    // width.
    const std::int64_t width =
        round < 300 ? round : static_cast<std::int64_t>(random() % 900);
    const auto length = static_cast<std::size_t>(width);
    const auto gap = static_cast<std::size_t>(random() % 3);
    const std::size_t shift = random() % 64;
    std::vector<std::byte> in(kRows * (length + 5) + 64);
    for (std::byte& byte : in) byte = static_cast<std::byte>(random());
    cpu::Pattern pattern;
    for (std::size_t i = 0; i < 64; ++i) pattern.bytes[i] = in[i % 16];
    for (const RowKernels* kernels : all_row_kernels()) {
      for (const bool stream : {false, true}) {
        std::vector<std::byte> out(kRows * (length + gap) + 128,
                                   std::byte{0xA5});
        std::vector<std::byte> want = out;
        const Panel panel{.dst = out.data() + shift,
                          .src = in.data() + 7,
                          .dst_stride = static_cast<std::int64_t>(length + gap),
                          .src_stride = width + 5,
                          .rows = kRows,
                          .width = width};
        kernels->copy(panel, stream);
        for (std::size_t r = 0; r < kRows; ++r) {
          std::memcpy(want.data() + shift + r * (length + gap),
                      in.data() + 7 + r * (length + 5), length);
        }
        CHECK_FOR(out == want, kernels->name);
        kernels->fill(panel, pattern, stream);
        for (std::size_t r = 0; r < kRows; ++r) {
          for (std::size_t i = 0; i < length; ++i) {
            want[shift + r * (length + gap) + i] = pattern.bytes[i % 16];
          }
        }
        CHECK_FOR(out == want, kernels->name);
      }
    }
  }
}

TEST("every instruction set accumulates alike") {
  std::mt19937_64 random(2);
  constexpr std::int64_t kCount = 203;
  std::vector<std::byte> start(kCount * 8);
  std::vector<std::byte> in(kCount * 8);
  for (std::byte& byte : start) byte = static_cast<std::byte>(random() & 0x3f);
  for (std::byte& byte : in) byte = static_cast<std::byte>(random() & 0x3f);
  for (int op = 0; op < kReduceOpCount; ++op) {
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      std::vector<std::byte> first;
      for (const RowKernels* kernels : all_row_kernels()) {
        const auto accumulate = kernels->accumulate[op][dtype];
        if (accumulate == nullptr) continue;
        std::vector<std::byte> sums = start;
        accumulate(sums.data(), in.data(), kCount);
        CHECK(sums != start);
        if (first.empty()) first = sums;
        CHECK_FOR(sums == first, std::string(kernels->name) + " op " +
                                     std::to_string(op) + " dtype " +
                                     std::to_string(dtype));
      }
    }
  }
}

}  // namespace
}  // namespace shardprop::kernels::testing
