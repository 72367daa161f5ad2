#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kernels/base/lab/ladder.hpp"
#include "kernels/base/lab/peer_process.hpp"

namespace tilestep::lab {

/// Rungs that a script of assets/peers times in its own process. Where it cannot be asked, or no more, `missing` says why
/// in a sentence, and they are not timed.
class ScriptedRungs {
 public:
  /// Starts it, and asks `first`, for times. `allowed` ends the sentence: "a Python with PyTorch, named by TILESTEP_PYTHON".
  ScriptedRungs(const std::string& script, std::string allowed, const nlohmann::json& first);

  bool available() const { return peer_ != nullptr; }
  const std::string& missing() const { return missing_; }

  /// A peer that answers `request`, with the pace's settle_ms and samples, by milliseconds of each sample under "ms". What
  /// it says in "name" becomes the cell `version`, other numbers become cells of their names. With `compare` the answer to `check`
  /// is compared first; without such an answer it is not timed.
  Rung rung(const std::string& name, const nlohmann::json& request,
            const nlohmann::json& check = {},
            std::function<Closest(const nlohmann::json& answer)> compare = {});
  /// What the rung of that name has said so far.
  Cells& cells(const std::string& name) { return cells_[name]; }

 private:
  nlohmann::json ask(const nlohmann::json& request);
  std::vector<double> times(const std::string& name, nlohmann::json request, const Pace& pace);
  void say(const std::exception& error);

  std::string allowed_, missing_;
  std::unique_ptr<ScriptPeer> peer_;
  std::set<std::string> silent_;  ///< rungs without results to compare
  std::map<std::string, Cells> cells_;
};

/// Lines of a source that are neither blank nor comments (`//`, `# `).
int lines_of_code(std::string_view text);

}  // namespace tilestep::lab
