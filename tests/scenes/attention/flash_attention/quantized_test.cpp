// What the picture of attention says of 8 bits: nothing before the end, then what the trace has.
#include <algorithm>
#include <variant>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "scenes/attention/flash_attention/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using flash_attention::Tensor;
using scenes::Cursor, scenes::FlashAttentionScene;
using Shown = tests::Shown<FlashAttentionScene>;

namespace {

lab::Settings quantized(const char* dtype, bool smooth_k = true) {
  return {{"seq", std::int64_t{192}},
          {"heads", std::int64_t{1}},
          {"head_dim", std::string("64")},
          {"dtype", std::string(dtype) + (smooth_k ? "" : "-with-mean")}};
}

}  // namespace

TEST_CASE("FlashAttention: what 8 bits cost is seen at the end, as the trace has it",
          "[flash_attention_scene]") {
  for (const char* dtype : {"fp8", "int8"}) {
    for (const bool smooth_k : {false, true}) {
      Shown shown(quantized(dtype, smooth_k));
      const auto& trace = shown.trace();
      REQUIRE(trace.quantized.size() == flash_attention::kQuantizedRows);
      const int places = shown->steps().places();
      for (int place = 0; place <= places; ++place) {
        const Cursor cursor = shown->steps().at_place(place);
        const picture::Picture picture = tests::picture_at(*shown, cursor);
        const auto bars = tests::marks_named<picture::Bars>(picture, "o_error");
        REQUIRE(bars.size() == trace.quantized.size());
        for (std::size_t i = 0; i < bars.size(); ++i) {
          const flash_attention::QuantizedRow& row = trace.quantized[i];
          const bool own = name_of(row.format) == dtype && row.smooth_k == smooth_k;
          const std::string said = shown->explain({cursor}, {"o_error", static_cast<int>(i)});
          if (place < places) {
            CHECK(bars[i]->items.value[0] == 0);
            CHECK(bars[i]->items.state.all == picture::State::to_come);
            CHECK(said.find('%') == std::string::npos);
            continue;
          }
          CHECK(bars[i]->items.value[0] == static_cast<float>(row.o_rms));
          CHECK(bars[i]->items.state.all ==
                (own ? picture::State::current : picture::State::plain));
          CHECK(said.find('%') != std::string::npos);
        }
      }
      const Cursor end = shown->steps().at_place(places);
      const std::string sentence = shown->sentence(shown->moment(end));
      CHECK(sentence.find(dtype) != std::string::npos);
      CHECK(sentence.find("K's mean") != std::string::npos);
    }
  }
  Shown shown(lab::Settings{{"seq", std::int64_t{128}}});
  const picture::Picture end = tests::picture_at(*shown, tests::end_of(*shown));
  CHECK(tests::mark_of<picture::Bars>(end, "o_error") == nullptr);
}

TEST_CASE("FlashAttention: the format that is furthest off is asked for, and the trace knows it",
          "[flash_attention_scene]") {
  Shown shown(quantized("fp8"));
  const auto& rows = shown.trace().quantized;
  const int last = shown->steps().tiles - 1;
  const Cursor before = {last, shown->steps().last_phase(last)};
  const auto question = shown->question({before});
  REQUIRE(question);
  CHECK(question->id == "quantized");
  const auto worst = std::max_element(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.o_rms < b.o_rms; });
  CHECK(shown.answer(before) == name_of_row(*worst));
  CHECK(question->choices.size() == 4);
}

TEST_CASE("FlashAttention: bytes of 8 bits run up to what was traced", "[flash_attention_scene]") {
  Shown shown(quantized("int8"));
  bool scales = false;
  for (const flash_attention::LedgerRow& row : shown.trace().ledger) {
    CAPTURE(name_of(row.tensor));
    scales = scales || row.tensor == Tensor::scales;
    double before = 0;
    for (int place = 0; place <= shown->steps().places(); ++place) {
      const auto now = shown->asked_by(shown->moment(shown->steps().at_place(place)), row);
      CHECK(now.loaded + now.stored >= before);
      before = now.loaded + now.stored;
    }
    CHECK(before == static_cast<double>(row.loaded + row.stored));
  }
  CHECK(scales);
}

TEST_CASE("FlashAttention: with scores in 8 bits the kernel's own source is shown",
          "[flash_attention_scene]") {
  Shown shown(quantized("fp8"));
  const scenes::SourceMark mark = shown->source({{1, 0}});
  CHECK(mark.path.find("quantized.cu") != std::string::npos);
  CHECK(mark.current > 0);
}
