// What only the picture of many GPUs does, held to the trace that it is drawn from.
#include "scenes/systems/parallelism/scene.hpp"

#include <numeric>

#include "kernels/systems/parallelism/bench/bench.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/scenes/marks.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using parallelism::Phase;
using scenes::Cursor, scenes::ParallelismScene;
using tests::items_named, tests::mark_named, tests::mark_of, tests::picture_at;
using Shown = tests::Shown<ParallelismScene>;

namespace {

constexpr int kSend = static_cast<int>(Phase::send), kArrive = static_cast<int>(Phase::arrive);

/// How many cells of a rank are filled.
int filled(const picture::Picture& picture, int rank) {
  const picture::Items cells = items_named(picture, "r" + std::to_string(rank));
  return cells.count - tests::hollow(cells);
}

}  // namespace

TEST_CASE("Parallelism: cells are whose numbers the kernels had in hand", "[parallelism_scene]") {
  for (const char* algorithm : {"ring", "tree", "one-shot"}) {
    Shown shown(lab::Settings{{"algorithm", algorithm}, {"ranks", std::int64_t{5}}});
    const auto& trace = shown.trace();
    for (int beat = 0; beat <= trace.beats(); ++beat) {
      const picture::Picture picture = picture_at(*shown, Cursor{beat, kArrive});
      for (int rank = 0; rank < trace.ranks; ++rank) {
        const picture::Items cells = items_named(picture, "r" + std::to_string(rank));
        for (int k = 0; k < cells.count; ++k) {
          const int marks = trace.held_at(beat, rank, k / trace.ranks);
          CHECK((cells.glyph[static_cast<std::size_t>(k)] == picture::kSolid) ==
                (parallelism::times_in(marks, k % trace.ranks) == 1));
        }
      }
    }
    CHECK(filled(picture_at(*shown, Cursor{trace.beats(), kArrive}), 4) == 25);
    CHECK(filled(picture_at(*shown, 0), 4) == 5);
  }
}

TEST_CASE("Parallelism: an arrow for each chunk that is sent, and bytes up to those counted",
          "[parallelism_scene]") {
  Shown shown;
  const auto& trace = shown.trace();
  for (int beat = 1; beat <= trace.beats(); ++beat) {
    const picture::Picture picture = picture_at(*shown, Cursor{beat, kSend});
    const auto& arrows = mark_named<picture::Links>(picture, "arrow");
    REQUIRE(arrows.items.count == trace.ranks);
    for (int i = 0; i < arrows.items.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      // What is on its way is lit, and the receiver has it afterwards.
      CHECK(arrows.from[at].key.i == arrows.to[at].key.i);
      CHECK(filled(picture, i) <= filled(picture_at(*shown, Cursor{beat, kArrive}), i));
    }
    CHECK(mark_of<picture::Links>(picture_at(*shown, Cursor{beat, kArrive}), "arrow") == nullptr);
  }
  const Cursor end{trace.beats(), kArrive};
  for (int rank = 0; rank < trace.ranks; ++rank)
    CHECK(shown->sent_by(rank, end) == trace.link_at(rank, (rank + 1) % trace.ranks));
  CHECK(shown->sent_in_all() == 1536);
  CHECK(shown->sent_by(0, Cursor{2, kSend}) == 512);
}

TEST_CASE("Parallelism: mistakes are seen in cells and named in words", "[parallelism_scene]") {
  Shown twice(lab::Settings{{"break", "sum-twice"}});
  const Cursor end{twice.trace().beats(), kArrive};
  const picture::Items cells = items_named(picture_at(*twice, end), "r1");
  CHECK(tests::count_of(cells, picture::State::wrong) == 1);
  CHECK(std::count(cells.names.begin(), cells.names.end(), "2×") == 1);
  CHECK(tests::contains(twice->sentence(end), "sum-twice"));
  Shown order(lab::Settings{{"break", "wrong-order"}});
  CHECK(order->sentence(end) ==
        "wrong-order: deadlock: rank 0 waits in call 2 for rank 3, which is in call 1.");
  Shown missing(lab::Settings{{"break", "missing-all-reduce"}});
  CHECK(filled(picture_at(*missing, end), 2) == 4);
  CHECK(tests::contains(missing->sentence({2, kSend}), "never called"));
}

