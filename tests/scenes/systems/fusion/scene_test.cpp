// What only the picture of fusion does, held to the trace that it is drawn from.
#include "scenes/systems/fusion/scene.hpp"

#include <algorithm>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using fusion::Lane, fusion::Move, fusion::Phase, fusion::Tensor;
using picture::Key, picture::State;
using scenes::Cursor, scenes::FusionScene;
using tests::contains, tests::count_of, tests::items_named, tests::mark_named, tests::picture_at;
using Fused = tests::Shown<FusionScene>;

TEST_CASE("Fusion: bands are as long as the bytes that have moved, in both ways",
          "[fusion_scene]") {
  for (const char* fuse : {"", "8", "9", "8,9"}) {
    Fused shown(lab::Settings{{"fuse", std::string(fuse)}});
    for (const Cursor cursor : tests::all_places(*shown)) {
      if (cursor.tile > fusion::kChain) break;
      const picture::Picture picture = picture_at(*shown, cursor);
      const auto& moved = mark_named<picture::Spans>(picture, "moved");
      double ends[2] = {0, 0};
      for (int i = 0; i < moved.items.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        CHECK(moved.begin[at] == ends[moved.lane[at]]);
        ends[moved.lane[at]] = moved.end[at];
      }
      for (const int way : {0, 1}) {
        const Lane& lane = way == 0 ? shown.trace().unfused : shown.trace().fused;
        std::int64_t bytes = 0;
        for (const Move& move : lane.moves) {
          const int when = static_cast<int>(move.stored ? Phase::write : Phase::read);
          if (is_counted(move.tensor) && Cursor{move.step + 1, when} <= cursor) bytes += move.bytes;
        }
        if (cursor.tile > 0)
          CHECK(ends[way] == Approx(static_cast<double>(bytes) / shown.trace().width));
      }
    }
  }
}

TEST_CASE("Fusion: what is fused is never in memory, and stays in registers", "[fusion_scene]") {
  Fused shown;
  const int width = shown.trace().shown();
  const auto row_of = [&](const char* name, int row, Cursor cursor) {
    const picture::Items cells = items_named(picture_at(*shown, cursor), name);
    return cells.glyph[static_cast<std::size_t>(row * width)];
  };
  constexpr int kNormedRow = 3;
  const Cursor end{fusion::kChain, static_cast<int>(Phase::write)};
  CHECK(row_of("unfused_memory", kNormedRow, end) == picture::kSolid);
  CHECK(row_of("fused_memory", kNormedRow, end) == picture::kHollow);
  CHECK(row_of("fused_memory", 2, end) == picture::kSolid);
  // The second launch reads h again; fused nothing moves.
  const Cursor again{2, static_cast<int>(Phase::read)};
  CHECK(count_of(items_named(picture_at(*shown, again), "unfused_held"), State::current) == width);
  CHECK(count_of(items_named(picture_at(*shown, again), "fused_held"), State::current) == 0);
  CHECK(contains(shown->sentence(again), "still there"));
}

TEST_CASE("Fusion: wrong codes are crossed out", "[fusion_scene]") {
  Fused shown(lab::Settings{{"break", std::string("stats-before-residual")}});
  const Cursor end{fusion::kChain, static_cast<int>(Phase::write)};
  CHECK(count_of(items_named(picture_at(*shown, end), "fused_memory"), State::wrong) > 0);
  CHECK(count_of(items_named(picture_at(*shown, end), "unfused_memory"), State::wrong) == 0);
  CHECK(contains(shown->sentence(end), "are wrong"));
  CHECK(contains(shown->sentence(end), "codes times "));
  Fused sound;
  CHECK(count_of(items_named(picture_at(*sound, end), "fused_memory"), State::wrong) == 0);
}

TEST_CASE("Fusion: a click on a seam turns the knob, and the ledger follows", "[fusion_scene]") {
  Fused shown;
  const Cursor end{shown.trace().length(), static_cast<int>(Phase::write)};
  const picture::Items seams = items_named(picture_at(*shown, end), "seam");
  REQUIRE(seams.count == fusion::kSeams);
  CHECK(seams.act.kind == picture::Act::set);
  CHECK(seams.names[7] == "fused");
  CHECK(seams.names[10] == "fuse");
  CHECK(seams.names[1] == "–");
  CHECK(shown->dropped({end}, {"seam", 10}, {"seam", 10}) ==
        lab::Settings{{"fuse", std::string("8,9,11")}});
  CHECK(shown->dropped({end}, {"seam", 8}, {"seam", 8}) ==
        lab::Settings{{"fuse", std::string("8")}});
  CHECK(shown->dropped({end}, {"seam", 8}, {"seam", 9}) == std::nullopt);
  CHECK(contains(shown->explain({end}, {"seam", 1}), "every tile"));
  CHECK(contains(shown->explain({end}, {"seam", 10}), "28 B per number less"));
}

TEST_CASE("Fusion: the bands of the block add up to its score", "[fusion_scene]") {
  for (const char* fuse : {"", "8,9", "1,3,7,9,11,14"}) {
    Fused shown(lab::Settings{{"fuse", std::string(fuse)}});
    const Cursor end{shown.trace().length(), static_cast<int>(Phase::write)};
    const picture::Picture picture = picture_at(*shown, end);
    const auto& bands = mark_named<picture::Spans>(picture, "band");
    double bytes = 0, saved = 0;
    for (int i = 0; i < bands.items.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool outline = (bands.items.flags[at] & picture::kWas) != 0;
      (outline ? saved : bytes) += bands.end[at] - bands.begin[at];
    }
    CHECK(bytes == Approx(shown.trace().own.bytes));
    CHECK(bytes + saved == Approx(shown.trace().none.bytes));
    const auto& score = mark_named<picture::Ledger>(picture, "score");
    CHECK(score.items.names[3] == std::to_string(shown.trace().kernels()));
  }
}
