#include "report/plan_overlap_json.h"

namespace shardprop {
namespace {

void write_window(JsonText& json, const PlannedWindow& window) {
  json.open('{').member("begins_at", window.begins_at);
  json.member("compute_us",
              static_cast<double>(window.compute_nanoseconds) / 1000);
  json.member("overlappable_us",
              static_cast<double>(window.overlappable_nanoseconds) / 1000);
  if (window.micro_batches != MicroBatches::kAll) {
    json.member("micro_batches", to_string(window.micro_batches));
  }
  json.close('}');
}

}  // namespace

void write_overlap(JsonText& json, const Plan& plan) {
  if (!plan.overlap_multipliers.empty()) {
    json.member("overlap_multipliers", plan.overlap_multipliers);
  }
  if (plan.windows.empty()) return;
  json.key("overlap_windows").list(plan.windows, [&](const PlannedWindow& one) {
    write_window(json, one);
  });
}

}  // namespace shardprop
