// What every stop's shot promises: the subject is the largest thing, and few boxes stand beside it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "lesson_headers.hpp"
#include "scenes/picture/shot.hpp"
#include "scenes/shared/guide.hpp"
#include "tests/lesson_contract/scaled.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using picture::Area, picture::Box;

namespace {

constexpr float kSubject = 0.55f;  ///< of the picture
constexpr int kMostBoxes = 3;
constexpr float kInk = 0.12f;  ///< of the subject: what is not background
/// Stops whose point is how little there is: a part of an axis that stays over the path, or numbers near 0.
constexpr float kSparseInk = 0.025f;
constexpr std::pair<std::string_view, std::string_view> kSparse[] = {
    {"coalescing", "All lanes, one address"},
    {"latency-hiding", "One load at a time"},
    {"latency-hiding", "Issue, and go on"},
    {"latency-hiding", "The wait is paid once"},
    {"latency-hiding", "What a kernel cannot see"},
    {"online-softmax", "Why not simply add up exp(s)?"},
    {"online-softmax", "The past shrinks"},
    {"low-bit", "A row of weights"},
    {"low-bit", "Groups confine the damage, for half a bit"},
    {"low-bit", "MXFP4: a scale of eight bits, a power of two"},
    {"low-bit", "NVFP4: half the block, a finer scale"},
    {"low-bit", "Ternary: a sign or nothing"},
    {"low-bit", "What the layer makes of it, and what is left out"},
    {"flash-attention-3", "Copies run ahead"},
    {"flash-attention-3", "Ping-pong: two warpgroups take turns"},
    {"flash-attention-3", "Inside a warpgroup too"},
    {"attention-backward", "Weights pull together"},
    {"attention-backward", "One wrong number per query spoils three matrices"},
    {"triage", "Room for one block"},
    {"triage", "What these instruments cannot see"}};

constexpr float kStepSubject = 0.6f;
constexpr float kRoomBesideStrip = 0.8f;  ///< of the picture, in the lowest room
/// Lessons whose steps begin at 0 of an axis that stays over the run, and what is drawn there by then; or whose numbers
/// are small on an axis that stays over the path.
constexpr std::pair<std::string_view, float> kSparseSteps[] = {
    {"coalescing", 0.07f}, {"latency-hiding", 0.005f},   {"online-softmax", 0.1f},
    {"low-bit", 0.06f},    {"flash-attention-3", 0.05f}, {"attention-backward", 0.11f}};

/// Counts the points of a fine grid in some areas that something is drawn on.
class Grid {
 public:
  explicit Grid(const picture::Placed& placed)
      : placed_(placed),
        columns_(std::max(1, static_cast<int>(placed.area.width() / kStep))),
        rows_(std::max(1, static_cast<int>(placed.area.height() / kStep))),
        drawn_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {
    for (const picture::Piece& piece : placed.pieces) add(piece);
    for (const picture::Stroke& stroke : placed.strokes) add(stroke);
    for (const picture::Words& words : placed.words) fill(words.area, 4);  // letters are thin
  }
  float share(const std::vector<Area>& areas) const {
    std::vector<unsigned char> asked(drawn_.size());
    for (const Area& area : areas) {
      // It holds as many points of each row that it reaches.
      std::vector<int> columns;
      for (int column = 0; column < columns_; ++column) {
        if (area.holds({at(column, 0).x, area.y0})) columns.push_back(column);
      }
      if (columns.empty()) continue;
      for (int row = 0; row < rows_; ++row) {
        if (!area.holds({area.x0, at(0, row).y})) continue;
        std::memset(&asked[index(columns.front(), row)], 1, columns.size());
      }
    }
    int all = 0, drawn = 0;
    for (std::size_t k = 0; k < asked.size(); ++k) {
      all += asked[k];
      drawn += asked[k] & drawn_[k];
    }
    return static_cast<float>(drawn) / static_cast<float>(std::max(all, 1));
  }

 private:
  static constexpr float kStep = 2;

