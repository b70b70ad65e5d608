#include <shardprop/ops/op_proofs.h>

#include <map>

namespace shardprop {

extern const std::string_view kOpProofs;

namespace {

// Lines of "name proof".
std::map<std::string_view, std::string_view> read_proofs() {
  std::map<std::string_view, std::string_view> proofs;
  std::string_view rest = kOpProofs;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view()
                                         : rest.substr(end + 1);
    if (const std::size_t space = line.find(' ');
        space != std::string_view::npos) {
      proofs.emplace(line.substr(0, space), line.substr(space + 1));
    }
  }
  return proofs;
}

}  // namespace

std::string_view op_proof(std::string_view op) {
  static const auto kProofs = read_proofs();
  const auto found = kProofs.find(op);
  return found == kProofs.end() ? "none" : found->second;
}

}  // namespace shardprop
