#include <shardprop/ops/op_proofs.h>

#include <algorithm>
#include <map>

namespace shardprop {

extern const std::string_view kOpProofs;

namespace {

struct Proof {
  std::string_view against;
  std::string_view reason;
};
using Proofs = std::map<std::string_view, Proof>;

// Reads lines of the form "name proof" or "name none reason".
Proofs read_proofs() {
  Proofs proofs;
  std::string_view rest = kOpProofs;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view()
                                         : rest.substr(end + 1);
    if (const std::size_t space = line.find(' ');
        space != std::string_view::npos) {
      const std::string_view said = line.substr(space + 1);
      const std::size_t word = std::min(said.find(' '), said.size());
      proofs.emplace(line.substr(0, space),
                     Proof{said.substr(0, word),
                           said.substr(std::min(word + 1, said.size()))});
    }
  }
  return proofs;
}

Proof proof_of(std::string_view op) {
  static const Proofs kProofs = read_proofs();
  const auto found = kProofs.find(op);
  return found == kProofs.end() ? Proof{"none", {}} : found->second;
}

}  // namespace

std::string_view op_proof(std::string_view op) { return proof_of(op).against; }

std::string_view op_unproven_reason(std::string_view op) {
  return proof_of(op).reason;
}

}  // namespace shardprop
