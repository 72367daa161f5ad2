#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/decode/lesson.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::scenes {

/// Tokens of a cell of the cache. With mla a block takes several at a time.
inline constexpr int kCell = decode::kPageSize;
/// The margin for the lanes' names, in heights of a line.
inline constexpr float kLaneLeft = 4.5f;
/// The most blocks that have a name and a frame each.
inline constexpr int kMostNamed = 12;
/// Parts of the chosen answer that have a row.
inline constexpr int kMostParts = 4;

/// One launch of the kernel, whatever else a scene shows beside it: its progress at a cursor, the cache that it reads,
/// and its blocks over their tiles.
class LaunchPicture {
 protected:
  /// Both are read on every call.
  LaunchPicture(const decode::Trace& trace, const lab::Report& report)
      : trace_(trace), report_(report) {}

  // Where the cursor is.
  /// Rounds of tiles so far, including the current one.
  int round(Cursor cursor) const;
  bool reading(Cursor cursor) const { return cursor.tile > 0; }
  bool merging(Cursor cursor) const {
    return trace_.merged && cursor.tile == trace_.answered() && cursor.tile > 0;
  }
  /// The answer is complete.
  bool at_end(Cursor cursor) const { return cursor.tile >= trace_.answered(); }
  bool looking_back(Cursor cursor) const { return cursor.tile >= trace_.length(); }
  /// Tiles of an item so far.
  int tiles_of(const decode::ItemTrace& item, Cursor cursor) const;
  bool at_work(const decode::ItemTrace& item, Cursor cursor) const;
  bool has_chosen(const decode::ItemTrace& item) const;
  /// The chosen row's tile of this round; nullptr: none of its blocks has one.
  const decode::StepTrace* step_now(Cursor cursor) const;
  /// Whether the chosen O differs from the one in double by more than rounding.
  bool contradicted() const;

  // The picture, its explanations and questions.
  int requests() const { return static_cast<int>(trace_.tokens.size()); }
  std::uint8_t tone_of(int request) const { return picture::category_tone(request, requests()); }
  std::vector<std::string> request_names() const;
  std::vector<std::string> block_names() const;
  std::vector<picture::Axis> launch_axes() const;
  /// A row per request: its tokens, a page per cell.
  picture::Box cache(Cursor cursor) const;
  picture::State tile_state(int request, int place, Cursor cursor) const;
  /// The blocks over the tiles that they have taken, in their requests' tones.
  picture::Box lanes(Cursor cursor) const;
  /// After the first round: when does the block with the chosen row's first keys end?
  std::optional<Question> end_question() const;
  /// Before a round in which some blocks have nothing left.
  std::optional<Question> busy_question(int round) const;

 private:
  const decode::Trace& trace_;
  const lab::Report& report_;
};

}  // namespace tilestep::scenes