  picture::Point at(int column, int row) const {
    return {placed_.area.x0 + (static_cast<float>(column) + 0.5f) * kStep,
            placed_.area.y0 + (static_cast<float>(row) + 0.5f) * kStep};
  }
  std::size_t index(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
           static_cast<std::size_t>(column);
  }
  /// One point of the grid in `one_in`.
  void fill(const Area& area, int one_in = 1) {
    const auto along = [](float from, float at, int most) {
      return std::clamp(static_cast<int>(std::lround((at - from) / kStep)), 0, most);
    };
    for (int row = along(placed_.area.y0, area.y0, rows_);
         row < along(placed_.area.y0, area.y1, rows_); ++row) {
      for (int column = along(placed_.area.x0, area.x0, columns_);
           column < along(placed_.area.x0, area.x1, columns_); ++column) {
        if ((row + column) % one_in == 0) drawn_[index(column, row)] = 1;
      }
    }
  }
  void add(const picture::Piece& piece) {
    const Area& a = piece.area;
    switch (piece.kind) {
      case picture::Piece::wash:
      case picture::Piece::slab:
      case picture::Piece::stripes:
        return;
      case picture::Piece::outline:
      case picture::Piece::dashed:
      case picture::Piece::frame:
        fill({a.x0, a.y0, a.x1, a.y0 + kStep});
        fill({a.x0, a.y1 - kStep, a.x1, a.y1});
        fill({a.x0, a.y0, a.x0 + kStep, a.y1});
        return fill({a.x1 - kStep, a.y0, a.x1, a.y1});
      default:
        return fill(a, piece.kind == picture::Piece::hatch ? 2 : 1);
    }
  }
  void add(const picture::Stroke& stroke) {
    for (std::size_t k = 1; k < stroke.points.size(); ++k) {
      const picture::Point from = stroke.points[k - 1], to = stroke.points[k];
      const int steps = 1 + static_cast<int>(std::hypot(to.x - from.x, to.y - from.y) / kStep);
      for (int step = 0; step <= steps; ++step) {
        const float share = static_cast<float>(step) / static_cast<float>(steps);
        const float x = from.x + share * (to.x - from.x), y = from.y + share * (to.y - from.y);
        const float half = std::max(stroke.width, kStep) / 2;
        fill({x - half, y - half, x + half, y + half});
        if (k >= stroke.feet.size()) continue;
        const float foot = stroke.feet[k - 1] + share * (stroke.feet[k] - stroke.feet[k - 1]);
        fill({x - half, std::min(y, foot), x + half, std::max(y, foot)});
      }
    }
  }

