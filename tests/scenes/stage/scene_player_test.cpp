#include "scenes/stage/scene_player.hpp"

#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Cursor;
using tests::Parts;
using tests::SceneFrame;

namespace {

/// Four steps of two phases: a row of cells, of which one more is current at each phase, and a pile that
/// the last two phases fly to.
class RowScene final : public scenes::Scene {
 public:
  RowScene() {
    report_.tables = {{"steps", "Steps", {"cell", "value"}}};
    for (int k = 0; k < 4; ++k) report_.tables[0].add({k, 10 * k});
    report_.tables.push_back({"others", "Others", {"other"}});
    report_.tables[1].add({3});
  }
  std::string_view lesson() const override { return "row"; }
  std::unique_ptr<Scene> blank() const override { return std::make_unique<RowScene>(); }
  void load(const lab::Report&) override {}
  scenes::StepAxis steps() const override { return {tiles, 2, "cell", {"load", "add"}, "steps"}; }
  const lab::Report* report() const override { return &report_; }
  scenes::SourceMark source(const scenes::View&) const override { return {}; }
  std::optional<scenes::Question> question(const scenes::View& view) const override {
    if (view.cursor.tile != 1) return std::nullopt;
    scenes::Question asked{"Which is next?", {"cell 2", "cell 3"}, 0, "They come in turn."};
    asked.where = {{"cell", 2}, {"cell", 3}};
    return asked;
  }

  picture::Extent extent() const override {
    ++extents;
    return {};
  }
  picture::Picture picture(const picture::Extent&, const scenes::View& view) const override {
    ++pictures;
    picture::Cells cells{picture::items("cell", {value, 1, 2, 3}, {picture::Format::integer})};
    cells.items.act = act;
    cells.items.about = {{"cell", {0, {0, 1, 2, 3}}}};
    cells.items.flags.each.resize(4);
    cells.items.flags.each.at(static_cast<std::size_t>(view.pick("cell"))) = picture::kPicked;
    cells.items.state.each.resize(4);
    for (int k = 0; k < 4; ++k) {
      if (k < view.cursor.tile) {
        cells.items.state.each[static_cast<std::size_t>(k)] = picture::State::current;
      }
    }
    const std::vector<float> heights{static_cast<float>(view.cursor.tile)};
    picture::Bars bars{picture::items("bar", heights), "bars", "height"};
    picture::Picture made;
    made.headline = picture::text("Step " + std::to_string(view.cursor.tile) + ".");
    made.axes = {{.name = "bars", .kind = picture::Axis::band, .count = 1},
                 {.name = "height", .high = 4}};
    made.root = picture::row({"all"}, {picture::box({"row"}, {cells}, {}, {.place = place}),
                                       picture::box({"bars_box"}, {bars})});
    return made;
  }
  std::string explain(const scenes::View&, const picture::Key& key) const override {
    explained = picture::to_text(key);
    return "It is " + explained + ".";
  }
  std::vector<scenes::Readout> readouts(const scenes::View& view) const override {
    return {{"tile", "tile", std::to_string(view.cursor.tile)}};
  }
  std::optional<lab::Settings> dropped(const scenes::View&, const picture::Key& item,
                                       const picture::Key& onto) const override {
    return lab::Settings{{"moved", picture::to_text(item) + " to " + picture::to_text(onto)}};
  }

  picture::Act act;
  picture::Place place = picture::Place::nowhere;
  float value = 0;
  int tiles = 4;
  mutable int pictures = 0, extents = 0;
  mutable std::string explained;

 private:
  lab::Report report_;
};

/// Frames of a scene, at rest or in motion.
struct Show {
  scenes::ScenePlayer player{std::make_unique<RowScene>()};
  RowScene& scene = static_cast<RowScene&>(player.scene());
  SceneFrame frame;
  ImVec2 size{600, 300};

  Parts draw(const scenes::Moment& now) {
    return frame.draw(size, [&] { player.draw_picture(now); });
  }
  Parts draw(Cursor cursor) { return draw(scenes::Moment(cursor)); }
  std::string ink(Cursor cursor) { return ink(scenes::Moment(cursor)); }
  void point_at(const Parts& parts, const std::string& id) {
    ImGui::GetIO().MousePos = tests::center(parts.at(id));
  }
  /// All that is drawn.
  std::string ink(const scenes::Moment& now) {
    draw(now);
    std::string bytes;
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int i = 0; i < data.CmdListsCount; ++i) {
      const auto& vertices = data.CmdLists[i]->VtxBuffer;
      bytes.append(reinterpret_cast<const char*>(vertices.Data),
                   static_cast<std::size_t>(vertices.size_in_bytes()));
    }
    return bytes;
  }
};

}  // namespace

