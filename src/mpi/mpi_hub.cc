#include "mpi/mpi_hub.h"

#include <shardprop/base/error.h>

#include "base/try.h"
#include "collective/group_key.h"
#include "collective/never_free.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

namespace shardprop::mpi {
namespace {

using namespace std::chrono_literals;

// The polls of a wait before it sleeps between polls. A sleep is a share of the
// time that the wait has taken, up to a limit.
constexpr int kEagerPolls = 200;
constexpr int kNapShare = 16;
constexpr std::chrono::nanoseconds kLongestNap = 500us;

// The time for messages about a failure to be sent.
constexpr auto kFarewell = 100ms;

std::string rank_list(const std::vector<std::int64_t>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    out += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return out;
}

}  // namespace

MpiHub::MpiHub(MpiOptions options)
    : options_([&] {
        options.common.timeout = within_clock(options.common.timeout);
        return options;
      }()) {}

Result<std::shared_ptr<MpiHub>> MpiHub::create(const MpiOptions& options) {
  constexpr std::int64_t kMostPart = std::numeric_limits<int>::max();
  if (options.largest_part < 1 || options.largest_part > kMostPart) {
    return shardprop::fail(
        ErrorCode::kInvalidArgument,
        "MpiOptions::largest_part is " + std::to_string(options.largest_part),
        "give a number from 1 to " + std::to_string(kMostPart) +
            ", as MPI counts in int");
  }
  std::shared_ptr<MpiHub> hub(new MpiHub(options));
  SP_CHECK(hub->open());
  return hub;
}

Result<void> MpiHub::open() {
  int there = 0;
  int gone = 0;
  SP_CHECK(checked(MPI_Finalized(&gone), "MPI_Finalized"));
  if (gone != 0) {
    return shardprop::fail(ErrorCode::kEngine,
                           "MPI has been finalised in this process");
  }
  SP_CHECK(checked(MPI_Initialized(&there), "MPI_Initialized"));
  int level = MPI_THREAD_SINGLE;
  if (there == 0) {
    SP_CHECK(checked(
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
        "MPI_Init_thread"));
    initialised_ = true;
  } else {
    SP_CHECK(checked(MPI_Query_thread(&level), "MPI_Query_thread"));
  }
  main_thread_only_ = level < MPI_THREAD_SERIALIZED;
  SP_CHECK(check_thread());
  const MPI_Comm parent =
      options_.parent ? MPI_Comm_f2c(*options_.parent) : MPI_COMM_WORLD;
  SP_ASSIGN(world_, duplicate(parent));
  SP_ASSIGN(const MPI_Comm control, duplicate(world_));
  control_ = MpiControl(control);
  int rank = 0;
  int size = 1;
  SP_CHECK(checked(MPI_Comm_rank(world_, &rank), "MPI_Comm_rank"));
  SP_CHECK(checked(MPI_Comm_size(world_, &size), "MPI_Comm_size"));
  rank_ = rank;
  size_ = size;
  nan_ops_ = std::make_unique<NanOps>();
  return {};
}

Result<MPI_Comm> MpiHub::duplicate(MPI_Comm from) {
  // MPI writes it when all ranks have arrived, even after an error.
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  SP_CHECK(checked(MPI_Comm_idup(from, made.get(), &request), "MPI_Comm_idup"));
  const auto deadline = Clock::now() + options_.common.timeout;
  int done = 0;
  while (done == 0) {
    Result<void> tested =
        checked(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (tested && done == 0 && Clock::now() > deadline) {
      tested = shardprop::fail(
          ErrorCode::kTimeout,
          "not every rank came to set up MPI communication within " +
              std::to_string(options_.common.timeout.count()) + " ms");
    }
    if (!tested) {
      collective::never_free(std::move(made));
      return shardprop::fail(std::move(tested).error());
    }
  }
  SP_CHECK(checked(MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN),
                   "MPI_Comm_set_errhandler"));
  return *made;
}

Result<void> MpiHub::check_thread() const {
  int main_thread = 1;
  if (main_thread_only_) MPI_Is_thread_main(&main_thread);
  if (main_thread != 0) return {};
  return shardprop::fail(ErrorCode::kEngine,
                         "MPI was initialised for its main thread only",
                         "initialise it with MPI_THREAD_SERIALIZED or more");
}

bool MpiHub::poll(Clock::time_point deadline,
                  const std::function<bool()>& done) {
  const auto begin = Clock::now();
  for (int polls = 0;; ++polls) {
    progress();
    if (done()) return true;
    const auto now = Clock::now();
    if (failure() || now > deadline) return false;
    if (polls < kEagerPolls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min(
          kLongestNap, std::chrono::nanoseconds((now - begin) / kNapShare)));
    }
  }
}

