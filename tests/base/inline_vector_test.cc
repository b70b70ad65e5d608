#include <shardprop/base/inline_vector.h>

#include "support/property.h"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::property;

using Small = InlineVector<std::int64_t, 3>;
using Model = std::vector<std::int64_t>;

bool same(const Small& vector, const Model& model) {
  if (vector.size() != model.size() || vector.empty() != model.empty()) {
    return false;
  }
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (vector[i] != model[i] || vector.data()[i] != model[i]) return false;
  }
  return model.empty() ||
         (vector.front() == model.front() && vector.back() == model.back());
}

// One random change to both.
void change(Small& vector, Model& model) {
  const auto value = *rc::gen::inRange<std::int64_t>(0, 9);
  const auto place = [&](std::size_t end) {
    return *rc::gen::inRange<std::size_t>(0, end);
  };
  const auto offset = [](std::size_t at) {
    return static_cast<std::ptrdiff_t>(at);
  };
  switch (*rc::gen::inRange(0, 12)) {
    case 0:
    case 1:
      vector.push_back(value);
      model.push_back(value);
      break;
    case 2:
      if (model.empty()) return;
      vector.pop_back();
      model.pop_back();
      break;
    case 3: {
      const std::size_t at = place(model.size() + 1);
      vector.insert(vector.begin() + at, value);
      model.insert(model.begin() + offset(at), value);
      break;
    }
    case 4: {
      if (model.empty()) return;
      const std::size_t at = place(model.size());
      vector.erase(vector.begin() + at);
      model.erase(model.begin() + offset(at));
      break;
    }
    case 5: {
      const std::size_t size = place(9);
      vector.resize(size, value);
      model.resize(size, value);
      break;
    }
    case 6: {
      const Model fresh(place(8), value);
      vector.assign(fresh.begin(), fresh.end());
      model = fresh;
      break;
    }
    case 7:  // an element of its own, while it grows
      if (model.empty()) return;
      vector.push_back(vector.front());
      model.push_back(Model(model).front());
      break;
    case 8: {
      if (model.empty()) return;
      const std::size_t at = place(model.size());
      vector.insert(vector.begin(), vector[at]);
      model.insert(model.begin(), Model(model)[at]);
      break;
    }
    case 9:
      vector.reserve(place(12));
      break;
    case 10:
      vector.clear();
      model.clear();
      break;
    case 11:
      if (model.empty()) return;
      vector[0] = value;
      model[0] = value;
      break;
    default:
      break;
  }
}

Small built(Model& model) {
  Small vector;
  const int steps = *rc::gen::inRange(0, 12);
  for (int i = 0; i < steps; ++i) change(vector, model);
  return vector;
}

TEST_CASE("an inline vector does what std::vector does") {
  property(30000, [] {
    Small vector;
    Model model;
    const int steps = *rc::gen::inRange(0, 40);
    for (int i = 0; i < steps; ++i) {
      change(vector, model);
      RC_ASSERT(same(vector, model));
    }
  });
}

TEST_CASE("copies are apart and moves leave nothing behind") {
  property(20000, [] {
    Model model;
    Small vector = built(model);
    Small copy = vector;
    RC_ASSERT(copy == vector);
    copy.push_back(1);
    RC_ASSERT(same(vector, model));

    Model other_model;
    Small other = built(other_model);
    other = vector;
    RC_ASSERT(same(other, model));
    const Small& self = other;
    other = self;
    RC_ASSERT(same(other, model));

    Small moved = std::move(vector);
    RC_ASSERT(same(moved, model));
    Model target_model;
    Small target = built(target_model);
    target = std::move(moved);
    RC_ASSERT(same(target, model));
    vector = Small{7};
    RC_ASSERT(same(vector, {7}));
  });
}

TEST_CASE("comparison is lexicographic") {
  property(20000, [] {
    Model a_model;
    Model b_model;
    const Small a = built(a_model);
    const Small b = built(b_model);
    RC_ASSERT((a == b) == (a_model == b_model));
    RC_ASSERT((a <=> b) == (a_model <=> b_model));
  });
}

TEST_CASE("every way of making one") {
  const std::array<std::int64_t, 5> many{1, 2, 3, 4, 5};
  CHECK(Small(2) == Small{0, 0});
  CHECK(Small(2, 7) == Small{7, 7});
  CHECK(Small(many.begin(), many.end()) == Small{1, 2, 3, 4, 5});
  CHECK(Small(std::span<const std::int64_t>(many)) == Small{1, 2, 3, 4, 5});
  CHECK(Small().empty());
  Small part{1, 2, 3, 4, 5};
  part.assign(part.begin() + 1, part.begin() + 3);
  CHECK(part == Small{2, 3});
}

}  // namespace
}  // namespace shardprop
