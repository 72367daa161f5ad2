// What every stop's shot promises: the subject is the largest thing, and few boxes stand beside it.

#include <fmt/format.h>

#include <algorithm>
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

/// Boxes that stand as one: rows that stand close together, strips on the axes of a matrix.
struct Group {
  Area area;
  bool lit = false;
  std::set<std::string> bands;
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
  /// What is lit takes so much of the picture below its headline.
  float subject() const {
    float lit = 0;
    Group all = groups_.empty() ? Group() : groups_.front();
    for (const Group& group : groups_) {
      if (group.lit) lit += group.area.width() * group.area.height();
      add(all, group);
    }
    return lit / std::max(all.area.width() * all.area.height(), 1.0f);
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
  static void add(Group& to, const Group& other) {
    to.area = {std::min(to.area.x0, other.area.x0), std::min(to.area.y0, other.area.y0),
               std::max(to.area.x1, other.area.x1), std::max(to.area.y1, other.area.y1)};
    to.lit = to.lit || other.lit;
    to.bands.insert(other.bands.begin(), other.bands.end());
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

/// Marks of Hopper GEMM that are too small for their numbers in a low picture, where their labels are beside them.
constexpr const char* kMayLoseWords[] = {"B_0_0", "B_0_1", "part_0_1", "part_0_2", "multicast_0_1"};

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
    drawn.insert(to_text(words.of.key) + " in words");
  }
  std::erase_if(drawn, [&](const std::string& each) {
    const std::string key = each.substr(0, each.find(' '));
    return std::find(light.begin(), light.end(), key) == light.end();
  });
  return drawn;
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
        std::vector<picture::Key> off;
        for (const Box* box : picture::beside(whole, stop.subject(), area, metrics)) {
          off.push_back(box->key);
        }
        const picture::Placed placed = picture::place(whole, area, metrics, off);
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
        if (standing.boxes() <= kMostBoxes && standing.subject() >= kSubject) continue;
        faults += fmt::format("{}x{}: {} boxes, subject {:.0f} %\n", area.width(), area.height(),
                              standing.boxes(), 100 * standing.subject());
      }
    });
    INFO(name);
    CHECK(faults == "");
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                     \
  TEST_CASE(title ": the subject of a stop is the largest thing", "[" #id "_scene]") { \
    check_stops(id::lesson());                                                         \
  }
#include "kernels/lessons.def"
