// Knobs as written after --set, a line each; the first byte says of which lesson. What is taken comes
// back from its own text and from a link.
#include "app/keep/link.hpp"
#include "kernels/answer.hpp"
#include "kernels/catalog.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tilestep::fuzz {
namespace {

/// Given up before anything runs: only what checks the settings has its say.
class GivenUp final : public lab::Progress {
 public:
  void report(double, std::string_view) override { throw Cancelled(); }
  bool cancelled() const override { return true; }
};

void check(const lab::Lesson& lesson, const lab::Settings& settings) {
  const lab::Settings all = lesson.knobs().completed(settings);
  require(lesson.knobs().completed(all) == all, "complete settings are complete");
  for (const lab::Knob& knob : lesson.knobs()) {
    const lab::KnobValue& value = all.at(knob.id);
    require(knob.parsed(knob.text(value)) == value, "a knob takes the text of its value");
    require(knob.checked(value) == value, "a knob takes its value");
  }
  app::link_of(lesson.info().id, all, 1, std::nullopt);
}

void read(std::string_view bytes) {
  Choices choices(bytes);
  const lab::Lesson& lesson = *lessons()[choices.below(lessons().size())];
  std::string_view text = choices.rest();
  lab::Settings settings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      lesson.knobs().set(settings, text.substr(0, end));
    } catch (const Error&) {  // the next line may be better
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  check(lesson, settings);
  GivenUp given_up;
  lab::Request request{lesson.info().id, settings, lab::Request::Action::run, "emulated"};
  answer(request, given_up);
}

const Target kTarget("set", read);

}  // namespace
}  // namespace tilestep::fuzz