  const picture::Placed& placed_;
  const int columns_, rows_;
  std::vector<unsigned char> drawn_;  ///< 1 or 0
};

/// Boxes that stand as one: rows that stand close together, strips on the axes of a matrix.
struct Group {
  Area area;
  bool lit = false;
  std::set<std::string> bands;
  std::vector<const picture::Mark*> marks;
};

/// The picture's boxes in the shot, as a reader counts them.
class Standing {
 public:
  Standing(const picture::Picture& picture, const picture::Placed& placed,
           const std::vector<std::string>& light)
      : picture_(picture), placed_(placed), light_(light.begin(), light.end()) {
    for (const auto& piece : placed.pieces) look_at(piece.of);
    for (const auto& stroke : placed.strokes) look_at(stroke.of);
    for (const auto& words : placed.words) look_at(words.of);
    visit(picture.root, false);
    join();
  }
  int boxes() const { return static_cast<int>(groups_.size()); }
  /// What is lit.
  std::vector<Area> lit() const {
    std::vector<Area> areas;
    for (const Group& group : groups_) {
      if (group.lit) areas.push_back(group.area);
    }
    return areas;
  }
  /// What is lit takes so much of the picture below its headline.
  float subject() const {
    float lit = 0;
    for (const Group& group : groups_) lit += group.lit ? size_of(group) : 0;
    return lit / size_of_all();
  }
  /// The largest box takes so much, with those to which lines lead from it: a warp's lanes, and their bytes.
  float largest() {
    const auto at = [&](const picture::Key& key) {
      return std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
        return std::any_of(group.marks.begin(), group.marks.end(),
                           [&](const picture::Mark* mark) { return has(*mark, key); });
      });
    };
    for (const picture::Mark* mark : picture::marks_of(picture_)) {
      const auto* links = std::get_if<picture::Links>(mark);
      for (std::size_t k = 0; links != nullptr && k < links->from.size(); ++k) {
        const auto from = at(links->from[k].key), to = at(links->to[k].key);
        if (from == groups_.end() || to == groups_.end() || from == to) continue;
        add(*from, *to);
        groups_.erase(to);
      }
    }
    float most = 0;
    for (const Group& group : groups_) most = std::max(most, size_of(group));
    return most / size_of_all();
  }

 private:
  void look_at(const picture::Identity& of) {
    if (light_.count(to_text(of.key)) > 0) lit_marks_.insert(of.mark);
  }
  void visit(const Box& box, bool lit) {
    lit = lit || light_.count(to_text(box.key)) > 0;
    Group own;
    bool stands = false;
    for (std::size_t k = 0; k < box.marks.size(); ++k, ++next_mark_) {
      lit = lit || lit_marks_.count(next_mark_) > 0;
    }
    const auto room = std::find_if(placed_.rooms.begin(), placed_.rooms.end(),
                                   [&](const auto& each) { return each.key == box.key; });
    if (!box.marks.empty() && !picture::is_name(box) && room != placed_.rooms.end()) {
      own.area = room->whole;
      own.lit = lit;
      own.bands = bands_of(box);
      for (const picture::Mark& mark : box.marks) own.marks.push_back(&mark);
      stands = true;
    }
    const std::size_t first = groups_.size();
    if (stands) groups_.push_back(own);
    for (const Box& inner : box.boxes) visit(inner, lit);
    if (box.close) merge_from(first);
  }
  std::set<std::string> bands_of(const Box& box) const {
    std::set<std::string> used;
    for (const picture::Axis& axis : picture_.axes) {
      if (axis.kind != picture::Axis::band) continue;
      for (const picture::Mark& mark : box.marks) {
        std::visit(
            [&](const auto& m) {
              const auto note = [&](const auto& name) {
                if constexpr (std::is_same_v<std::remove_cvref_t<decltype(name)>, picture::Name>) {
                  if (name == axis.name) used.insert(std::string(axis.name.text()));
                }
              };
              if constexpr (requires { m.x; }) note(m.x);
              if constexpr (requires { m.y; }) note(m.y);
              if constexpr (requires { m.lanes; }) note(m.lanes);
            },
            mark);
      }
    }
    return used;
  }
  static float size_of(const Group& group) { return group.area.width() * group.area.height(); }
  float size_of_all() const {
    Group all = groups_.empty() ? Group() : groups_.front();
    for (const Group& group : groups_) add(all, group);
    return std::max(size_of(all), 1.0f);
  }
  static void add(Group& to, const Group& other) {
    to.area = {std::min(to.area.x0, other.area.x0), std::min(to.area.y0, other.area.y0),
               std::max(to.area.x1, other.area.x1), std::max(to.area.y1, other.area.y1)};
    to.lit = to.lit || other.lit;
    to.bands.insert(other.bands.begin(), other.bands.end());
    to.marks.insert(to.marks.end(), other.marks.begin(), other.marks.end());
  }
  void merge_from(std::size_t first) {
    while (groups_.size() > first + 1) {
      add(groups_[first], groups_.back());
      groups_.pop_back();
    }
  }
  void join() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t a = 0; a < groups_.size(); ++a) {
        for (std::size_t b = a + 1; b < groups_.size(); ++b) {
          const bool share = std::any_of(
              groups_[a].bands.begin(), groups_[a].bands.end(),
              [&](const std::string& band) { return groups_[b].bands.count(band) > 0; });
          if (!share) continue;
          add(groups_[a], groups_[b]);
          groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(b));
          more = true;
          --b;
        }
      }
    }
  }

  const picture::Picture& picture_;
  const picture::Placed& placed_;
  const std::set<std::string> light_;
  std::set<int> lit_marks_;
  std::vector<Group> groups_;
  int next_mark_ = 0;
};

/// A frame with nothing in it: what it is about had no room.
bool is_empty(const picture::Room& room, const picture::Placed& placed) {
  const auto inside = [&](const Area& area) { return picture::meet(area, room.whole); };
  const auto line = [&](const picture::Stroke& stroke) {
    return std::any_of(stroke.points.begin(), stroke.points.end(),
                       [&](picture::Point at) { return room.whole.holds(at); });
  };
  const auto piece = [&](const picture::Piece& each) {
    const bool ground = each.kind == picture::Piece::wash || each.kind == picture::Piece::slab;
    return !ground && inside(each.area);
  };
  return std::none_of(placed.pieces.begin(), placed.pieces.end(), piece) &&
         std::none_of(placed.strokes.begin(), placed.strokes.end(), line) &&
         std::none_of(placed.words.begin(), placed.words.end(),
                      [&](const picture::Words& words) { return inside(words.area); });
}

/// Marks that are too small for their numbers in a low picture: of Hopper GEMM, where their labels are beside them, and a
/// tile of the backward pass between its four strips.
constexpr const char* kMayLoseWords[] = {"B_0_0",    "B_0_1",         "part_0_1",
                                         "part_0_2", "multicast_0_1", "S_7_7"};

