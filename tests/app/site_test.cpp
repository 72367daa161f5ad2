#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "app/cli/site/flip_book.hpp"
#include "app/keep/guided.hpp"
#include "scenes/picture/svg.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using nlohmann::json;
namespace fs = std::filesystem;
namespace app = tilestep::app;

namespace {

std::string from_base64(const std::string& text) {
  std::string bytes;
  unsigned kept = 0;
  int bits = 0;
  for (const char c : text) {
    static const std::string kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    kept = kept << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(kept >> (bits -= 8) & 255u);
  }
  return bytes;
}

/// The data of a page, by the blocks' names.
class PageData {
 public:
  explicit PageData(std::string html) : html_(std::move(html)) {}

  json of(const std::string& name) const {
    const std::string begin = "<script type=\"text/x-tilestep\" id=\"" + name + "\">";
    const std::size_t at = html_.find(begin);
    INFO(name);
    REQUIRE(at != html_.npos);
    const std::size_t from = at + begin.size();
    const std::string small = from_base64(html_.substr(from, html_.find('<', from) - from));
    std::string text(std::size_t{64} << 20, '\0');
    uLongf size = text.size();
    REQUIRE(::uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                         reinterpret_cast<const Bytef*>(small.data()), small.size()) == Z_OK);
    text.resize(size);
    return json::parse(text);
  }
  /// What a reader can see without the data: all but the elements that hold it.
  std::string visible() const {
    std::string rest;
    for (std::size_t at = 0; at < html_.size();) {
      const std::size_t data = std::min(html_.find("<script", at), html_.size());
      rest += html_.substr(at, data - at);
      at = std::min(html_.find("</script>", data), html_.size());
    }
    return rest;
  }

 private:
  std::string html_;
};

/// The rows of a place of a book, in drawing order.
std::vector<json> rows_of(const json& book, std::size_t place) {
  std::vector<json> all, rows;
  std::map<int, json> before;
  for (json row : book.at("shapes")) {
    json& last = before[row[0].get<int>()];
    for (std::size_t k = 1; k < std::min(row.size(), last.size()); ++k) {
      row[k] = row[k].get<int>() + last[k].get<int>();
    }
    all.push_back(last = row);
  }
  const json& ranges = book.at("frames").at(book.at("at").at(place).get<std::size_t>());
  for (std::size_t k = 0; k < ranges.size(); k += 2) {
    for (int n = 0; n < ranges[k + 1]; ++n) {
      rows.push_back(all.at(ranges[k].get<std::size_t>() + n));
    }
  }
  return rows;
}

std::vector<std::string> found(const std::string& text, const std::string& pattern) {
  const std::regex what(pattern);
  std::vector<std::string> all;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), what); at != std::sregex_iterator();
       ++at) {
    all.push_back((*at)[1]);
  }
  return all;
}

std::string unescaped(std::string text) {
  for (const auto& [from, to] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; ++at) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

/// Table by table, as far as the page has them: what `run --json` says of the same settings.
void check_run(const json& run, const std::string& lesson, const json& settings) {
  std::vector<std::string> words = {"run", lesson, "--backend", "emulated", "--json"};
  for (const auto& [id, value] : settings.items()) {
    words.insert(words.end(), {"--set", id + "=" + value.get<std::string>()});
  }
  const json report = run_tilestep(words).json();
  CHECK(run.at("summary") == report.at("summary"));
  REQUIRE(run.at("tables").size() == report.at("tables").size());
  for (std::size_t t = 0; t < run.at("tables").size(); ++t) {
    const json &mine = run.at("tables")[t], &theirs = report.at("tables")[t];
    CHECK(mine.at("id") == theirs.at("id"));
    CHECK(mine.at("all") == theirs.at("rows").size());
    for (std::size_t r = 0; r < mine.at("rows").size(); ++r) {
      for (std::size_t c = 0; c < mine.at("columns").size(); ++c) {
        const json& value = theirs.at("rows")[r][c];
        const std::string cell = mine.at("rows")[r][c];
        CAPTURE(lesson, settings.dump(), r, c, cell);
        if (value.is_number()) CHECK(std::stod(cell) == value.get<double>());
        if (value.is_string() && value != "inf" && value != "nan") CHECK(cell == value);
      }
    }
  }
}

}  // namespace

