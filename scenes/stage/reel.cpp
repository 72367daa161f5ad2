#include "scenes/stage/reel.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/picture/parts.hpp"
#include "scenes/shared/questions.hpp"

namespace tilestep::scenes {
namespace {

constexpr std::size_t kStills = 12;
constexpr double kHalfWay = 0.5;

/// Each phase begins and ends gently, and rests a moment before the next: one idea after the other.
float eased(double fraction) {
  constexpr double kMoving = 0.85;
  const auto t = static_cast<float>(std::clamp(fraction / kMoving, 0.0, 1.0));
  return t * t * (3 - 2 * t);
}

/// What a box is called: its label up to a colon, or a shorter form; of one of several the first label in it. Empty: it
/// has no label, and comes with the whole picture alone.
std::string name_of(const picture::Box& box) {
  const auto words = [](const std::vector<picture::Run>& label) {
    const std::string all = picture::plain(label);
    return all.substr(0, all.find(':'));
  };
  std::string name = words(box.label.full);
  const std::string brief = words(box.label.brief);
  if (!brief.empty() && brief.size() < name.size()) name = brief;
  for (const picture::Box& inner : box.boxes) {
    if (name.empty()) name = name_of(inner);
  }
  return name;
}

}  // namespace

void Reel::forget() {
  casts_.clear();
  chooses_.reset();
  stills_.clear();
}

void Reel::renew() {
  extent_.reset();
  forget();
  half_.reset();
  from_ = to_ = nullptr;
}

void Reel::use(picture::Area area, float scale, const Reel* other) {
  const bool shares = other != nullptr;
  if (!extent_ || shares != shares_) {
    extent_ =
        shares ? picture::united(scene_->extent(), other->scene_->extent()) : scene_->extent();
    forget();
    half_.reset();
  }
  if (area != area_ || scale != scale_) forget();
  shares_ = shares;
  area_ = area;
  scale_ = scale;
}

void Reel::shoot(const Shot& shot) {
  if (shot != shot_) stills_.clear();
  shot_ = shot;
}

const std::vector<picture::Key>& Reel::cast(const picture::Picture& picture) {
  static const std::vector<picture::Key> kNone;
  std::vector<std::string> names;
  if (shot_.of == Shot::step) names = picture.subject;
  if (shot_.of == Shot::all || (shot_.of == Shot::step && names.empty())) return kNone;
  names.insert(names.end(), shot_.names.begin(), shot_.names.end());
  std::vector<picture::Key> boxes = picture::boxes_of(picture);
  const auto known = std::find_if(casts_.begin(), casts_.end(), [&](const Cast& each) {
    return each.names == names && each.boxes == boxes;
  });
  if (known != casts_.end()) return known->off;
  std::vector<picture::Key> off;
  const picture::Area room = shares_ ? area_ : ui::strip_of(area_, 1).left;
  const bool exactly = shot_.of == Shot::step;
  for (const picture::Box* box :
       picture::beside(picture, names, room, ui::PictureMetrics(), exactly)) {
    off.push_back(box->key);
  }
  casts_.push_back({std::move(names), std::move(boxes), std::move(off)});
  return casts_.back().off;
}

picture::Placed Reel::placed(const View& view, const picture::Area& area) {
  const picture::Picture picture = scene_->picture(extent(), view);
  return picture::place(picture, area, ui::PictureMetrics(), cast(picture));
}

bool Reel::chooses(const View& view) {
  if (shot_.of != Shot::step) return shot_.of == Shot::named;
  if (!chooses_ || !(chooses_->first == view))
    chooses_.emplace(view, !scene_->picture(extent(), view).subject.empty());
  return chooses_->second;
}

const std::vector<Reel::Aside>& Reel::aside(const View& view, const picture::Area& area) {
  Still& still = kept(view);
  if (still.aside_in == area) return still.aside;
  still.aside_in = area;
  const std::vector<picture::Area> areas = ui::strip_of(area, still.aside.size()).areas;
  still.aside.resize(areas.size());
  const picture::Picture& picture = still.shown->picture;
  for (std::size_t i = 0; i < areas.size(); ++i) {
    Aside& each = still.aside[i];
    each.area = areas[i];
    each.drawn = ui::small(*picture::box_of(picture.root, each.key), picture, areas[i]);
  }
  return still.aside;
}

void Reel::show_earlier(std::shared_ptr<const picture::Picture> earlier, std::string name) {
  if (earlier == earlier_) return;
  earlier_ = std::move(earlier);
  earlier_name_ = std::move(name);
  stills_.clear();
  half_.reset();
}

std::shared_ptr<ui::ShownPicture> Reel::built(const View& view) const {
  auto made = std::make_shared<ui::ShownPicture>();
  made->picture = scene_->picture(*extent_, view);
  if (earlier_) add_earlier(made->picture, *earlier_, earlier_name_);
  if (view.guess) {
    const auto question = scene_->question({view.guess->asked, view.picks});
    if (question) add_guess(made->picture, *question, *view.guess);
  }
  return made;
}

Reel::Still& Reel::kept(const View& view) {
  const auto found = std::find_if(stills_.begin(), stills_.end(),
                                  [&](const Still& each) { return each.view == view; });
  if (found != stills_.end()) {
    std::rotate(found, found + 1, stills_.end());
    return stills_.back();
  }
  auto made = half_ && half_->view == view ? std::move(half_->made) : built(view);
  half_.reset();
  made->marks = picture::marks_of(made->picture);
  const std::vector<picture::Key>& off = cast(made->picture);
  std::vector<Aside> aside;
  for (const picture::Key& key : off) {
    const picture::Box& box = *picture::box_of(made->picture.root, key);
    const std::string name = name_of(box);
    if (!name.empty() && !picture::is_bare(box)) aside.push_back({key, name, {}, {}});
  }
  // Two runs side by side have one strip.
  const picture::Area area = aside.empty() || shares_ ? area_ : ui::strip_of(area_, 1).left;
  made->placed = picture::place(made->picture, area, ui::PictureMetrics(), off);
  if (stills_.size() == kStills) stills_.erase(stills_.begin());
  stills_.push_back({view, std::move(made), std::move(aside)});
  return stills_.back();
}

Reel::Shown Reel::still(const View& view) {
  return kept(view).shown;
}

void Reel::prepare(const View& view) {
  const StepAxis axis = scene_->steps();
  const int place = axis.place_of(view.cursor);
  if (place >= axis.places()) return;
  View next = view;
  next.cursor = axis.at_place(place + 1);
  const bool there = std::any_of(stills_.begin(), stills_.end(),
                                 [&](const Still& each) { return each.view == next; });
  if (there) return;
  if (half_ && half_->view == next) {
    still(next);
  } else {
    half_ = Half{next, built(next)};
  }
}

const picture::Placed& Reel::moving(const View& view, double fraction) {
  const StepAxis axis = scene_->steps();
  const int place = axis.place_of(view.cursor);
  const Shown from = still(view);
  if (fraction <= 0 || place >= axis.places()) return from->placed;
  View next = view;
  next.cursor = axis.at_place(place + 1);
  const Shown to = still(next);
  if (from != from_ || to != to_) {
    from_ = from;
    to_ = to;
    join_.emplace(from->placed, to->placed);
  } else if (fraction > kHalfWay) {
    prepare(next);
  }
  picture::mix(from->placed, to->placed, *join_, eased(fraction), mixed_);
  return mixed_;
}

}  // namespace tilestep::scenes