/// The marks of `light` that are drawn ("NAME"), and those with a label or number on them ("NAME in words").
std::set<std::string> drawn_of(const std::vector<std::string>& light,
                               const picture::Placed& placed) {
  std::set<std::string> drawn;
  for (const auto& room : placed.rooms) drawn.insert(to_text(room.key));
  for (const auto& piece : placed.pieces) drawn.insert(to_text(piece.of.key));
  for (const auto& stroke : placed.strokes) drawn.insert(to_text(stroke.of.key));
  for (const auto& said : placed.said) drawn.insert(to_text(said.key));
  for (const auto& words : placed.words) {
    drawn.insert(to_text(words.of.key));
    const bool of_place = words.of.part >= picture::kPlacePart;
    if (!of_place) drawn.insert(to_text(words.of.key) + " in words");
  }
  std::erase_if(drawn, [&](const std::string& each) {
    const std::string key = each.substr(0, each.find(' '));
    return std::find(light.begin(), light.end(), key) == light.end();
  });
  return drawn;
}

/// The boxes that stand aside, and the room that their strip leaves.
std::pair<Area, std::vector<picture::Key>> cast(const picture::Picture& whole,
                                                const std::vector<std::string>& subject,
                                                const Area& stage, const picture::Metrics& metrics,
                                                bool exactly) {
  const Area left = ui::strip_of(stage, 1, metrics).left;
  std::vector<picture::Key> off;
  for (const Box* box : picture::beside(whole, subject, left, metrics, exactly)) {
    off.push_back(box->key);
  }
  return {off.empty() ? stage : left, off};
}

void check_stops(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  const scenes::Guide guide = scenes::parse_guide(scenes::lesson_text(id), lesson.knobs());
  tests::SceneFrame frame;
  for (const scenes::GuideStop& stop : guide.stops) {
    // There the chart has the room.
    if (stop.tab == "measured" || stop.light.empty()) continue;
    const std::string name = fmt::format("{}: {}", id, stop.title);
    const auto scene = tests::scene_of(id);
    scene->load(tests::report_of(id, stop.settings));
    const scenes::View view{cursor_at(stop, scene->steps())};
    std::string faults;
    frame.show({1200, 700}, [&] {
      faults.clear();
      std::set<std::string> at_first;
      const picture::Picture whole = scene->picture(scene->extent(), view);
      for (const auto& [area, scale] : contract::kStages) {
        const contract::Scaled metrics(scale);
        const auto [left, off] = cast(whole, stop.subject(), area, metrics, false);
        const picture::Placed placed = picture::place(whole, left, metrics, off);
        for (const picture::Room& room : placed.rooms) {
          const std::string key = to_text(room.key);
          if (std::count(stop.light.begin(), stop.light.end(), key) == 0) continue;
          INFO(name << " in " << area.width() << " x " << area.height() << ", " << key);
          CHECK(!is_empty(room, placed));
        }
        const std::set<std::string> drawn = drawn_of(stop.light, placed);
        if (at_first.empty()) at_first = drawn;
        for (const std::string& each : at_first) {
          const bool may_go = std::any_of(
              std::begin(kMayLoseWords), std::end(kMayLoseWords),
              [&](const char* mark) { return each == std::string(mark) + " in words"; });
          if (may_go || drawn.count(each) > 0) continue;
          faults += fmt::format("{}x{}: no {}\n", area.width(), area.height(), each);
        }
        const Standing standing(whole, placed, stop.light);
        const float ink = Grid(placed).share(standing.lit());
        const bool sparse = std::any_of(
            std::begin(kSparse), std::end(kSparse),
            [&](const auto& each) { return each.first == id && each.second == stop.title; });
        if (ink < (sparse ? kSparseInk : kInk))
          faults += fmt::format("{}x{}: ink {:.1f} %\n", area.width(), area.height(), 100 * ink);
        if (standing.boxes() <= kMostBoxes && standing.subject() >= kSubject) continue;
        faults += fmt::format("{}x{}: {} boxes, subject {:.0f} %\n", area.width(), area.height(),
                              standing.boxes(), 100 * standing.subject());
      }
    });
    INFO(name);
    CHECK(faults == "");
  }
}

