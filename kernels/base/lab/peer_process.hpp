#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
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

/// The command that starts a script of assets/peers: by the Python that TILESTEP_PYTHON names (else python3), from the
/// folder TILESTEP_PEERS or as built in. With `folder` the built-in text becomes a file there. Throws Error (unavailable)
/// where TILESTEP_PEERS has no such script.
std::vector<std::string> peer_command(const std::string& script, const std::string& folder = {});

/// Such a script in its process; as a file, for Triton reads its own source. The file goes with it.
class ScriptPeer {
 public:
  /// Throws as peer_command and PeerProcess do.
  explicit ScriptPeer(const std::string& script);
  ~ScriptPeer();
  ScriptPeer(const ScriptPeer&) = delete;
  ScriptPeer& operator=(const ScriptPeer&) = delete;
  nlohmann::json ask(const nlohmann::json& request, double most_seconds = 120) {
    return process_->ask(request, most_seconds);
  }

 private:
  std::string folder_;
  std::unique_ptr<PeerProcess> process_;
};

/// The `count` numbers that an answer has under `key`; 0: any number of them but none. Throws Error (unavailable).
std::vector<double> numbers_of(const nlohmann::json& answer, const std::string& key,
                               std::size_t count = 0);

}  // namespace tilestep::lab
