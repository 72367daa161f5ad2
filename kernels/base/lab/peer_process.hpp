#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilestep::lab {

/// A program that a bench measures itself beside: it answers a line of JSON by a line of JSON (tests/peers). Its
/// standard error is ours.
class PeerProcess {
 public:
  /// Starts it, looked up in PATH. Throws Error (unavailable) naming it and the reason.
  explicit PeerProcess(const std::vector<std::string>& command);
  /// Closes its input, and kills it unless it ends.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Throws Error (unavailable) where it ends, is silent for so long, does not speak JSON, or answers with an
  /// "error".
  nlohmann::json ask(const nlohmann::json& request, double most_seconds = 120);

 private:
  std::string read_line(double most_seconds);
  [[noreturn]] void fail(const std::string& why) const;

  std::string name_;
  std::string rest_;  ///< of what it has said, behind the last line
  int socket_ = -1;
  pid_t pid_ = -1;
};

}  // namespace tilestep::lab
