#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tilestep::lab {

/// A program that a bench compares itself with: it answers each line of JSON with a line of JSON (tests/peers). It
/// inherits our standard error.
class PeerProcess {
 public:
  /// Starts it, looked up in PATH. Throws Error (unavailable) naming it and the reason.
  explicit PeerProcess(const std::vector<std::string>& command);
  /// Closes its input, and kills it if it does not end.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Throws Error (unavailable) if it ends, stays silent for that long, sends no JSON, or answers with an
  /// "error".
  nlohmann::json ask(const nlohmann::json& request, double most_seconds = 120);

 private:
  std::string read_line(double most_seconds);
  [[noreturn]] void fail(const std::string& why) const;

  std::string name_;
  std::string rest_;  ///< its output after the last complete line
  int socket_ = -1;
  pid_t pid_ = -1;
};

}  // namespace tilestep::lab
