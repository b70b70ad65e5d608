#include "mpi/mpi_match.h"

#include "base/index.h"
#include "base/try.h"
#include "collective/call_record.h"
#include "collective/direct_collectives.h"

namespace shardprop::mpi {

Result<void> post_matched(MpiOp& op) {
  return op.begin([](collective::StagedOp& staged) -> Result<void> {
    const auto mine = collective::call_records(staged.call(), staged.ranks());
    const auto theirs = collective::no_records(staged.ranks());
    staged.keep(mine);
    staged.keep(theirs);
    for (std::int64_t peer = 0; peer < staged.size(); ++peer) {
      if (peer == staged.index()) continue;
      const auto r = index(peer);
      SP_CHECK(staged.send(peer, collective::record_bytes(mine, r)));
      SP_CHECK(staged.receive(peer, collective::record_bytes(theirs, r)));
    }
    staged.then([mine, theirs](collective::StagedOp& self) -> Result<void> {
      SP_CHECK(collective::compare_records(
          self.ranks(), static_cast<std::size_t>(self.index()), *mine,
          *theirs));
      return collective::post_directly(self);
    });
    return {};
  });
}

}  // namespace shardprop::mpi
