#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tilestep::app {

struct ShellState;

/// What can be found with Ctrl+K: a lesson, a knob's value, a term, an action.
struct Find {
  std::string id;    ///< in the map
  std::string name;  ///< what is looked for
  std::string kind;  ///< "lesson", "knob", "source", "term", "action"
  std::string note;  ///< beside it: its key, its first sentence
  std::function<void(ShellState&)> go;
};

/// Those of `all` that `query` finds, best first: what begins so, then words that do, then what
/// holds it anywhere. An empty query finds all, in their order.
std::vector<const Find*> found(const std::vector<Find>& all, const std::string& query);

/// The list that Ctrl+K opens, and the words typed into it.
class Palette {
 public:
  void open(std::string_view query = {});
  void close() { open_ = false; }
  bool is_open() const { return open_; }
  /// To the next one found, round and round.
  void move(int by) { moved_ += by; }
  void choose() { chosen_ = true; }
  void draw(ShellState& state, const std::vector<Find>& all);

 private:
  bool open_ = false, fresh_ = false, chosen_ = false;
  int selected_ = 0, moved_ = 0;
  std::array<char, 128> query_{};
};

/// All that there is to find in the window as it is.
std::vector<Find> finds_of(const ShellState& state);

}  // namespace tilestep::app
