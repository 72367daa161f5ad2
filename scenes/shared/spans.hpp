#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenes/picture/picture.hpp"
#include "scenes/picture/role.hpp"

namespace tilestep::scenes {

/// A box with a margin for an axis, its label above.
inline picture::Box labelled(picture::Key key, picture::Box inner, picture::Text label,
                             const picture::Layout& layout) {
  picture::Box made = picture::column(key, {std::move(inner)}, layout);
  made.label = std::move(label);
  return made;
}

/// picture::Spans of `of` requests, built one by one.
struct SpanList {
  picture::Spans spans;
  std::vector<int> requests;
  int of;

  SpanList(picture::Name name, picture::Name x, picture::Name lanes, int of_requests)
      : of(of_requests) {
    spans.items = picture::items(name, 0);
    spans.x = x;
    spans.lanes = lanes;
  }
  /// `request`: −1 for none.
  void add(int id, int lane, double begin, double end, picture::State state, std::string name,
           int request) {
    ++spans.items.count;
    spans.items.ids.push_back(id);
    spans.lane.push_back(lane);
    spans.begin.push_back(begin);
    spans.end.push_back(end);
    spans.items.state.each.push_back(state);
    spans.items.names.push_back(std::move(name));
    spans.items.tone.each.push_back(picture::category_tone(request, of));
    requests.push_back(request);
  }
  picture::Spans made(double now) {
    spans.now = now;
    spans.items.about = {{"request", {0, requests}}};
    return std::move(spans);
  }
};

}  // namespace tilestep::scenes