/// The keys of the boxes that have marks.
std::vector<std::string> boxes_of(const Box& box) {
  std::vector<std::string> keys;
  if (!box.marks.empty()) keys.push_back(to_text(box.key));
  for (const Box& inner : box.boxes) {
    const std::vector<std::string> more = boxes_of(inner);
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

/// The picture of a step, laid out in the room that the strip leaves. One that names no subject is about all that it has:
/// then nothing stands aside, and its largest thing is as large as a stop's subject.
struct StepShot {
  std::string faults;
  std::set<std::string> drawn;
};
StepShot step_shot(const std::string& id, int step, const picture::Picture& whole,
                   const Area& stage, float scale) {
  const contract::Scaled metrics(scale);
  const bool all = whole.subject.empty();
  const std::vector<std::string> subject = all ? boxes_of(whole.root) : whole.subject;
  const auto [area, off] = all ? std::pair{stage, std::vector<picture::Key>()}
                               : cast(whole, subject, stage, metrics, true);
  const picture::Placed placed = picture::place(whole, area, metrics, off);
  Standing standing(whole, placed, subject);
  StepShot shot{{}, drawn_of(subject, placed)};
  const float room = area.width() * area.height() / (stage.width() * stage.height());
  const float ink = Grid(placed).share(standing.lit());
  const auto sparse = std::find_if(std::begin(kSparseSteps), std::end(kSparseSteps),
                                   [&](const auto& each) { return each.first == id; });
  if (room < kRoomBesideStrip) shot.faults += fmt::format(", strip {:.0f} %", 100 * (1 - room));
  if (ink < (sparse == std::end(kSparseSteps) ? kInk : sparse->second))
    shot.faults += fmt::format(", ink {:.1f} %", 100 * ink);
  if (standing.boxes() > kMostBoxes) shot.faults += fmt::format(", {} boxes", standing.boxes());
  if (standing.subject() < kStepSubject)
    shot.faults += fmt::format(", subject {:.0f} %", 100 * standing.subject());
  const float largest =
      all && step > 0 ? standing.largest() : 1;  // before that no lines lead anywhere
  if (largest < kSubject) shot.faults += fmt::format(", largest {:.0f} %", 100 * largest);
  return shot;
}

/// Steps at both ends, and others by the day; phases of a step have one subject.
void check_steps(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  const auto scene = tests::scene_of(id);
  scene->load(tests::report_of(id, {}));
  const scenes::StepAxis axis = scene->steps();
  const int inner = std::max(axis.tiles - 3, 0);
  tests::Part part("steps of " + id, static_cast<std::size_t>(std::max(inner / 2, 1)));
  tests::SceneFrame frame;
  std::vector<std::string> faults;
  frame.show({1200, 700}, [&] {
    faults.clear();
    for (int step = 0; step <= axis.tiles; ++step) {
      const bool at_end = step < 2 || step >= axis.tiles - 1;
      if (!at_end && part.skips()) continue;
      const auto picture_at = [&](int phase) {
        return scene->picture(scene->extent(), {scenes::Cursor{step, phase}});
      };
      const picture::Picture whole = picture_at(axis.last_phase(step));
      for (int phase = 0; phase < axis.last_phase(step); ++phase) {
        if (step > 0 && picture_at(phase).subject != whole.subject)
          faults.push_back(fmt::format("step {}, phase {}: another subject", step, phase));
      }
      std::set<std::string> at_first;
      std::vector<std::pair<Area, float>> stages(std::begin(contract::kStages),
                                                 std::end(contract::kStages));
      stages.emplace_back(contract::kLowestStage, 1);
      for (const auto& [stage, scale] : stages) {
        StepShot shot = step_shot(id, step, whole, stage, scale);
        if (at_first.empty()) at_first = shot.drawn;
        for (const std::string& each : at_first) {
          if (shot.drawn.count(each) == 0) shot.faults += ", no " + each;
        }
        if (shot.faults.empty()) continue;
        faults.push_back(
            fmt::format("step {}, {}x{}{}", step, stage.width(), stage.height(), shot.faults));
      }
    }
  });
  CHECK(faults == std::vector<std::string>());
}

}  // namespace

#define LESSON(chapter, id, title)                                                     \
  TEST_CASE(title ": the subject of a stop is the largest thing", "[" #id "_scene]") { \
    check_stops(id::lesson());                                                         \
  }                                                                                    \
  TEST_CASE(title ": the subject of a step is the largest thing", "[" #id "_scene]") { \
    check_steps(id::lesson());                                                         \
  }
#include "kernels/lessons.def"
