// The pictures of decoding that stand beside its steps, held to the tables and the trace that they are drawn from: what
// many rows, a batch and a step cost and when the blocks were at work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/attention/decode/run/run.hpp"
#include "kernels/base/lab/recording.hpp"
#include "scenes/attention/decode/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using decode::ItemTrace;
using picture::Key;
using scenes::Cursor, scenes::DecodeScene;
using tests::mark_named;
using Shown = tests::Shown<DecodeScene>;

namespace {

picture::Picture view_at(const scenes::Scene& scene, int step, int rows = 1) {
  scenes::View view{Cursor{step, 0}};
  view.picks[picture::Name("rows")] = rows;
  return scene.picture(scene.extent(), view);
}
template <class Mark>
bool has_mark(const picture::Picture& picture, const Key& key) {
  const auto marks = picture::marks_of(picture);
  return std::any_of(marks.begin(), marks.end(), [&](const picture::Mark* mark) {
    return std::holds_alternative<Mark>(*mark) && picture::has(*mark, key);
  });
}
decode::Params params_of(const Shown& shown) {
  return decode::knob_table().params(shown.report().params);
}
/// The run that was recorded with these splits and else the defaults.
lab::Report recorded(std::int64_t splits) {
  const lab::Knobs& knobs = lesson("decode").knobs();
  const lab::Report* found = lab::recorded_run("decode", [&](const lab::Report& run) {
    return knobs.completed(run.params) == knobs.completed({{"splits", splits}});
  });
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("Decode: what a byte of cache is used for is the formula's, on one scale",
          "[decode_scene]") {
  for (const char* scheme : {"gqa", "mla"}) {
    Shown shown(lab::Settings{{"scheme", std::string(scheme)}});
    const picture::Picture picture = view_at(*shown, 0);
    const auto& bars = mark_named<picture::Spans>(picture, {"scheme"});
    REQUIRE(bars.items.count == 4);
    for (int s = 0; s < 4; ++s) {
      decode::Params other = params_of(shown);
      other.scheme = static_cast<decode::Scheme>(s);
      const auto at = static_cast<std::size_t>(s);
      CHECK(bars.end[at] == Approx(decode::intensity(other.layer(), other.kv_dtype, other.scales)));
      CHECK((bars.items.flags[at] == picture::kPicked) ==
            (other.scheme == params_of(shown).scheme));
    }
    CHECK(mark_named<picture::Rule>(picture, {"ridge"}).at == decode::kRidge);
    for (const int rows : decode::kRows) {
      const picture::Picture many = view_at(*shown, 0, rows);
      CHECK(mark_named<picture::Bars>(many, {"rows_taken"}).items.value[0] == Approx(rows));
      CHECK(mark_named<picture::Bars>(many, {"prefill"}).items.value[0] == 4096);
    }
  }
}

TEST_CASE("Decode: the strip is the followed request's cache, and is swept once",
          "[decode_scene]") {
  for (const std::int64_t splits : {1, 2, 0}) {
    Shown shown(lab::Settings{{"splits", splits}});
    const auto& trace = shown.trace();
    const int tiles = (trace.tokens[static_cast<std::size_t>(trace.request)] + 15) / 16;
    int before = 0;
    for (int step = 0; step <= trace.rounds(); ++step) {
      const picture::Picture now = view_at(*shown, step);
      const picture::Items& strip = mark_named<picture::Cells>(now, {"swept"}).items;
      CHECK(strip.count == tiles * trace.shape.cached_heads);
      int read = 0;
      for (int k = 0; k < strip.count; ++k) {
        read += strip.state[static_cast<std::size_t>(k)] != picture::State::to_come ? 1 : 0;
      }
      CHECK(read >= before);
      before = read;
    }
    CHECK(before == tiles * trace.shape.cached_heads);
  }
}

TEST_CASE("Decode: bands that move end where the traced bytes do", "[decode_scene]") {
  const lab::Settings runs[] = {{},
                                {{"scheme", std::string("mla")}},
                                {{"kv_dtype", std::string("int4")}},
                                {{"splits", std::int64_t{0}}},
                                {{"splits", std::int64_t{1}}},
                                {{"break", std::string("repeat-kv")}}};
  for (const lab::Settings& settings : runs) {
    Shown shown(settings);
    const auto& trace = shown.trace();
    double cached = 0, parts = 0;
    for (const decode::LedgerRow& row : trace.ledger) {
      if (row.tensor == "K" || row.tensor == "V") cached += static_cast<double>(row.loaded);
      if (row.tensor == "parts") parts += static_cast<double>(row.loaded + row.stored);
    }
    double now = 0;
    for (int step = 1; step <= trace.rounds(); ++step) {
      const picture::Picture picture = view_at(*shown, step);
      const auto& bands = mark_named<picture::Spans>(picture, {"moved"});
      for (std::size_t k = 0; k < bands.lane.size(); ++k) {
        if (bands.items.state[k] == picture::State::current && bands.lane[k] == 0)
          now += bands.end[k] - bands.begin[k];
      }
    }
    CHECK(1e3 * now == Approx(cached));
    double ends[2] = {0, 0};
    const picture::Picture last = view_at(*shown, trace.answered());
    const auto& bands = mark_named<picture::Spans>(last, {"moved"});
    for (std::size_t k = 0; k < bands.lane.size(); ++k) ends[bands.lane[k]] = 1e3 * bands.end[k];
    CHECK(ends[0] == Approx(cached));
    CHECK(ends[1] == Approx(parts));
  }
}

TEST_CASE("Decode: weights of the merge are bars as long as they are", "[decode_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  const picture::Picture picture = view_at(*shown, trace.answered());
  const auto& bars = mark_named<picture::Spans>(picture, {"weight"});
  REQUIRE(bars.items.count == std::ssize(trace.parts));
  for (std::size_t k = 0; k < trace.parts.size(); ++k) {
    CHECK(bars.end[k] == Approx(static_cast<double>(trace.parts[k].weight)));
  }
  CHECK_FALSE(has_mark<picture::Spans>(view_at(*shown, trace.answered() - 1), {"weight"}));
}

TEST_CASE("Decode: the chart's lines of weights and cache meet at the crossing", "[decode_scene]") {
  for (const std::int64_t context : {64, 32768}) {
    Shown shown(lab::Settings{{"context", context}});
    const picture::Picture picture = view_at(*shown, 0);
    const auto& weights = mark_named<picture::Curve>(picture, "weights_read");
    CHECK(weights.y[0] == Approx(16.06));  // 8.03 billion in BF16
    for (int s = 0; s < 4; ++s) {
      const auto& cache = mark_named<picture::Curve>(picture, picture::to_text({"cache_read", s}));
      const double token =
          decode::model_token_bytes(params_of(shown), static_cast<decode::Scheme>(s));
      REQUIRE(cache.x == std::vector<double>{1, 256});
      CHECK(cache.y[0] == Approx(token * (context == 64 ? 8192 : 32768) / 1e9));
      CHECK(cache.y[1] == Approx(256 * cache.y[0]));
    }
    const auto& crossing = mark_named<picture::Curve>(picture, "crossing");
    const auto& own = mark_named<picture::Curve>(picture, picture::to_text({"cache_read", 1}));
    CHECK(crossing.x[0] * own.y[0] == Approx(weights.y[0]));
    CHECK(crossing.y[0] == weights.y[0]);
    const auto& batch = mark_named<picture::Rule>(picture, "crossing_batch");
    CHECK(picture::plain(batch.label.full) ==
          fmt::format("batch {:.0f}", std::ceil(crossing.x[0])));
  }
  // One that lies outside of the axis is not drawn.
  Shown shown(lab::Settings{{"scheme", std::string("mqa")}, {"kv_dtype", std::string("int4")}});
  CHECK_FALSE(has_mark<picture::Curve>(view_at(*shown, 0), {"crossing"}));
}

TEST_CASE("Decode: the parts of a step with rows of a prompt are the formula's", "[decode_scene]") {
  Shown shown;
  const picture::Picture picture = view_at(*shown, 0);
  const auto& spans = mark_named<picture::Spans>(picture, "step_share");
  REQUIRE(spans.items.count == 3 * (std::ssize(decode::kRows) - 1));
  for (int i = 0; i < spans.items.count; ++i) {
    const auto at = static_cast<std::size_t>(i), row = at / 3;
    const decode::MixedStep step = decode::mixed_step(params_of(shown), decode::kRows[row]);
    const double parts[] = {step.weights, step.cache, step.chunk};
    CHECK(spans.lane[at] == static_cast<int>(row));
    CHECK(spans.end[at] - spans.begin[at] == Approx(1e3 * parts[at % 3]).margin(1e-9));
    if (at % 3 > 0) CHECK(spans.begin[at] == spans.end[at - 1]);
    if (at % 3 == 2) CHECK(spans.end[at] == Approx(1e3 * step.seconds()));
  }
}

TEST_CASE("Decode: blocks at work over a GPU's clock are the recorded items", "[decode_scene]") {
  double mean[2] = {0, 0};
  for (const std::int64_t splits : {1, 0}) {
    CAPTURE(splits);
    DecodeScene scene;
    scene.load(recorded(splits));
    const auto& trace = scene.trace();
    REQUIRE(trace.clocked());
    const picture::Picture picture = view_at(scene, trace.length());
    const auto& spans = mark_named<picture::Spans>(picture, {"worked"});
    const picture::Items& chip = mark_named<picture::Cells>(picture, {"multiprocessor"}).items;
    double worked = 0, idle = 0;
    for (int i = 0; i < spans.items.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int id = spans.items.ids[at];
      (id < std::ssize(trace.items) ? worked : idle) += spans.end[at] - spans.begin[at];
      if (id >= std::ssize(trace.items)) continue;
      const ItemTrace& item = trace.items[static_cast<std::size_t>(id)];
      CHECK(spans.lane[at] == item.block);
      CHECK(spans.begin[at] == static_cast<double>(item.begin));
      CHECK(spans.end[at] == static_cast<double>(item.end));
    }
    CHECK(chip.count == 132);
    int with = 0;
    for (const ItemTrace& item : trace.items) {
      const auto at = static_cast<std::size_t>(item.block);
      if (item.block < 132) CHECK(chip.glyph[at] == picture::kSolid);
    }
    for (std::size_t k = 0; k < 132; ++k) with += chip.glyph[k] == picture::kSolid ? 1 : 0;
    CHECK(with == std::min(trace.blocks, 132));
    mean[splits] = trace.mean_at_work();
    CHECK(mean[splits] == Approx(worked / trace.launch_end()));
    CHECK(idle > 0);
    const auto axes = picture.axes;
    const auto time = std::find_if(axes.begin(), axes.end(),
                                   [](const picture::Axis& a) { return a.name == "time"; });
    REQUIRE(time != axes.end());
    CHECK(picture::plain(time->title.full) == "ns");
  }
  CHECK(mean[0] > mean[1]);
}

TEST_CASE("Decode: without a clock blocks stand over tiles, and the picture says so",
          "[decode_scene]") {
  Shown shown(lab::Settings{{"splits", std::int64_t{1}}});
  const auto& trace = shown.trace();
  REQUIRE_FALSE(trace.clocked());
  const picture::Picture picture = view_at(*shown, trace.length());
  const auto& spans = mark_named<picture::Spans>(picture, "worked");
  for (std::size_t i = 0; i < trace.items.size(); ++i) {
    CHECK(spans.end[i] - spans.begin[i] == trace.items[i].tiles);
  }
  CHECK(tests::contains(shown->sentence({trace.length(), 0}), "no clock"));
  CHECK_FALSE(has_mark<picture::Spans>(view_at(*shown, trace.answered()), {"worked", 0}));
}

TEST_CASE("Decode: eight requests have a tone each, and their names", "[decode_scene]") {
  Shown shown({{"context", std::int64_t{256}},
               {"batch", std::int64_t{8}},
               {"seed", std::int64_t{4}},
               {"splits", std::int64_t{1}}});
  const picture::Items chip =
      tests::items_named(view_at(*shown, shown.trace().length()), "multiprocessor");
  std::map<int, int> tone_of;
  std::set<int> tones;
  for (std::size_t k = 0; k < chip.names.size(); ++k) {
    const int request = chip.about.front().second[k];
    CHECK(chip.names[k] == (request < 0 ? "" : fmt::format("R{}", request)));
    CHECK((chip.tone[k] > 0) == (request >= 0));
    if (request < 0) continue;
    CHECK(tone_of.try_emplace(request, chip.tone[k]).first->second == chip.tone[k]);
    tones.insert(chip.tone[k]);
  }
  CHECK(tone_of.size() == 8);
  CHECK(tones.size() == 8);
  // Where blocks are too many to be numbered their lanes say whose they are; so do the rows of the cache.
  for (const picture::Axis& axis : shown->extent().axes) {
    if (axis.name == picture::Name("row")) CHECK(axis.names.back() == "R7");
    if (axis.name != picture::Name("time_block")) continue;
    for (const ItemTrace& item : shown.trace().items) {
      CHECK(axis.names[static_cast<std::size_t>(item.block)] == fmt::format("R{}", item.request));
    }
  }
}

TEST_CASE("Decode: a key in four bits is the run's own, with the scales that the cache has",
          "[decode_scene]") {
  Shown shown(lab::Settings{{"kv_dtype", std::string("int4")}, {"scales", std::string("channel")}});
  const decode::Inputs inputs = decode::inputs_of(params_of(shown));
  const auto channels = static_cast<std::size_t>(inputs.layer.row.key);
  const std::size_t first = inputs.key_at(inputs.tables[0][0], 0, 0);
  float most = 0;
  for (std::size_t c = 0; c < channels; ++c) most = std::max(most, std::abs(inputs.k[first + c]));
  const double step = static_cast<double>(most) / 7;
  int lost = 0;
  for (std::size_t c = 0; c < channels; ++c) {
    lost += 2 * std::abs(static_cast<double>(inputs.k[first + c])) < step ? 1 : 0;
  }
  REQUIRE(lost > 10);

  const auto pictures = tests::pictures_in(*shown, "Channels");
  REQUIRE(pictures.size() == 1);
  const auto ticks = [&](const char* name) {
    return mark_named<picture::Ticks>(pictures[0], name);
  };
  const picture::Ticks was = ticks("key_was"), token = ticks("key_by_token_is"),
                       channel = ticks("key_by_channel_is");
  for (const double at : was.at) {
    const auto end = inputs.k.begin() + static_cast<std::ptrdiff_t>(first + channels);
    CHECK(std::find(end - static_cast<std::ptrdiff_t>(channels), end, static_cast<float>(at)) !=
          end);
  }
  for (std::size_t k = 0; k < token.at.size(); ++k) {
    CHECK(token.at[k] == Approx(std::round(token.at[k] / step) * step).margin(1e-4));
    CHECK((token.items.state[k] == picture::State::wrong) == (token.at[k] == 0));
    if (token.at[k] == 0) CHECK(token.items.names[k] == fmt::format("{}×", lost));
  }
  // With a scale of its own each channel keeps more of them apart.
  CHECK(channel.at.size() > 2 * token.at.size());
  CHECK(mark_named<picture::Rule>(pictures[0], "level_8").at == Approx(step));
}
