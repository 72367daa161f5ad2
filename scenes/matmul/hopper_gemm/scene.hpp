#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/matmul/hopper_gemm/lesson.hpp"
#include "scenes/matmul/hopper_gemm/tile_layout.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The numbers of events, from 1 on; 0 for what has not happened. Their clocks are no time: the emulation's are an order,
/// a GPU's include the probes.
inline constexpr int kNever = 0;
using OfBoth = std::array<int, 2>;  ///< consumers

/// A k-tile's life so far.
struct KTileLife {
  int stage = 0;
  int announced = 0, arrived = 0;  ///< bytes
  std::array<OfBoth, hopper_gemm::kWhats> events{};

  /// Where it is a consumer's event, of that one.
  int when(hopper_gemm::What what, int consumer = 0) const {
    return events[static_cast<std::size_t>(what)][static_cast<std::size_t>(consumer)];
  }
};

/// A stage of the ring.
struct StageNow {
  enum State : std::uint8_t { empty, filling, full, in_use, released };
  State state = empty;
  int k_tile = -1;           ///< its k-tile; −1: none yet
  int full_phases = 0;       ///< of its full barrier that have ended
  int empty_phases = 0;      ///< of its empty barrier
  int released_by = 0;       ///< consumers that have released this k-tile
  bool read_early = false;   ///< products were issued before all bytes had landed
  bool overwritten = false;  ///< copies were issued before all had released it
};

/// A consumer warpgroup.
struct ConsumerNow {
  int tile = 0;                ///< of the block's tiles of C
  int added = 0;               ///< k-tiles of it whose products are done
  std::vector<int> under_way;  ///< k-tiles whose products are issued and not waited for
};

/// The screen's content at one cursor, from the events until then.
struct HopperMoment {
  int events = 0;
  const hopper_gemm::Event* last = nullptr;  ///< null: nothing has happened
  int now = 0;                               ///< the event that is taken
  int k_tile = 0;                            ///< the one that it is about
  int tile = 0;                              ///< that of the block's tiles of C
  std::map<int, KTileLife> lives;            ///< of the k-tiles that something has happened to
  std::vector<StageNow> stages;
  std::vector<ConsumerNow> consumers;
  /// When a consumer began to store a tile of C, and when it was through; by tile.
  std::map<int, OfBoth> stores, stored;
  int copied = 0, released = 0;  ///< k-tiles requested, and released by all

  /// Of a k-tile; empty if nothing has happened to it.
  const KTileLife& life(int k) const {
    static const KTileLife kNone;
    const auto found = lives.find(k);
    return found == lives.end() ? kNone : found->second;
  }
  /// A k-tile's tone. Eight take turns: one that is eight behind the newest has none.
  std::uint8_t tone_of(int k) const {
    const bool old = !lives.empty() && k + picture::kCategories <= lives.rbegin()->first;
    return old || k < 0 ? std::uint8_t{0} : picture::category_tone(k % picture::kCategories);
  }
};

/// A ring with this many stages, as the bench timed it.
struct TimedRing {
  int stages = 1;
  int lane = 0;                   ///< its first one in the picture
  double cycles = 0, tflops = 0;  ///< of a k-tile; of the launch
};
inline constexpr int kTimed = 6;                        ///< k-tiles on the axis in cycles
inline constexpr double kCycles = 20'000, kRate = 800;  ///< the ends of the fixed axes

