// Messages of an exchange as grids: the same messages in the same order, in few
// grids however many ranks there are.
#include "io/emit/message_grids.h"
#include "io/emit/regions.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using emit::Message;
using emit::MessageGrid;
using testing::value_of;

// Returns the messages that a grid represents.
std::vector<Message> messages_of(const MessageGrid& grid) {
  Message first;
  for (const auto& parts : grid.parts) first.push_back(parts[0]);
  std::vector<Message> out{first};
  for (std::size_t i = grid.order.size(); i-- > 0;) {
    const std::size_t d = grid.order[i];
    std::vector<Message> next;
    for (const Intervals& part : grid.parts[d]) {
      for (Message message : out) {
        message[d] = part;
        next.push_back(std::move(message));
      }
    }
    out = std::move(next);
  }
  return out;
}

std::vector<Message> messages_of(const std::vector<MessageGrid>& grids) {
  std::vector<Message> out;
  for (const MessageGrid& grid : grids) {
    for (Message& message : messages_of(grid)) {
      out.push_back(std::move(message));
    }
  }
  return out;
}

// Returns the messages of the first rank: to each rank under `dst`, a part of
// its shard under `src`.
std::vector<Message> sent(const std::string& mesh_text, const char* src,
                          const char* dst, const Dims& shape) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
  const Layout from = value_of(Layout::parse(src));
  const Layout to = value_of(Layout::parse(dst));
  const LocalRegion held =
      local_region(from, mesh, shape, mesh.coordinate_at_index(0));
  std::vector<Message> out;
  for (std::int64_t r = 0; r < mesh.size(); ++r) {
    const LocalRegion part = emit::common_part(
        held, local_region(to, mesh, shape, mesh.coordinate_at_index(r)));
    if (!part.empty()) out.push_back(emit::message(held, part));
  }
  return out;
}

TEST_CASE("grids have the messages in their order") {
  std::mt19937 draw(7);
  for (int round = 0; round < 2000; ++round) {
    // The messages are parts of a small grid; now and then another one is
    // between them.
    std::vector<Message> messages;
    const std::size_t rows = 1 + draw() % 4;
    const std::size_t columns = 1 + draw() % 4;
    const auto run = [&](std::size_t at, std::int64_t size) {
      const auto begin = static_cast<std::int64_t>(at) * 10;
      return Intervals{{begin, begin + size}};
    };
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        if (draw() % 8 == 0) continue;
        const std::int64_t width = draw() % 8 == 0 ? 3 : 2;
        messages.push_back({run(i, 2), run(j, width), run(0, 1)});
      }
    }
    const auto grids = emit::message_grids(messages);
    CHECK(messages_of(grids) == messages);
    std::int64_t all = 0;
    for (const MessageGrid& grid : grids) all += grid.numel();
    std::int64_t wanted = 0;
    for (const Message& message : messages) {
      std::int64_t size = 1;
      for (const Intervals& part : message) size *= emit::size_of(part);
      wanted += size;
    }
    CHECK(all == wanted);
  }
}

TEST_CASE("grids do not grow with the ranks") {
  struct Exchange {
    const char* few;
    const char* many;
    const char* src;
    const char* dst;
  };
  for (const Exchange& one :
       {Exchange{"4,4", "32,32", "S(0),S(1)", "SS(0,8),SS(0,8)"},
        Exchange{"4,4", "32,32", "R,S(1)", "S(0),S(0)"},
        Exchange{"2,2", "16,16", "S(0),S(1)", "S(1),S(0)"},
        Exchange{"8", "512", "S(0)", "SS(0,4)"}}) {
    CAPTURE(one.src);
    CAPTURE(one.dst);
    const Dims shape{8192, 1024};
    CHECK(emit::message_grids(sent(one.few, one.src, one.dst, shape)).size() <=
          2);
    CHECK(emit::message_grids(sent(one.many, one.src, one.dst, shape)).size() <=
          2);
  }
}

}  // namespace
}  // namespace shardprop
