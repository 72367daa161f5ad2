#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/machine/latency_hiding/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

using latency_hiding::Probe;

/// The bench's rates of copies by their bytes in flight: the best, and the one at the knobs.
struct Rates {
  std::vector<double> kib = {}, rate = {};
  std::optional<double> here = {};
  double enough = 0;            ///< nine tenths of the most
  double idle = 0, loaded = 0;  ///< ns per load: alone, and with enough in flight
};

/// Results drawn as lengths, one below the other.
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
/// multiprocessor on its four schedulers; beside them Little's law as measured. Kernels without loads end with their
/// results, drawn as lengths.
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
  /// The step on screen; nullptr before the first.
  const latency_hiding::Moment* moment(Cursor cursor) const;
  std::int64_t now(Cursor cursor) const;
  /// nullptr: the row has no probe of that number.
  const Probe* probe(int row, int number) const;
  int followed(const View& view) const;
  bool in_flight(const Probe& probe, Cursor cursor) const;

  // The kernel.
  bool is(latency_hiding::Kernel kernel) const { return trace_.kernel == kernel; }
  bool copies() const { return latency_hiding::is_copy(trace_.kernel); }
  bool tails() const { return is(latency_hiding::Kernel::tail); }
  bool clocked() const { return trace_.machine.has_clocks(); }
  /// Probes per round: the part of a warp that the picture shows at a time.
  int group() const;
  /// Lanes that a warp has of its own, and among all.
  int zoom_lanes() const;
  int lanes_a_warp() const;
  int zoom_lane(int number) const;
  /// The clock at which the cursor's round begins.
  std::int64_t origin(Cursor cursor) const;
  /// The known part within the round; hops of a chase count from their level's first.
  std::optional<Stretch> stretch(const Probe& probe, Cursor cursor, std::int64_t zero) const;
  picture::Name time_axis() const;
  double time_high() const;
  /// The first round with its loads one at a time, recorded or derived; only where the run issues them together.
  std::vector<Stretch> one_at_a_time() const;
  /// The weight of one probe: KiB for copies, otherwise 1.
  double weight() const;
  int wave_of(int block) const;
  std::uint8_t tone_of(int number) const;
  /// What probes of one tone share (level, arm, wave), and a probe's number of it.
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
  void find_events();

  // The parts of the picture, in picture.cpp.
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
  /// This kernel's results as recorded, and for chains the share of issue slots that they fill.
  Results results() const;
  Results chains(bool slots) const;
  Results counts() const;
  /// Arms that have begun by the cursor.
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
  /// The followed row's probe that is used or issued at a step; nullptr: none.
  const Probe* at_step(int Probe::*of, int step) const;

  static constexpr int kSeen = 4;  ///< steps after which recorded results appear beside the run

  std::vector<Probe> probes_;
  // Recorded data does not change from step to step.
  std::vector<Stretch> one_at_a_time_;
  std::optional<Rates> rates_;
  Results results_, slots_, counted_;
  int a_row_ = 0;  ///< most probes in a row; numbers of a key are row · a_row_ + number
  latency_hiding::Params params_;
};

/// Warps that one limit alone admits, of 64 at most.
inline int warps_let_in(const latency_hiding::Occupancy& occupancy, latency_hiding::Limit limit) {
  const int blocks =
      std::min(occupancy.blocks[static_cast<std::size_t>(limit)], latency_hiding::kMostWarps);
  return std::min(blocks * occupancy.warps_allocated, latency_hiding::kMostWarps);
}

}  // namespace tilestep::scenes
