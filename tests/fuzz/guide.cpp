// The guided path of a lesson's text, and the links in it; the first byte says of which lesson.
#include "scenes/shared/guide.hpp"

#include "kernels/catalog.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

void read(std::string_view bytes) {
  Choices choices(bytes);
  const lab::Knobs& knobs = lessons()[choices.below(lessons().size())]->knobs();
  const std::string_view text = choices.rest();
  for (const scenes::GuideLink& link : scenes::links_of(text)) {
    try {
      scenes::try_settings(link.target, knobs);
    } catch (const Error&) {  // the next link may be better
    }
  }
  const scenes::Guide guide = scenes::parse_guide(text, knobs);
  for (const scenes::GuideStop& stop : guide.stops) {
    scenes::cursor_at(stop, {.tiles = 3, .phases = 3, .phase_names = {"load", "old scale", "add"}});
    knobs.completed(stop.settings);
  }
}

const Target kTarget("guide", read);

}  // namespace
}  // namespace tilestep::fuzz