/// Hopper's GEMM: over time, the stages of the ring and the tensor cores, in cycles if the bench timed such a ring,
/// otherwise in the order of the trace; below, the current ring; beside them, the matrices with the boxes that TMA
/// copies, the sums in registers, and where the swizzle puts the rows of a stage.
class HopperGemmScene final : public SceneOf<hopper_gemm::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(hopper_gemm)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  /// In k-tiles that were multiplied.
  double progress(Cursor cursor) const override;

  /// The state at `cursor`; public so that a test can compare the picture with the trace.
  HopperMoment moment(Cursor cursor) const;
  /// The step at `cursor` in one plain sentence.
  std::string sentence(const HopperMoment& now) const;
  /// The k-tile in focus: the picked one, if it has begun by then, or the event's.
  int followed(const View& view, const HopperMoment& now) const;

 private:
  // Words, in scene.cpp.
  std::string brief(const HopperMoment& now) const;
  std::string sentence_of_copies(const HopperMoment& now) const;
  std::string sentence_of_products(const HopperMoment& now) const;
  std::string outcome() const;
  std::string copier() const;
  std::string consumer(int number) const;
  void find_events();

  // The state, in moment.cpp.
  void take(HopperMoment& now, const hopper_gemm::Event& event) const;
  bool all_released(const KTileLife& life) const;
  bool released_before(const KTileLife& life, int at) const;

  // Lanes, in over_time.cpp.
  void find_timed();
  picture::Axis timed_lanes() const;
  picture::Box in_cycles(const HopperMoment& now) const;
  picture::Axis traced_lanes() const;
  using Activities = std::vector<std::pair<picture::Name, picture::SpanList::Bar>>;
  Activities activities(const HopperMoment& now) const;
  void find_beats();
  picture::State lit(const HopperMoment& now, int k_tile,
                     std::initializer_list<hopper_gemm::What> whats, int lane,
                     picture::State otherwise) const;
  picture::Box lanes(const HopperMoment& now, int followed) const;
  // The ring, in picture.cpp.
  picture::Items of_stages(const HopperMoment& now, picture::Name name, int parts = 1) const;
  bool at_stage(const HopperMoment& now, int stage,
                std::initializer_list<hopper_gemm::What> whats) const;
  picture::Items stage_parts(const HopperMoment& now) const;
  picture::Items multicast(const HopperMoment& now) const;
  picture::Links on_their_way(const HopperMoment& now) const;
  picture::Items stage_states(const HopperMoment& now, const View& view) const;
  picture::Items phases(const HopperMoment& now, bool of_full) const;
  picture::Box stage_bytes(const HopperMoment& now) const;
  picture::Box ring(const HopperMoment& now, const View& view) const;
  std::string explain_k_tile(const HopperMoment& now, int number) const;
  std::string explain_stage(const HopperMoment& now, int stage) const;
  // Matrices, sums and swizzle, in picture_tiles.cpp.
  picture::Box matrices(const HopperMoment& now, int followed) const;
  picture::Box operand(const HopperMoment& now, int followed, bool is_a) const;
  picture::Box tiles_of_c(const HopperMoment& now) const;
  std::vector<std::string> box_lines(int k_tile) const;
  picture::Box sums(const HopperMoment& now) const;
  picture::Box swizzle(const View& view) const;
  picture::Box rows_in_banks(int chunk, bool plain) const;
  TileLayout layout_of(bool is_a) const;
  picture::Box fragments() const;
  std::string explain_tiles(const HopperMoment& now, const picture::Key& key) const;
  std::string explain_chunk(int place) const;

  // Questions, in questions.cpp.
  std::optional<Question> ahead_question() const;
  Question threads_question() const;
  Question announced_question() const;
  Question swizzle_question() const;
  Question empty_question() const;
  Question consumer_question() const;
  Question outcome_question() const;

  bool has_tma() const { return hopper_gemm::has_tma(trace_.variant); }
  bool has_producer() const { return hopper_gemm::has_producer(trace_.variant); }
  bool has_wgmma() const { return trace_.variant != hopper_gemm::Variant::mma_sync; }
  bool emulated() const { return trace_.clock_unit == "words"; }
  bool broken() const { return params_.broken != hopper_gemm::Break::none; }
  bool at_end(const HopperMoment& now) const {
    return now.events > 0 && now.events == trace_.steps();
  }
  /// The last event is over, and the kernel was broken on purpose.
  bool judged(const HopperMoment& now) const { return broken() && at_end(now); }
  int k_tiles() const { return trace_.k_tiles(); }
  int all_k_tiles() const;
  int a_bytes() const { return trace_.rows * 128; }
  int box_bytes() const { return trace_.swizzle == 0 ? 16 : trace_.swizzle; }
  const hopper_gemm::BlockTile& tile(int number) const;

  hopper_gemm::Params params_;
  picture::Beats beats_;                ///< of the trace's activities
  std::vector<TimedRing> timed_;        ///< empty: no bench timed this kernel's case
  const lab::Report* bench_ = nullptr;  ///< that timed them
  double products_ = 0;                 ///< cycles of a k-tile's products alone
  bool clocked_ = true;                 ///< the events have clocks
  std::vector<int> ends_;  ///< events after which a k-tile is in its stage, or all have released it
};

}  // namespace tilestep::scenes