TEST_CASE("Parallelism: bars of memory are as long as what was allocated", "[parallelism_scene]") {
  for (const char* cut : {"data", "fsdp", "tensor", "pipeline", "expert"}) {
    Shown shown(lab::Settings{{"cut", cut}});
    const auto& trace = shown.trace();
    const picture::Picture picture = picture_at(*shown, Cursor{trace.cut_step(), kArrive});
    const auto& spans = mark_named<picture::Spans>(picture, "memory_span");
    double drawn = 0;
    for (std::size_t i = 0; i < spans.begin.size(); ++i) drawn += spans.end[i] - spans.begin[i];
    CHECK(drawn == Approx(std::accumulate(trace.memory.begin(), trace.memory.end(), 0.0)));
  }
}

TEST_CASE("Parallelism: slots do not overlap, and backward is shown when it is its turn",
          "[parallelism_scene]") {
  Shown shown(lab::Settings{{"schedule", "interleaved"}});
  const auto& trace = shown.trace();
  const auto count = [&](int phase) {
    const picture::Picture picture = picture_at(*shown, Cursor{trace.pipeline_step(), phase});
    return mark_named<picture::Spans>(picture, "slot").items.count;
  };
  CHECK(count(kSend) == 2 * 4 * 4);
  CHECK(count(kArrive) == 2 * 2 * 4 * 4);
  CHECK(tests::contains(shown->sentence({trace.pipeline_step(), kArrive}), "27 %"));
}

TEST_CASE("Parallelism: questions about a bench have its numbers", "[parallelism_scene]") {
  using Bench = tests::MadeUpBench<ParallelismScene>;
  CHECK(Bench().answer("small-message") == "not asked");
  lab::Table table{"all_reduce", "", {"rung", lab::whole("bytes"), lab::real("time", "", "µs", 2)}};
  table.add({"ring", 1024, 10.0});
  table.add({"ring", 16384, 12.0});
  table.add({"ring", 65536, 15.0});
  table.add({"one-shot", 16384, 4.0});
  CHECK(Bench({table}).answer("small-message") == "3.0×");
  CHECK(Bench({table}).answer("message-times-64") == "1.5×");
  lab::Table overlap{
      "overlap",
      "",
      {"way", "columns", lab::real("wire", "", "µs", 1), lab::real("product", "", "µs", 1),
       lab::real("times", "", "", 3), lab::real("best", "", "", 3)}};
  overlap.add({"copies, then product", 4096, 120.0, 400.0, 1.0, {}});
  overlap.add({"product beside copies", 4096, 120.0, 400.0, 1.2, 1.3});
  overlap.add({"one kernel", 4096, 120.0, 400.0, 1.25, 1.3});
  CHECK(Bench({table, overlap}).answer("hidden-gather") == "1.2×");
}

TEST_CASE("Parallelism: a view for each table of the bench, with a sentence of its numbers",
          "[parallelism_scene]") {
  tests::TimedEmulation device;
  lab::NoProgress progress;
  lab::Report bench = parallelism::bench_report(device, progress, parallelism::BenchSizes::tiny());
  for (lab::Table& table : bench.tables) {
    // As if NCCL had been there: twice as fast.
    for (std::size_t i = 0; i < table.columns.size() && table.id != "overlap"; ++i) {
      if (table.columns[i].id == "times") table.rows.back()[i] = 0.5;
    }
  }
  scenes::ScenePlayer player = tests::player_of("parallelism");
  player.load(tests::report_of("parallelism"));
  std::vector<std::string> sentences;
  for (const auto& view : player.scene().measured_spec().views) {
    CAPTURE(view.name);
    CHECK((view.needs.empty() || bench.table(view.needs) != nullptr));
    if (view.headline.text) sentences.push_back(view.headline.text(bench));
    if (view.headline.text) CHECK(view.headline.text(lab::Report{}).empty());
    for (const float scale : {1.0f, 1.5f}) {
      tests::SceneFrame frame;
      frame.look().text_scale = scale;
      player.show_view(view.name);
      frame.context().record_texts(true);
      frame.draw_scrolling({1010, 170}, [&] { player.draw_measured(bench); });
      const std::string faults = contract::layout_faults(frame.context());
      INFO(faults);
      CHECK(faults.empty());
    }
  }
  REQUIRE(sentences.size() == 4);
  CHECK(sentences[0] == "An all-gather of 4 KB, one-shot: 0.50 times as fast as NCCL's.");
  CHECK(tests::contains(sentences[2], "1.00 times as fast as in turn"));
  CHECK(tests::contains(sentences[3], "The plan is off most for context"));
}
