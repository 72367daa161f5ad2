// What only the picture of attention on Hopper does, held to the trace that it is drawn from.
#include "scenes/attention/flash_attention_3/scene.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "kernels/base/lab/recording.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using flash_attention_3::Event;
using scenes::Cursor, scenes::FlashAttention3Scene;
using tests::all_places, tests::end_of, tests::items_named, tests::picture_at;
using Shown = tests::Shown<FlashAttention3Scene>;

namespace {

/// Short, so that a run takes a moment.
lab::Settings with(lab::Settings settings) {
  settings.try_emplace("seq", std::int64_t{256});
  settings.try_emplace("head_dim", std::string("64"));
  return settings;
}

}  // namespace

TEST_CASE("FlashAttention-3: lanes end at the cursor, whose clock never goes back",
          "[flash_attention_3_scene]") {
  for (const char* rung : {"flash-3-ping-pong", "flash-3"}) {
    Shown shown(with({{"variant", std::string(rung)}}));
    double before = 0;
    int drawn = 0, beat = 0;
    for (const Cursor cursor : all_places(*shown)) {
      if (cursor.tile == 0) continue;  // nothing of this run
      const double now = shown->clock_at(shown->moment(cursor));
      CHECK(now >= before);
      before = now;
      const picture::Picture picture = shown->picture(shown->extent(), {cursor});
      const auto time = std::find_if(picture.axes.begin(), picture.axes.end(),
                                     [](const auto& axis) { return axis.name == "time"; });
      CHECK(time->current_group >= beat);
      beat = time->current_group;
      for (const picture::Mark* mark : picture::marks_of(picture)) {
        const auto* spans = std::get_if<picture::Spans>(mark);
        if (spans == nullptr) continue;
        for (std::size_t i = 0; i < spans->begin.size(); ++i, ++drawn) {
          CHECK(spans->begin[i] <= beat);
          CHECK(spans->end[i] <= beat + 1);
        }
      }
    }
    CHECK(drawn > 0);
    // Until it is written O lies in registers.
    CHECK(tests::hollow(items_named(picture_at(*shown, {2, 1}), "O")) > 0);
    CHECK(tests::hollow(items_named(picture_at(*shown, end_of(*shown)), "O")) == 0);
    const auto& events = shown.trace().events;
    CHECK(before == static_cast<double>(std::ranges::max(events, {}, &Event::clock).clock));
  }
}

TEST_CASE("FlashAttention-3: in step and in turn the tensor cores are busy as they were counted",
          "[flash_attention_3_scene]") {
  const lab::Recording* recording = lab::recording("flash-attention-3");
  REQUIRE(recording != nullptr);
  for (const char* head_dim : {"64", "128"}) {
    Shown shown(with({{"head_dim", std::string(head_dim)}}));
    const picture::Picture picture = shown->picture(shown->extent(), {Cursor{}});
    for (const auto& [name, rung] : {std::pair{picture::Name("step"), "flash-3-tma"},
                                     std::pair{picture::Name("turn"), "flash-3-ping-pong"}}) {
      const picture::Spans* found = nullptr;
      for (const picture::Mark* mark : picture::marks_of(picture)) {
        const auto* spans = std::get_if<picture::Spans>(mark);
        if (spans != nullptr && spans->items.name == name) found = spans;
      }
      REQUIRE(found != nullptr);
      double busy = 0, end = 0, of_group[2] = {0, 0};
      for (std::size_t k = 0; k < found->begin.size(); ++k) {
        const double long_by = found->end[k] - found->begin[k];
        end = std::max(end, found->end[k]);
        if (found->lane[k] < 2) of_group[found->lane[k]] += long_by;
        if (found->lane[k] == 2 && found->items.names[k] != "idle") busy += long_by;
      }
      const auto counted = scenes::number_with(
          recording->bench, "pipes", {{"rung", rung}, {"head_dim", head_dim}}, "tensor_pipe");
      CHECK(100 * busy / end == Approx(*counted));
      CHECK(of_group[0] == Approx(end));
      CHECK(of_group[1] == Approx(end));
    }
  }
}

TEST_CASE("FlashAttention-3: bytes run up to what was traced, and never back",
          "[flash_attention_3_scene]") {
  Shown shown(with({{"mask", std::string("causal")}}));
  tests::check_bytes(shown);
}

TEST_CASE("FlashAttention-3: what is left out stands in the picture at the end",
          "[flash_attention_3_scene]") {
  Shown shown(with({{"break", std::string("skip-rescale")}}));
  REQUIRE(shown.trace().result.wrong > 0);
  CHECK(shown->sentence(shown->moment(end_of(*shown))).starts_with("skip-rescale: "));
}

TEST_CASE(
    "FlashAttention-3: a path asks who copies, what runs ahead, whose turn it is, and what "
    "the roof is",
    "[flash_attention_3_scene]") {
  std::set<std::string> kinds;
  Shown shown(with({}));
  for (int step = 0; step < shown->steps().tiles; ++step) {
    const auto question = shown->question({{step, shown->steps().last_phase(step)}});
    if (question) kinds.insert(question->id);
  }
  CHECK(kinds == std::set<std::string>{"copier", "ahead", "turns", "roof"});
}