TEST_CASE("a still frame draws what was placed, and builds nothing", "[scenes_shared]") {
  Show show;
  const Parts first = show.draw({1, 1});
  CHECK(show.scene.pictures == 1);
  CHECK(first.at("sentence").label == "Step 1.");
  CHECK(first.at("cell_2").value == "2");
  CHECK(first.at("cell_2").label == "cell 2");
  CHECK(first.at("bar_0").value == "");
  CHECK(first.at("row").least.y > 0);
  for (int n = 0; n < 3; ++n) show.draw({1, 1});
  show.draw({2, 1});
  show.draw({1, 1});
  CHECK(show.scene.pictures == 2);
  CHECK(show.scene.extents == 1);
  show.size = {500, 200};
  show.draw({1, 1});
  CHECK(show.scene.pictures == 3);
  show.frame.look().text_scale = 1.5f;
  show.draw({1, 1});
  CHECK(show.scene.pictures == 4);
  show.player.load({});
  show.draw({1, 1});
  CHECK(show.scene.pictures == 5);
  CHECK(show.scene.extents == 2);
}

TEST_CASE("between two places the picture is on its way, and says what the first one says",
          "[scenes_shared]") {
  Show show;
  show.draw({1, 1});  // no first frame is like the others
  const std::string start = show.ink({1, 1}), end = show.ink({2, 0});
  show.ink({1, 1});
  const int built = show.scene.pictures;
  const Parts halfway = show.draw({{1, 1}, 0.5});
  const std::string moving = show.ink({{1, 1}, 0.5});
  CHECK(moving != start);
  CHECK(moving != end);
  CHECK(show.ink({{1, 1}, 0.25}) != moving);
  CHECK(show.ink({{1, 1}, 0.5}) == moving);  // also on the way back
  CHECK(show.scene.pictures == built);
  CHECK(halfway.at("sentence").label == "Step 1.");
  CHECK(show.ink({{1, 1}, 0.0}) == start);
  show.player.load({});
  CHECK(show.ink({{4, 1}, 0.5}) == show.ink({4, 1}));  // nothing comes after the last
}

TEST_CASE("what is pointed at is explained, and lights what is about the same", "[scenes_shared]") {
  Show show;
  const Parts parts = show.draw({4, 1});
  const std::string plain = show.ink({4, 1});
  CHECK(show.player.lit_row("steps") == -1);
  show.point_at(parts, "cell_2");
  show.draw({4, 1});
  CHECK(show.ink({4, 1}) != plain);
  CHECK(show.scene.explained == "cell_2");
  CHECK(show.player.lit_row("steps") == 2);
  CHECK(show.player.lit_row("others") == -1);
  CHECK(show.player.lit_row("none") == -1);
  ImGui::GetIO().MousePos = {-10, -10};
  CHECK(show.ink({4, 1}) == plain);
  CHECK(show.player.lit_row("steps") == -1);
  show.player.point_at(show.scene.subjects_of_row("steps", 1));
  const std::string lit = show.ink({4, 1});
  CHECK(lit != plain);
  show.player.point_at(show.scene.subjects_of_row("others", 0));
  CHECK(show.ink({4, 1}) == plain);  // "other" 3 is another thing than cell 3
  show.player.point_at(show.scene.subjects_of_row("steps", 0));
  CHECK(show.ink({4, 1}) != lit);
  show.player.point_at(show.scene.subjects_of_row("", -1));
  CHECK(show.ink({4, 1}) == plain);
}

TEST_CASE("the pointer says where a thing lies", "[scenes_shared]") {
  Show show;
  show.scene.place = picture::Place::registers;
  show.frame.context().record_texts(true);
  const auto says = [&](const std::string& id) {
    show.point_at(show.draw({4, 1}), id);
    show.draw({4, 1});
    std::string all;
    for (const ui::DrawnText& text : show.frame.context().texts()) all += text.text + '\n';
    return all;
  };
  CHECK(says("cell_2").find("\nin registers\n") != std::string::npos);
  CHECK(says("bar_0").find("registers") == std::string::npos);
}

