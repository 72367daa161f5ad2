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

/// What a box is called; of one of several the first label in it. Empty: it has no label, and comes with the whole picture alone.
std::string name_of(const picture::Box& box) {
  const picture::Text& label = box.label;
  std::string name = picture::plain(label.brief.empty() ? label.full : label.brief);
  for (const picture::Box& inner : box.boxes) {
    if (name.empty()) name = name_of(inner);
  }
  return name;
}

}  // namespace

void Reel::renew() {
  extent_.reset();
  cast_in_.reset();
  stills_.clear();
  half_.reset();
  from_ = to_ = nullptr;
}

void Reel::use(picture::Area area, float scale, const Reel* other) {
  const bool shares = other != nullptr;
  if (!extent_ || shares != shares_) {
    extent_ =
        shares ? picture::united(scene_->extent(), other->scene_->extent()) : scene_->extent();
    stills_.clear();
    half_.reset();
  }
  if (area != area_ || scale != scale_) stills_.clear();
  shares_ = shares;
  area_ = area;
  scale_ = scale;
}

bool Reel::shoot(const std::vector<std::string>& subject) {
  if (subject == subject_) return false;
  subject_ = subject;
  cast_in_.reset();
  return true;
}

const std::vector<std::pair<picture::Key, std::string>>& Reel::aside(const View& view,
                                                                     const picture::Area& area) {
  if (cast_in_ == area) return aside_;
  cast_in_ = area;
  aside_.clear();
  off_.clear();
  stills_.clear();
  if (subject_.empty()) return aside_;
  const picture::Picture whole = scene_->picture(extent(), view);
  for (const picture::Box* box : picture::beside(whole, subject_, area, ui::PictureMetrics())) {
    off_.push_back(box->key);
    if (const std::string name = name_of(*box); !name.empty()) aside_.emplace_back(box->key, name);
  }
  return aside_;
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

Reel::Shown Reel::still(const View& view) {
  const auto found = std::find_if(stills_.begin(), stills_.end(),
                                  [&](const Still& each) { return each.view == view; });
  if (found != stills_.end()) {
    std::rotate(found, found + 1, stills_.end());
    return stills_.back().shown;
  }
  auto made = half_ && half_->view == view ? std::move(half_->made) : built(view);
  half_.reset();
  made->marks = picture::marks_of(made->picture);
  made->placed = placed(made->picture, area_);
  if (stills_.size() == kStills) stills_.erase(stills_.begin());
  stills_.push_back({view, std::move(made)});
  return stills_.back().shown;
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
