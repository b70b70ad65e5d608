// Lists layouts that the target framework cannot express, with equal layers
// once.
#pragma once

#include <shardprop/report/unsaid_layout.h>

#include <string>
#include <vector>

namespace shardprop {

void add_unsaid(std::vector<UnsaidLayout>& list, const std::string& value,
                const Layout& layout, std::string why);

}  // namespace shardprop