TEST_CASE("the site has a page of each lesson, and in it what its runs gave", "[site]") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "a" / "course";
  const Outcome made = run_tilestep({"site", "--lesson", "online-softmax", "--lesson", "coalescing",
                                     "--base-url", "https://example.org/x", "--out", out.string()});
  INFO(made.err);
  REQUIRE(made.code == 0);
  check_contains(made.out, (out / "index.html").string());
  const std::string first = file_text(out / "index.html");
  for (const std::string lesson : {"online-softmax", "coalescing"}) {
    check_contains(first, "href=\"#/" + lesson + "\"");
    const std::string html = file_text(out / lesson / "index.html");
    CHECK(html.size() <= 3u << 20);
    check_contains(html, "href=\"https://example.org/x/" + lesson + "/\"");
    check_contains(html, "default-src 'none'");
    const PageData page(html);
    const std::string visible = page.visible();
    // Only the link to where the page is published leads out of it; nothing is loaded.
    for (const char* loads : {" src=", "url(http", "@import", "srcset="}) {
      CHECK(visible.find(loads) == visible.npos);
    }
    const json core = page.of(lesson + "-core");
    const auto guide = app::guide_of(lesson);
    REQUIRE(core.at("stops").size() == guide.stops.size());
    const std::vector<std::string> titles = found(visible, "<h2 tabindex=\"-1\">([^<]*)</h2>");
    REQUIRE(titles.size() == guide.stops.size());
    std::set<int> checked;
    int asked = 0;
    for (std::size_t k = 0; k < guide.stops.size(); ++k) {
      const json& stop = core.at("stops")[k];
      CAPTURE(lesson, k);
      CHECK(unescaped(titles[k]) == guide.stops[k].title);
      CHECK_FALSE(stop.contains("missing"));
      CHECK(stop.at("tries").size() == guide.stops[k].tries.size());
      for (const json& one : stop.at("tries")) CHECK(one.at("run").get<int>() >= 0);
      const int number = stop.at("seen").at("run");
      const json run = page.of(lesson + "-run-" + std::to_string(number));
      const json book =
          page.of(lesson + "-book-" + std::to_string(stop.at("seen").at("wide").get<int>()));
      const json &steps = run.at("steps"), &there = book.at("places");
      const int tiles = steps.at("tiles"), phases = steps.at("phases"), folded = steps.at("folded");
      const int last = tiles == 0 ? 0 : (tiles - 1) * phases + (folded > 0 ? folded : phases);
      CHECK(there.front() == 0);
      CHECK(there.back() == last);
      CHECK(std::find(there.begin(), there.end(), stop.at("seen").at("place")) != there.end());
      if (last < 96) CHECK(there.size() == static_cast<std::size_t>(last) + 1);
      CHECK(std::is_sorted(there.begin(), there.end()));
      CHECK(book.at("words").size() == there.size());
      CHECK(book.at("at").size() == there.size());
      CHECK(book.at("frames").size() >= there.size());
      if (checked.size() < 3 && checked.insert(number).second) {
        check_run(run, lesson, core.at("runs")[static_cast<std::size_t>(number)]);
      }
      if (!stop.contains("question")) continue;
      ++asked;
      const std::string because = stop.at("question").at("because");
      CHECK(visible.find(because) == visible.npos);  // an answer is not to be read before
      CHECK(unescaped(visible).find(because) == visible.npos);
    }
    CHECK(checked.size() == 3);
    CHECK(asked >= 2);
    CHECK(core.at("views").size() >= 1);
    CHECK(core.at("questions").size() >= 2);
    CHECK(core.at("explore").at("knobs").size() == 2);
    CHECK(core.at("explore").at("runs").size() >= 4);
    for (const char* raw : {"](try:", "](light:", "](term:", "<!--", "**"}) {
      CHECK(visible.find(raw) == visible.npos);
    }
  }
  // Again over itself, in one file, and where kernels run makes no difference.
  const auto again = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"site", "--lesson", "online-softmax", "--out"});
    return run_tilestep(words);
  };
  CHECK(again({out.string(), "--single-file", "--lab",
               "run:'" + std::string(paths::kProgram) + "' worker"})
            .code == 0);
  const PageData whole(file_text(out / "index.html")),
      apart(file_text(out / "online-softmax" / "index.html"));
  CHECK(whole.of("online-softmax-core") == apart.of("online-softmax-core"));
  CHECK(whole.of("online-softmax-book-0") == apart.of("online-softmax-book-0"));
  // Somebody else's page is not replaced.
  fs::create_directories(folder.path() / "theirs");
  std::ofstream(folder.path() / "theirs" / "index.html") << "<p>mine</p>";
  const Outcome refused = again({(folder.path() / "theirs").string()});
  CHECK(refused.code == 2);
  check_contains(refused.err, "--force");
}

