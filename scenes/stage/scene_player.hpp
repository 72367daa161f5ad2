#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenes/picture/compare.hpp"
#include "scenes/stage/measured_tab.hpp"
#include "scenes/stage/reel.hpp"

namespace tilestep::scenes {

/// Plays a scene in a window: lays out and animates its pictures, lights things under the pointer, takes clicks.
/// A second run, pinned, is drawn beside it.
class ScenePlayer {
 public:
  explicit ScenePlayer(std::unique_ptr<Scene> scene) : run_(std::move(scene)) {}

  Scene& scene() { return run_.scene(); }
  const Scene& scene() const { return run_.scene(); }
  /// Shows another report. Throws Error as Scene::load does, and then keeps showing the old one.
  void load(const lab::Report& report);

  View view(Cursor cursor) const { return {cursor, picks_, guess_}; }
  void pick(picture::Name what, int index) { picks_[what] = index; }
  /// Draws the user's guess where the answer will be.
  void guess(std::optional<Guess> guess) { guess_ = guess; }

  /// Pins the run shown: as A, beside every run loaded from now on.
  void pin();
  /// The same for another run of this lesson.
  void pin(const lab::Report& report);
  void unpin();
  /// Outlines the trains shown at `cursor` below those of the next report.
  void keep_earlier(Cursor cursor);
  bool compares() const { return pinned_.has_value(); }
  /// Whether this run was drawn alone, for lack of room for both.
  bool lacks_room() const { return pinned_ && arrangement_ == Arrangement::alone; }
  /// The pinned run's scene; nullptr: none.
  const Scene* pinned() const { return pinned_ ? &pinned_->scene() : nullptr; }
  /// The pinned run's cursor when this one is at `cursor`: at the same share of its work.
  Cursor pinned_cursor(Cursor cursor) const;

  /// Fills the current ImGui window's content region.
  void draw_picture(const Moment& now);
  std::string svg(Cursor cursor);
  /// Numbers beside the picture, each beside the pinned run's.
  std::vector<ui::Readout> readouts(Cursor cursor) const;
  /// The Measured tab: throughput, from `report` (its measurements carry their provenance); `mask`
  /// hides views.
  void draw_measured(const lab::Report& report, const measured::Mask& mask = {});
  /// Lights things of the picture, as the pointer does, until the next call.
  void light(std::vector<std::string> keys) { lit_keys_ = std::move(keys); }
  /// Shows the boxes of these things enlarged, with everything on the same bands; the rest stands small in a strip, and
  /// comes back on a click.
  void shoot(Shot shot);
  /// The ends of an axis of the picture.
  std::optional<std::pair<double, double>> axis_ends(Cursor cursor, picture::Name axis);
  /// The area of a thing of the picture; nothing if it is not there.
  std::optional<picture::Area> area_of(Cursor cursor, const picture::Key& key);
  /// Chooses one of the Measured tab's views by name.
  void show_view(std::string_view view) { measured_.show(view); }
  /// Chooses a value of one of its filters.
  void choose_filter(const std::string& filter, const std::string& value) {
    measured_.choose(filter, value);
  }

  /// Subjects pointed at beside the picture, in a text, a table, the kernel: they light up in the picture too.
  void point_at(std::vector<picture::Subject> subjects) { beside_ = std::move(subjects); }
  const std::vector<picture::Subject>& pointed_beside() const { return beside_; }
  /// Whether the pointer is on this, here or beside the picture.
  bool is_lit(const picture::Subject& subject) const;
  const std::vector<picture::Symbol>& symbols() const { return symbols_; }
  /// The word for a thing; nullptr: it has none.
  const picture::Symbol* symbol_of(const picture::Subject& subject) const;
  /// The symbol in the picture's text that was clicked since the last call.
  std::optional<picture::Subject> take_symbol() { return std::exchange(clicked_symbol_, {}); }
  /// The row under Data that is lit because the pointer is on its thing in the picture; −1: none.
  int lit_row(std::string_view table_id) const;
  /// Requests other knobs, as a drag in the picture does.
  void request(lab::Settings knobs) { request_ = std::move(knobs); }
  /// Knobs that the user changed in the picture since the last call; the values are allowed.
  std::optional<lab::Settings> take_request() { return std::exchange(request_, std::nullopt); }
  /// The target of a click in the picture since the last call.
  std::optional<Cursor> take_step() { return std::exchange(step_, std::nullopt); }

 private:
  using Shown = Reel::Shown;
  /// How two runs are arranged; `alone`: there is no room for both.
  enum class Arrangement { beside, below, alone };
  /// The differences of two pictures at rest.
  struct Compared {
    Shown run, pinned;
    picture::Differences in_run, in_pinned;
  };

  void forget_pointer();
  void draw_alone(const Moment& now, picture::Area area);
  void draw_compared(const Moment& now, picture::Area area);
  Moment pinned_moment(const Moment& now) const;
  Arrangement arrangement(const picture::Area& area, Cursor cursor);
  struct Crowding {
    int too_small = 0;  ///< boxes
    int folded = 0;     ///< boxes, and texts that are shortened or omitted
    auto operator<=>(const Crowding&) const = default;
  };
  Crowding crowding(Cursor cursor, const picture::Area& half);
  void draw_aside(const View& view, const picture::Area& area);
  bool draw_turning(const Shown& shown);
  void draw_label(const picture::Area& half, bool of_pinned) const;
  void draw_at_rest(const Shown& shown, const picture::Differences* differences,
                    const char* prefix) const;
  void follow_pointer(const Reel& reel, const ui::ShownPicture& shown, const View& view);
  void act(const ui::ShownPicture& shown, const picture::Identity& of, const View& view);
  static int index_of(const ui::ShownPicture& shown, const picture::Identity& of,
                      std::string_view kind);
  void take_hold(const ui::ShownPicture& shown, const picture::Identity& of, picture::Name axis);
  void follow_drag(const View& view);

  std::shared_ptr<const picture::Picture> earlier_;
  Reel run_;
  std::optional<Reel> pinned_;
  Shown rests_;  ///< the previous frame's picture, if it was at rest
  std::optional<Compared> compared_;
  std::optional<Arrangement> arrangement_;  ///< in `compared_in_`; unknown: not determined yet
  picture::Area compared_in_;
  std::map<picture::Name, int> picks_;
  std::optional<Guess> guess_;
  std::optional<picture::Identity> pointed_at_, dragged_;
  /// The drag along an axis, and its start; it outlives pictures made meanwhile.
  struct Drag {
    picture::Key key;
    picture::Scale scale;
    picture::Point pressed;
    double value = 0;  ///< of the thing when it was pressed
    bool moved = false;
    std::optional<lab::Settings> asked = {};
  };
  std::optional<Drag> drag_;
  std::vector<picture::Subject> pointed_subjects_, beside_;
  std::vector<picture::Symbol> symbols_;  ///< at `symbols_at_`
  std::optional<View> symbols_at_;
  std::optional<picture::Subject> clicked_symbol_;
  std::vector<std::string> lit_keys_;
  Shot shot_, shown_;                    ///< without and with `brought_in_`
  std::vector<std::string> brought_in_;  ///< boxes, until another shot
  /// The move from one shot to the next, in the same run.
  struct Turn {
    Shown from, to;
    picture::Join join;
  };
  std::optional<Turn> turn_;
  Shown left_;     ///< the previous shot's picture
  int shots_ = 0;  ///< so far
  std::optional<lab::Settings> request_;
  std::optional<Cursor> step_;
  measured::Tab measured_;
};

}  // namespace tilestep::scenes