TEST_CASE("a pinned run is drawn beside the next one, in step with it", "[scenes_shared]") {
  Show show;
  show.scene.value = 1;
  const Parts alone = show.draw({2, 1});
  CHECK(alone.count("a.cell_2") == 0);
  CHECK_FALSE(show.player.compares());
  show.player.pin();
  REQUIRE(show.player.compares());
  const Parts both = show.draw({2, 1});
  const ui::MapEntry &a = both.at("a.cell_2"), &b = both.at("cell_2");
  CHECK((a.max.x <= b.min.x || a.max.y <= b.min.y));
  CHECK(a.max.x - a.min.x == Approx(b.max.x - b.min.x).margin(1));
  CHECK(both.at("run_a").value == "the pinned run");
  const std::string same = show.ink({2, 1});
  show.scene.value = 7;  // another run: the first cell says otherwise
  show.player.load({});
  const Parts other = show.draw({2, 1});
  CHECK(other.at("cell_0").value == "7");
  CHECK(other.at("a.cell_0").value == "0");
  CHECK(show.ink({2, 1}) != same);
  CHECK(show.player.readouts({2, 1}).at(0).value == "2");
  const std::string rest = show.ink({2, 1}), moving = show.ink({{2, 1}, 0.5});
  CHECK(moving != rest);
  CHECK(show.draw({{2, 1}, 0.5}).count("a.cell_2") == 1);
  show.player.unpin();
  CHECK(show.draw({2, 1}).count("a.cell_2") == 0);
}

TEST_CASE("the pinned run stands as far in its work as this one", "[scenes_shared]") {
  Show show;
  show.player.pin();
  for (const Cursor cursor : {Cursor{0, 1}, Cursor{1, 0}, Cursor{3, 1}, Cursor{4, 1}}) {
    CHECK(show.player.pinned_cursor(cursor) == cursor);
  }
  show.scene.tiles = 2;  // half as many steps over the same work
  CHECK(show.player.pinned_cursor({0, 1}) == Cursor{0, 1});
  CHECK(show.player.pinned_cursor({1, 0}) == Cursor{1, 1});
  CHECK(show.player.pinned_cursor({1, 1}) == Cursor{2, 1});
  CHECK(show.player.pinned_cursor({2, 1}) == Cursor{4, 1});
}

TEST_CASE("a guess stands in the picture until the step after its answer", "[scenes_shared]") {
  Show show;
  const Parts plain = show.draw({1, 1});
  CHECK(plain.count("guess") == 0);
  show.player.guess(scenes::Guess{{1, 1}, 1});
  const Parts guessed = show.draw({1, 1});
  REQUIRE(guessed.count("guess") == 1);
  CHECK(guessed.at("guess").value.find("predicted") == 0);
  CHECK(tests::within(guessed.at("cell_3"), guessed.at("guess"), 3));
  CHECK(show.draw({2, 1}).count("guess") == 1);
  show.player.guess(std::nullopt);
  CHECK(show.draw({2, 1}).count("guess") == 0);
  show.player.guess(scenes::Guess{{3, 1}, 0});  // nothing is asked there
  CHECK(show.draw({3, 1}).count("guess") == 0);
}

TEST_CASE("a click goes, picks or changes a knob, as the item says", "[scenes_shared]") {
  Show show;
  const auto press = [&](const std::string& id, const std::string& release) {
    const Parts parts = show.draw({1, 1});
    show.point_at(parts, id);
    show.draw({1, 1});
    ImGui::GetIO().MouseDown[0] = true;
    show.draw({1, 1});
    show.point_at(parts, release);
    show.draw({1, 1});
    ImGui::GetIO().MouseDown[0] = false;
    show.draw({1, 1});
  };
  press("cell_2", "cell_2");
  CHECK_FALSE(show.player.take_step());
  CHECK_FALSE(show.player.take_request());
  show.scene.act = {picture::Act::go};
  show.player.load({});
  press("cell_2", "cell_2");
  CHECK(show.player.take_step() == Cursor{3, 1});
  CHECK_FALSE(show.player.take_step());
  show.scene.act = {picture::Act::pick, "cell"};
  show.player.load({});
  press("cell_3", "cell_3");
  CHECK(show.player.view({}).pick("cell") == 3);
  show.scene.act = {picture::Act::set, "moved"};
  show.player.load({});
  press("cell_2", "cell_2");  // let go where it was: followed, and dropped on itself
  auto request = show.player.take_request();
  REQUIRE(request);
  CHECK(std::get<std::string>(request->at("moved")) == "cell_2 to cell_2");
  CHECK(show.player.view({}).pick("moved") == 2);
  press("cell_1", "cell_3");
  request = show.player.take_request();
  REQUIRE(request);
  CHECK(std::get<std::string>(request->at("moved")) == "cell_1 to cell_3");
}