TEST_CASE("the tour is the site with fewer settings, and recorded runs say so", "[site]") {
  const TemporaryFolder folder;
  const std::string out = folder.path().string();
  const Outcome made =
      run_tilestep({"site", "--backend", "recorded", "--lesson", "online-softmax", "--out", out});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const PageData page(file_text(folder.path() / "online-softmax" / "index.html"));
  const json core = page.of("online-softmax-core");
  std::set<std::string> devices;
  for (std::size_t n = 0; n < core.at("runs").size(); ++n) {
    devices.insert(page.of("online-softmax-run-" + std::to_string(n)).at("device"));
  }
  const auto some = [&](const char* words) {
    return std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
      return device.find(words) != device.npos;
    });
  };
  CHECK(some("recorded on"));
  CHECK(some("CPU emulation"));
}

TEST_CASE("a flip book has what the SVG of the same picture has", "[site]") {
  const app::SvgPress press(1280, 800);
  for (const char* lesson : {"coalescing", "online-softmax", "moe-routing"}) {
    const auto report = app::emulated_report(lesson);
    const auto scene = app::scene_of(report);
    const int last = scene->steps().places();
    app::ThingNames names;
    app::FlipBook book(press, *scene, names, {{}, {}, {760, 440}});
    for (const int place : {0, last / 2, last}) book.add(place);
    const json pages = book.data();
    for (std::size_t frame = 0; frame < 3; ++frame) {
      const tilestep::scenes::View view{
          scene->steps().at_place(std::vector{0, last / 2, last}[frame])};
      const auto picture = scene->picture(scene->extent(), view);
      std::string svg;
      press.with_type(tilestep::ui::ThemeKind::dark, [&] {
        const tilestep::ui::PictureMetrics metrics;
        svg = tilestep::picture::svg(
            tilestep::picture::place(picture, {0, 0, 760, 440}, metrics),
            tilestep::picture::marks_of(picture), tilestep::ui::picture_palette(), metrics,
            [&](const tilestep::picture::Key& key) { return scene->explain(view, key); });
      });
      svg.erase(0, svg.find("</style>"));
      std::vector<std::string> labels, colours, titles;
      std::vector<std::array<double, 4>> fills;
      for (const json& row : rows_of(pages, frame)) {
        const auto text = [&](const json& number) {
          return pages.at("texts").at(number.get<std::size_t>()).get<std::string>();
        };
        if (row[0] == 6) labels.push_back(text(row[9]));
        if (row[4] != 0) titles.push_back(text(row[4]));
        if (row[0] == 0) {
          fills.push_back({row[5].get<int>() / 10.0, row[6].get<int>() / 10.0,
                           row[7].get<int>() / 10.0, row[8].get<int>() / 10.0});
          colours.push_back(pages.at("colours").at(row[2].get<std::size_t>())[0]);
        }
      }
      CAPTURE(lesson, frame);
      std::vector<std::string> theirs;
      for (const std::string& words :
           found(svg, "<text [^>]*>(?:<title>[^<]*</title>)?([^<]*)</text>")) {
        theirs.push_back(unescaped(words));
      }
      CHECK(labels == theirs);
      std::vector<std::string> told;
      for (const std::string& words : found(svg, "<title>([^<]*)</title>")) {
        told.push_back(unescaped(words));
      }
      CHECK(titles == told);
      static const std::regex kFill(
          "<rect [^>]*x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\" height=\"([^\"]*)\" "
          "rx=\"[^\"]*\" fill=\"(#[0-9a-f]{6})\"");
      std::size_t at = 0;
      for (auto rect = std::sregex_iterator(svg.begin(), svg.end(), kFill);
           rect != std::sregex_iterator(); ++rect, ++at) {
        REQUIRE(at < fills.size());
        for (std::size_t k = 0; k < 4; ++k) {
          CHECK(std::abs(fills[at][k] - std::stod((*rect)[k + 1])) <= 0.06);
        }
        CHECK(colours[at] == (*rect)[5].str());
      }
      CHECK(at == fills.size());
      CHECK(labels.size() > 3);
    }
  }
}