Result<MpiGroup*> MpiHub::group(const Group& group, Group::Place place,
                                std::chrono::milliseconds timeout) {
  const auto found = groups_.find(group);
  if (found != groups_.end()) return found->second.get();
  auto made = std::make_unique<MpiGroup>();
  made->ranks = group.list(place.list);
  made->index = place.index;
  made->key = collective::wire_key(group);
  SP_CHECK(meet(made->ranks, made->key, to_string(group), timeout));

  const std::vector<int> ranks(made->ranks.begin(), made->ranks.end());
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  SP_CHECK(checked(MPI_Comm_group(world_, &all), "MPI_Comm_group"));
  SP_CHECK(checked(MPI_Group_incl(all, static_cast<int>(ranks.size()),
                                  ranks.data(), &members),
                   "MPI_Group_incl"));
  // All members have just reported that they are about to make this call.
  const int tag = static_cast<int>(made->key % 32768);
  const int code =
      MPI_Comm_create_group(world_, members, tag, &made->communicator);
  MPI_Group_free(&members);
  MPI_Group_free(&all);
  SP_CHECK(checked(code, "MPI_Comm_create_group"));
  SP_CHECK(
      checked(MPI_Comm_set_errhandler(made->communicator, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler"));
  return groups_.emplace(group, std::move(made)).first->second.get();
}

Result<void> MpiHub::meet(const Group::Ranks& ranks, std::uint64_t key,
                          const std::string& name,
                          std::chrono::milliseconds timeout) {
  ControlMessage ready;
  ready.kind = ControlMessage::Kind::kReady;
  ready.group = key;
  for (const std::int64_t rank : ranks) {
    if (rank != rank_) control_.send(rank, ready);
  }
  const bool met = poll_and_ask(
      {.what = "the set-up of group " + name, .ranks = ranks, .key = key},
      timeout, [&] {
        const auto& there = ready_[key];
        return std::all_of(ranks.begin(), ranks.end(), [&](std::int64_t rank) {
          return rank == rank_ || there.contains(rank);
        });
      });
  if (!met) return shardprop::fail(*failure());
  ready_.erase(key);
  return {};
}

bool MpiHub::poll_and_ask(Waiting waiting, std::chrono::milliseconds timeout,
                          const std::function<bool()>& done) {
  const auto begin = Clock::now();
  waiting_.emplace(std::move(waiting));
  answers_.clear();
  bool in_time = poll(begin + timeout / 2, done);
  // Asks repeatedly, because the members asked may wait for other ranks, which
  // they ask in the meantime.
  for (int eighths = 5; !in_time && !failure() && eighths <= 8; ++eighths) {
    ControlMessage where;
    where.kind = ControlMessage::Kind::kWhere;
    where.group = waiting_->key;
    for (const std::int64_t rank : waiting_->ranks) {
      if (rank != rank_) control_.send(rank, where);
    }
    in_time = poll(begin + timeout * eighths / 8, done);
    waiting_->has_asked = true;
  }
  if (!in_time && !failure()) fail(late(timeout), true);
  waiting_.reset();
  return in_time;
}

void MpiHub::take(std::int64_t from, const ControlMessage& message) {
  switch (message.kind) {
    case ControlMessage::Kind::kFailure:
      fail(Error{static_cast<ErrorCode>(message.code), message.text}, false);
      return;
    case ControlMessage::Kind::kWhere: {
      ControlMessage here;
      here.kind = ControlMessage::Kind::kHere;
      here.group = message.group;
      for (const auto& [group, made] : groups_) {
        if (made->key == message.group) here.call = made->calls;
      }
      here.set_text(where_am_i());
      control_.send(from, here);
      return;
    }
    case ControlMessage::Kind::kHere:
      if (waiting_ && message.group == waiting_->key) {
        answers_[from] = {message.call, message.text};
      }
      return;
    case ControlMessage::Kind::kReady:
      ready_[message.group].insert(from);
      return;
  }
}

void MpiHub::progress() {
  advance_pending();
  const Result<void> heard = control_.receive(
      [this](std::int64_t from, const ControlMessage& message) {
        take(from, message);
      });
  if (!heard && !failure()) fail(heard.error(), false);
  control_.flush();
}

void MpiHub::stop(bool tell) {
  if (!tell) return;
  ControlMessage message;
  message.kind = ControlMessage::Kind::kFailure;
  message.code = static_cast<std::int32_t>(failure()->code);
  std::string text = failure()->message;
  for (const std::string& note : failure()->notes) text += "; " + note;
  message.set_text(text);
  for (std::int64_t rank = 0; rank < size_; ++rank) {
    if (rank != rank_) control_.send(rank, message);
  }
  const auto deadline = Clock::now() + kFarewell;
  while (!control_.flush() && Clock::now() < deadline) {
    std::this_thread::sleep_for(kLongestNap);
  }
  control_.abandon();
}

Result<void> MpiHub::wait(collective::StagedOp& waited,
                          std::chrono::milliseconds timeout) {
  // All operations of this hub are MpiOps.
  auto& op = static_cast<MpiOp&>(waited);
  if (!op.over()) {
    poll_and_ask({.what = op.describe(),
                  .ranks = op.group().ranks,
                  .key = op.group().key,
                  .call = op.number()},
                 timeout, [&op] { return op.over(); });
  }
  return ending(op, rank_);
}

std::vector<std::int64_t> MpiHub::missing() const {
  const auto ready = ready_.find(waiting_->key);
  const auto has_come = [&](std::int64_t rank) {
    if (!waiting_->call) {
      return ready != ready_.end() && ready->second.contains(rank);
    }
    const auto answer = answers_.find(rank);
    return answer != answers_.end() && answer->second.call > *waiting_->call;
  };
  std::vector<std::int64_t> out;
  for (const std::int64_t rank : waiting_->ranks) {
    if (rank != rank_ && !has_come(rank)) out.push_back(rank);
  }
  return out;
}

std::string MpiHub::where_is(std::int64_t rank) const {
  const auto answer = answers_.find(rank);
  return "rank " + std::to_string(rank) + ' ' +
         (answer == answers_.end() ? "does not answer" : answer->second.text);
}

std::string MpiHub::where_am_i() const {
  if (!waiting_) return "is in no collective";
  std::string text = "is in " + waiting_->what;
  if (!waiting_->has_asked) return text;
  for (const std::int64_t rank : missing()) text += ", where " + where_is(rank);
  return text;
}

Error MpiHub::late(std::chrono::milliseconds timeout) const {
  const std::string within =
      " within " + std::to_string(timeout.count()) + " ms";
  const std::vector<std::int64_t> late = missing();
  if (late.empty()) {
    return {ErrorCode::kTimeout, waiting_->what + " did not finish" + within +
                                     " though all members came"};
  }
  std::vector<std::string> notes;
  notes.reserve(late.size());
  for (const std::int64_t rank : late) notes.push_back(where_is(rank));
  return {ErrorCode::kTimeout,
          rank_list(late) + " did not come to " + waiting_->what + within,
          {},
          std::move(notes)};
}

void MpiHub::close() {
  // Waits for pending operations, and for the other ranks, which MPI_Finalize
  // waits for too.
  const auto deadline = Clock::now() + options_.common.timeout;
  if (!poll(deadline, [this] { return all_over(); })) return;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(world_, &request) != MPI_SUCCESS) return;
  int there = 0;
  const bool met = poll(deadline, [&] {
    return MPI_Test(&request, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           there != 0;
  });
  if (!met || !control_.flush()) return;
  nan_ops_.reset();
  for (auto& [group, made] : groups_) MPI_Comm_free(&made->communicator);
  MPI_Comm control = control_.communicator();
  MPI_Comm_free(&control);
  MPI_Comm_free(&world_);
  if (initialised_) MPI_Finalize();
}

MpiHub::~MpiHub() {
  int gone = 0;
  MPI_Finalized(&gone);
  if (gone == 0 && world_ != MPI_COMM_NULL &&
      control_.communicator() != MPI_COMM_NULL && !failure()) {
    close();
  }
  control_.abandon();
  if (nan_ops_ != nullptr) {
    // After a failure, or if other code has finalised MPI, the handles are
    // leaked.
    collective::never_free(std::move(nan_ops_));
  }
}

}  // namespace shardprop::mpi
