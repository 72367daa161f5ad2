#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/decode/lesson.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::scenes {

/// The margin for what lanes are called, in heights of a line.
inline constexpr float kLaneLeft = 4.5f;
/// Blocks that have a name and a frame each; more are a mass.
inline constexpr int kMostNamed = 12;

/// One launch of the kernel, whatever else a scene shows beside it: how far it is at a cursor, the block tables that it
/// reads through, and its blocks over their tiles.
class LaunchPicture {
 protected:
  /// Both are read whenever something is asked.
  LaunchPicture(const decode::Trace& trace, const lab::Report& report)
      : trace_(trace), report_(report) {}

  // Where the cursor is.
  int engine_steps() const { return static_cast<int>(trace_.serving.size()); }
  /// The engine's step that is on show: its last one while the kernel runs; nullptr before the first.
  const decode::Served* moment(Cursor cursor) const;
  /// Rounds of tiles that are through, the current one among them; 0 in the engine's steps.
  int round(Cursor cursor) const;
  bool reading(Cursor cursor) const { return cursor.tile > engine_steps(); }
  bool merging(Cursor cursor) const {
    return trace_.merged && cursor.tile == trace_.answered() && cursor.tile > 0;
  }
  /// The answer is there.
  bool at_end(Cursor cursor) const { return cursor.tile >= trace_.answered(); }
  bool looking_back(Cursor cursor) const { return cursor.tile >= trace_.length(); }
  /// Tiles of an item that are through.
  int tiles_of(const decode::ItemTrace& item, Cursor cursor) const;
  bool at_work(const decode::ItemTrace& item, Cursor cursor) const;
  bool has_chosen(const decode::ItemTrace& item) const;
  /// Whose pages an item has: "R3", or "R3 +2" of pages that two others have in common with it.
  std::string requests_of(const decode::ItemTrace& item) const;
  /// The chosen row's tile of this round; nullptr: none of its blocks has one.
  const decode::StepTrace* step_now(Cursor cursor) const;
  static bool is_of(const decode::ItemTrace& item, int row) {
    return row >= item.row && row < item.row + item.rows;
  }
  int request_number(int row) const {
    return trace_.requests[static_cast<std::size_t>(row)].request;
  }
  /// Whether the chosen O is not the one in double, and that not by its bits alone.
  bool contradicted() const;

  // The picture, what is said of it and asked about it.
  std::vector<std::string> block_names() const;
  std::vector<picture::Axis> launch_axes() const;
  /// A row a request: its pages by number, in the order of its tokens.
  picture::Box tables(Cursor cursor) const;
  picture::State page_state(int row, int place, Cursor cursor) const;
  /// The blocks over the tiles that they have taken, in their requests' tones.
  picture::Box lanes(Cursor cursor) const;
  /// A place of a block table; of the traced item also what its copies of K asked of memory.
  std::string explain_entry(Cursor cursor, int row, int place) const;
  /// Before a round in which some blocks have nothing left.
  std::optional<Question> busy_question(int round) const;

 private:
  const decode::Trace& trace_;
  const lab::Report& report_;
};

/// A request's tone. Six take turns: the number beside it tells requests apart.
constexpr std::uint8_t request_tone(int request) {
  constexpr std::uint8_t kTones[] = {1, 2, 3, 4, 5, 7};
  return kTones[static_cast<std::size_t>(request) % std::size(kTones)];
}

/// A box with a margin for an axis, its label above.
inline picture::Box labelled(picture::Key key, picture::Box inner, picture::Text label,
                             const picture::Layout& layout) {
  picture::Box made = picture::column(key, {std::move(inner)}, layout);
  made.label = std::move(label);
  return made;
}

/// picture::Spans that are made one by one.
struct SpanList {
  picture::Spans spans;
  std::vector<int> requests;

  SpanList(picture::Name name, picture::Name x, picture::Name lanes) {
    spans.items = picture::items(name, 0);
    spans.x = x;
    spans.lanes = lanes;
  }
  void add(int id, int lane, double begin, double end, picture::State state, std::string name,
           int request) {
    ++spans.items.count;
    spans.items.ids.push_back(id);
    spans.lane.push_back(lane);
    spans.begin.push_back(begin);
    spans.end.push_back(end);
    spans.items.state.each.push_back(state);
    spans.items.names.push_back(std::move(name));
    spans.items.tone.each.push_back(request < 0 ? std::uint8_t{0} : request_tone(request));
    requests.push_back(request);
  }
  picture::Spans made(double now) {
    spans.now = now;
    spans.items.about = {{"request", {0, requests}}};
    return std::move(spans);
  }
};

}  // namespace tilestep::scenes
