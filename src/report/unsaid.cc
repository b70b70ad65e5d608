#include "report/unsaid.h"

#include "base/name_folding.h"

#include <utility>

namespace shardprop {

void add_unsaid(std::vector<UnsaidLayout>& list, const std::string& value,
                const Layout& layout, std::string why) {
  const std::string name = starred_name(value);
  for (UnsaidLayout& known : list) {
    if (starred_name(known.value) != name || known.why != why ||
        known.layout != layout) {
      continue;
    }
    known.value = name;
    ++known.values;
    return;
  }
  list.push_back({value, 1, layout, std::move(why)});
}

}  // namespace shardprop
