#include <shardprop/report/plan_trace.h>

#include "base/quantities.h"
#include "io/json_text.h"
#include "report/mesh_json.h"

#include <shardprop/report/plan_sentences.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

constexpr int kCompute = 1;
constexpr int kCommunication = 2;

class Timeline {
 public:
  explicit Timeline(const Plan& plan)
      : plan_(plan), reasons_(reasons_in_words(plan)) {
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      const PlannedCopy& copy = plan.copies[c];
      const auto& flight = copy.in_flight;
      sends_[flight ? flight->issued_at : copy.produced_at].push_back(c);
      if (flight) waits_[flight->waited_at].push_back(c);
    }
  }

  std::string run() {
    json_.open('{').member("displayTimeUnit", "ms").key("traceEvents");
    json_.open('[');
    line(kCompute, "compute");
    line(kCommunication, "communication");
    std::int64_t at = 0;
    for (const PlannedNode& node : plan_.nodes) {
      copies_before(at++);
      compute(node.name, node.compute_nanoseconds, node.op, node.module_path,
              node.source);
      for (const CollectiveStep& step : node.inside) {
        send(node.name, step, {});
        now_ += step.nanoseconds;
      }
    }
    for (const PlannedUpdate& update : plan_.updates) {
      copies_before(at++);
      compute(update.result.name, update.compute_nanoseconds, update.op,
              update.module_path, {});
    }
    copies_before(at);
    write_transfers();
    json_.close(']').close('}');
    return json_.take() + "\n";
  }

 private:
  struct Transfer {
    std::string name;
    const CollectiveStep* step = nullptr;
    std::string_view reason;
    std::int64_t start = 0;
  };

  void line(int thread, std::string_view name) {
    json_.open('{').member("name", "thread_name").member("ph", "M");
    json_.member("pid", 1).member("tid", thread).key("args").open('{');
    json_.member("name", name).close('}').close('}');
  }

  void begin_event(std::string_view name, int thread, std::int64_t start,
                   std::int64_t length) {
    json_.open('{').member("name", name).member("ph", "X");
    json_.member("ts", microseconds(start)).member("dur", microseconds(length));
    json_.member("pid", 1).member("tid", thread).key("args").open('{');
  }

  void compute(std::string_view name, std::int64_t nanoseconds,
               std::string_view op, std::string_view module,
               std::string_view source) {
    begin_event(name, kCompute, now_, nanoseconds);
    json_.member("op", op).member("module", module);
    if (!source.empty()) json_.member("source", source);
    json_.close('}').close('}');
    now_ += nanoseconds;
  }

  // Adds a transfer after the pending ones.
  void send(const std::string& of, const CollectiveStep& step,
            std::string_view reason) {
    line_free_ = std::max(line_free_, now_);
    transfers_.push_back({std::string(to_string(step.kind)) + " " + of, &step,
                          reason, line_free_});
    line_free_ += step.nanoseconds;
  }

  // Compute goes on while a transfer is in flight. It stops at the wait for the
  // time that does not overlap.
  void copies_before(std::int64_t at) {
    for (const std::size_t c : waits_[at]) wait_for(plan_.copies[c]);
    for (const std::size_t c : sends_[at]) {
      const PlannedCopy& copy = plan_.copies[c];
      for (const RedistributeStep& step : copy.steps) {
        send(copy.from, step, reasons_[c]);
      }
      if (!copy.in_flight) wait_for(copy);
    }
  }

  void wait_for(const PlannedCopy& copy) {
    now_ += copy.nanoseconds() - copy.overlapped_nanoseconds;
    if (copy.cut_nanoseconds > 0) {
      compute(copy.from, copy.cut_nanoseconds, "copy", {}, {});
    }
  }

  // The prices let the last transfers overlap with compute that ends before
  // they begin. These transfers are moved forward, so that the track ends with
  // the step.
  void write_transfers() {
    std::int64_t end = now_;
    for (std::size_t i = transfers_.size(); i-- > 0;) {
      Transfer& transfer = transfers_[i];
      transfer.start =
          std::min(transfer.start, end - transfer.step->nanoseconds);
      end = transfer.start;
    }
    for (const Transfer& transfer : transfers_) {
      begin_event(transfer.name, kCommunication, transfer.start,
                  transfer.step->nanoseconds);
      json_.key("mesh_dims");
      write_dim_names(json_, transfer.step->mesh_dims, plan_.mesh);
      json_.member("bytes_per_rank", transfer.step->bytes_per_rank);
      if (!transfer.reason.empty()) json_.member("reason", transfer.reason);
      json_.close('}').close('}');
    }
  }

  const Plan& plan_;
  std::vector<std::string> reasons_;  // by copy
  // The copies that start in each slot, and those for which the program waits there.
  std::map<std::int64_t, std::vector<std::size_t>> sends_;
  std::map<std::int64_t, std::vector<std::size_t>> waits_;
  JsonText json_;
  std::vector<Transfer> transfers_;
  std::int64_t now_ = 0;        // on the line of compute
  std::int64_t line_free_ = 0;  // of communication
};

}  // namespace

std::string plan_to_trace(const Plan& plan) { return Timeline(plan).run(); }

}  // namespace shardprop
