#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/machine/latency_hiding/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// A probed load (block, chain, arm …) from its issue to its first use.
struct Probe {
  int row = 0, number = 0;
  std::int64_t issue = 0, use = 0;
  int issue_step = 0, use_step = 0;  ///< from which steps on these clocks are known
};

/// What a bench says of copies by their bytes in flight: the best rates, and the knobs' own.
struct Rates {
  std::vector<double> kib = {}, rate = {};
  std::optional<double> here = {};
  double enough = 0;            ///< nine tenths of the most
  double idle = 0, loaded = 0;  ///< ns that a load takes: alone, and where there are enough
};

/// Results that stand below each other as lengths.
struct Results {
  std::string title = {};
  const char* unit = "";
  double high = 1;  ///< of their axis
  std::vector<std::string> names = {};
  std::vector<double> values = {};
  int here = -1;  ///< the knobs' own
};

/// A bar of a probe: in cycles (ns, turns) from the zero of its axis.
struct Stretch {
  double from = 0, to = 0;
  bool used = false;
};

/// Latency hiding: the loads of one warp from issue to use, with the issue slots of its scheduler, then the warps of one
/// multiprocessor on its four schedulers; beside them Little's law as it was measured. Kernels without loads end on
/// their results, drawn as lengths.
class LatencyHidingScene final : public SceneOf<latency_hiding::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(latency_hiding)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// The probes, by row and number.
  const std::vector<Probe>& probes() const { return probes_; }

 private:
  // Where the cursor is.
  int step(Cursor cursor) const;
  bool at_end(Cursor cursor) const { return step(cursor) == trace_.steps(); }
  /// The step on show; nullptr before the first.
  const latency_hiding::Moment* moment(Cursor cursor) const;
  std::int64_t now(Cursor cursor) const;
  /// Of row 0 or of another one; nullptr: none of that number.
  const Probe* probe(int row, int number) const;
  int followed(const View& view) const;
  bool in_flight(const Probe& probe, Cursor cursor) const;

  // What the kernel is.
  bool is(latency_hiding::Kernel kernel) const { return trace_.kernel == kernel; }
  bool copies() const { return latency_hiding::is_copy(trace_.kernel); }
  bool tails() const { return is(latency_hiding::Kernel::tail); }
  bool clocked() const { return trace_.machine.has_clocks(); }
  /// Probes of a round: what the picture has of a warp at a time.
  int group() const;
  /// Lanes that a warp has of its own, and among all.
  int zoom_lanes() const;
  int lanes_a_warp() const;
  int zoom_lane(int number) const;
  /// Where the round that the cursor is in begins.
  std::int64_t origin(Cursor cursor) const;
  /// As far as it is known and in the round; hops of a chase from their level's first on.
  std::optional<Stretch> stretch(const Probe& probe, Cursor cursor, std::int64_t zero) const;
  picture::Name time_axis() const;
  double time_high() const;
  /// The first round with its loads one at a time, as it was recorded or derived; of loads at once.
  std::vector<Stretch> one_at_a_time() const;
  /// What one probe stands for: KiB of copies, 1 of others.
  double weight() const;
  int wave_of(int block) const;
  std::uint8_t tone_of(int number) const;
  /// What probes of one tone have in common, and which of it a probe is.
  picture::Name tone_kind() const;
  int tone_number(int number) const;
  /// Cycles (ns) that a load took, less the probe's own.
  double latency(const Probe& probe) const;

  // Words, in scene.cpp.
  picture::Name probe_name() const;
  const char* noun() const;
  std::string unit() const;
  std::string where() const;
  std::string warp_name(int row) const;
  std::string issue_sentence(const latency_hiding::Moment& at) const;
  std::string tail_sentence(Cursor cursor) const;
  void find_probes();
  void find_events();

  // The parts of the picture, in picture.cpp.
  /// A box with a label above and a margin at its left.
  static picture::Box labelled(picture::Key key, picture::Box inner, picture::Text label,
                               const picture::Layout& layout);
  void add_lane_axes(picture::Extent& extent) const;
  picture::Box warp_loads(const View& view) const;
  picture::Curve end_of(picture::Key key, const Stretch& bar, picture::Name lanes, int lane,
                        bool whole) const;
  picture::Box apart(Cursor cursor) const;
  picture::Spans issue_slots(const View& view) const;
  picture::Box schedulers(const View& view) const;
  picture::Box scheduler(const View& view, int which) const;
  std::string explain_probe(Cursor cursor, int row, int number) const;

  // In picture_side.cpp.
  void add_side_axes(picture::Extent& extent) const;
  picture::Box occupancy() const;
  picture::Box arms(Cursor cursor) const;
  picture::Box law(Cursor cursor) const;
  picture::Box lengths(Cursor cursor) const;
  picture::Box slots_used(Cursor cursor) const;
  picture::Box counters(Cursor cursor) const;
  std::string explain_side(Cursor cursor, const picture::Key& key) const;
  std::optional<Rates> rates() const;
  /// Of this kernel as recorded, and of chains the share of issue slots that they fill.
  Results results() const;
  Results chains(bool slots) const;
  Results counts() const;
  /// Arms that have begun by then.
  int arms_shown(Cursor cursor) const;

  // In questions.cpp.
  std::optional<Question> question_before(int next) const;
  Question bytes_question() const;
  std::optional<Question> use_question(int next) const;
  std::optional<Question> four_chains_question() const;
  Question block_limit_question() const;
  std::optional<Question> registers_question() const;
  std::optional<Question> eligible_question() const;
  Question lanes_question(int arm) const;
  Question waves_question() const;
  /// The followed row's probe that is used, or issued, at a step; nullptr: none.
  const Probe* at_step(int Probe::*of, int step) const;

  static constexpr int kSeen = 4;  ///< steps after which recorded results stand beside the run

  std::vector<Probe> probes_;
  // What was recorded does not change from step to step.
  std::vector<Stretch> one_at_a_time_;
  std::optional<Rates> rates_;
  Results results_, slots_, counted_;
  int a_row_ = 0;  ///< probes that a row has at most; numbers of a key are row · a_row_ + number
  latency_hiding::Params params_;
};

/// Warps that one limit alone lets in, of the 64 that there is room for.
inline int warps_let_in(const latency_hiding::Occupancy& occupancy, latency_hiding::Limit limit) {
  const int blocks =
      std::min(occupancy.blocks[static_cast<std::size_t>(limit)], latency_hiding::kMostWarps);
  return std::min(blocks * occupancy.warps_allocated, latency_hiding::kMostWarps);
}

}  // namespace tilestep::scenes
