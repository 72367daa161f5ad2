#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/keep/guided.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/browser.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using nlohmann::json;
namespace fs = std::filesystem;
namespace app = tilestep::app;

namespace {

/// The course, written once for all tests: a few lessons, or with TILESTEP_LONG all.
const fs::path& course() {
  static const TemporaryFolder folder;
  static const fs::path out = [] {
    std::vector<std::string> words = {"site", "--out", folder.path().string()};
    if (std::getenv("TILESTEP_LONG") == nullptr) {
      for (const char* lesson : {"coalescing", "online-softmax"}) {
        words.insert(words.end(), {"--lesson", lesson});
      }
    }
    const Outcome made = run_tilestep(words);
    INFO(made.err);
    REQUIRE(made.code == 0);
    return folder.path();
  }();
  return out;
}

std::vector<std::string> lessons_there() {
  std::vector<std::string> all;
  for (const tilestep::lab::Lesson* lesson : tilestep::lessons()) {
    if (fs::exists(course() / lesson->info().id / "index.html")) all.push_back(lesson->info().id);
  }
  return all;
}

std::string page_of(const std::string& lesson, const std::string& tail = "") {
  return (course() / lesson / "index.html").string() + (tail.empty() ? "" : "#/" + lesson + tail);
}

/// Nothing went wrong in it, and it asked for nothing.
void check_quiet(Page& page) {
  for (const std::string& error : page.console_errors()) {
    INFO(error);
    CHECK(error.empty());
  }
  for (const std::string& url : page.requests()) {
    INFO(url);
    CHECK(url.empty());
  }
}

void skip_questions(Page& page) {
  page.evaluate(
      "document.querySelectorAll('.stop:not([hidden]) .question .skip:enabled')"
      ".forEach((skip) => skip.click())");
}

/// The stop is on show; what it asks is skipped.
void go_to_stop(Page& page, int stop) {
  page.wait_for("document.body.dataset.at == " + std::to_string(stop) +
                " && !document.getElementById('course').hidden && "
                "document.querySelectorAll('#board svg g > *').length > 0");
  // About a chart there may be several.
  page.wait_for(
      "(() => { const skips = document.querySelectorAll('.stop:not([hidden]) .question "
      ".skip:enabled'); skips.forEach((skip) => skip.click()); return skips.length == 0 && "
      "!document.querySelector('.stop:not([hidden]) .text')?.hidden; })()");
}

}  // namespace

TEST_CASE("every stop of a lesson opens in a browser, without an error or a request", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  std::uintmax_t bytes = 0;
  for (const std::string& lesson : lessons_there()) {
    bytes += fs::file_size(course() / lesson / "index.html");
    CHECK(fs::file_size(course() / lesson / "index.html") <= 3'000'000);
    const auto page = browser->page();
    page->resize(1440, 900);
    const int stops = static_cast<int>(app::guide_of(lesson).stops.size());
    page->open(page_of(lesson));
    for (int stop = 1; stop <= stops; ++stop) {
      CAPTURE(lesson, stop);
      go_to_stop(*page, stop);
      // What is written in the picture is what the headline and the numbers say.
      CHECK(page->evaluate("document.getElementById('headline').textContent")
                .get<std::string>()
                .size() > 8);
      CHECK(page->becomes("!document.querySelector('.stop:not([hidden]) .text').hidden"));
      CHECK(page->evaluate(
                "document.querySelector('.stop:not([hidden]) .text').textContent.length") > 40);
      // By its link, or by its key.
      if (stop < stops && stop % 2 == 0) page->click(".stop:not([hidden]) .next a");
      if (stop < stops && stop % 2 == 1) page->press("]");
    }
    check_quiet(*page);
  }
  CHECK(bytes <= 25'000'000);
}

TEST_CASE("keys step through a run, and its numbers are the report's", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto page = browser->page();
  page->set_media({.still = true});
  page->open(page_of("online-softmax", "/stop/2"));
  go_to_stop(*page, 2);
  page->press("Home");
  page->wait_for("document.getElementById('where').textContent.endsWith('to come')");
  const json report =
      run_tilestep({"run", "online-softmax", "--json", "--backend", "emulated"}).json();
  const std::size_t tiles =
      page->evaluate("+document.getElementById('place').max").get<std::size_t>();
  REQUIRE(tiles > 3);
  for (int tile = 1; tile <= 2; ++tile) {
    page->press("ArrowRight");
    page->wait_for("document.getElementById('where').textContent.startsWith('Step " +
                   std::to_string(tile) + " of')");
    skip_questions(*page);
  }
  page->press("End");
  page->wait_for("document.getElementById('place').value == document.getElementById('place').max");
  page->press("Shift+ArrowLeft");
  page->wait_for(
      "+document.getElementById('place').value == document.getElementById('place').max - 1");
  page->press("End");
  // The table is whole at the end, and as `run --json` has it.
  page->click("#tab-data");
  page->wait_for("document.querySelectorAll('#panel table').length > 0");
  const json& rows = report.at("tables")[0].at("rows");
  CHECK(page->evaluate("document.querySelector('#panel table').rows.length - 1") == rows.size());
  const auto whole =
      page->evaluate("document.querySelector('#panel table').innerText.length").get<std::size_t>();
  page->press("Home");
  page->wait_for("document.getElementById('where').textContent.endsWith('to come')");
  page->wait_for("document.querySelector('#panel table').innerText.length < " +
                 std::to_string(whole));
  // What the run comes to is not told before its end, nor what was measured before it is asked.
  page->click("#tab-checks");
  page->wait_for("document.querySelector('#panel').textContent.includes('at its last step')");
  CHECK(page->evaluate("document.querySelectorAll('#panel table').length") == 0);
  page->press("End");
  page->wait_for("document.querySelectorAll('#panel table').length == 2");
  CHECK(page->evaluate("document.querySelector('#panel').textContent.includes('recorded on')") ==
        false);
  page->press("Home");
  // The line of the step stands out in the kernel.
  page->press("k");
  page->press("ArrowRight");
  page->wait_for("document.querySelectorAll('#panel li.now').length == 1");
  check_quiet(*page);
}

TEST_CASE("a stop that asks shows its text after the answer, and the score stays", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto guide = app::guide_of("online-softmax");
  int asks = 0;
  for (std::size_t k = guide.stops.size(); k-- > 0;) {
    if (!guide.stops[k].ask.empty()) asks = static_cast<int>(k) + 1;
  }
  REQUIRE(asks > 0);
  const auto page = browser->page();
  page->open(page_of("online-softmax", "/stop/" + std::to_string(asks)));
  page->wait_for("document.querySelector('.stop:not([hidden]) .question')");
  CHECK(page->evaluate("document.querySelector('.stop:not([hidden]) .text').hidden"));
  CHECK(page->evaluate("document.body.innerText.includes('because')") == false);
  if (page->evaluate("document.querySelectorAll('.stop:not([hidden]) .choice').length") > 1) {
    page->press("a");
  } else {
    page->click(".stop:not([hidden]) .question .choice");  // a number, as it stands
  }
  page->wait_for("document.querySelector('.stop:not([hidden]) .verdict')");
  page->wait_for("!document.querySelector('.stop:not([hidden]) .text').hidden");
  page->reload();
  page->wait_for("document.querySelector('.stop:not([hidden]) .verdict')");
  const auto home = browser->page_beside(*page);
  home->open((course() / "index.html").string());
  home->wait_for(
      "document.querySelector('[data-progress=online-softmax]').textContent.includes('of 1 "
      "right')");
  home->wait_for("document.querySelectorAll('[data-card] svg g > *').length > 10");
  check_quiet(*page);
  check_quiet(*home);
}

TEST_CASE("a link names settings, and those that the page has not are said", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto guide = app::guide_of("coalescing");
  int stop = 1;
  while (guide.stops[static_cast<std::size_t>(stop) - 1].tries.empty()) ++stop;
  const std::string tail = "/stop/" + std::to_string(stop);
  const auto page = browser->page();
  page->open((course() / "index.html").string() + "#/coalescing" + tail);
  page->wait_for("location.pathname.endsWith('/coalescing/index.html')");
  go_to_stop(*page, stop);
  page->evaluate("document.querySelector('.stop:not([hidden]) .try').click()");
  page->wait_for(
      "document.querySelector('.stop:not([hidden]) .try').getAttribute('aria-pressed') == 'true'");
  page->wait_for("location.hash.includes('?')");
  const std::string link = page->evaluate("location.href"),
                    said = page->evaluate("document.getElementById('source').textContent");
  const auto other = browser->page();
  other->open(link);
  other->wait_for("document.getElementById('source').textContent == " + json(said).dump());
  other->open(page_of("coalescing", tail + "?stride=7"));
  other->wait_for(
      "document.getElementById('message').textContent.includes('no run of these settings')");
  other->open(page_of("coalescing", tail + "?color=red"));
  other->wait_for(
      "document.getElementById('message').textContent.includes('no knob is called color')");
  // As when a picture arrives between a click on a link and its event.
  const std::string address = "#/coalescing" + tail;
  other->evaluate("location.hash = " + json(address + "?colour=blue").dump() +
                  "; history.replaceState(null, '', " + json(address).dump() + ")");
  other->wait_for(
      "document.getElementById('message').textContent.includes('no knob is called colour')");
  other->open((course() / "index.html").string() + "#/no-such-lesson");
  other->wait_for("document.getElementById('message').textContent.includes('no lesson')");
  other->open((course() / "index.html").string() + "#/glossary/warp");
  other->wait_for("document.activeElement.id == 'term-warp'");
  const std::string shown =
      "[...document.querySelectorAll('article.term')].filter((term) => !term.hidden)";
  const int terms = other->evaluate(shown + ".length");
  other->click("#search");
  other->type("Shared-Mem");
  other->wait_for(shown + ".length < " + std::to_string(terms / 4));
  CHECK(other->becomes(shown + ".some((term) => term.id == 'term-shared-memory')"));
  check_quiet(*other);
}

TEST_CASE("sliders show runs that ran", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto page = browser->page();
  const int turn = static_cast<int>(app::guide_of("coalescing").stops.size()) + 1;
  page->open(page_of("coalescing", "/stop/" + std::to_string(turn)));
  go_to_stop(*page, turn);
  const std::string before = page->evaluate("document.getElementById('source').textContent");
  page->click("#sliders input");
  page->press("End");
  page->press("ArrowLeft");
  page->wait_for("document.getElementById('source').textContent != " + json(before).dump());
  check_quiet(*page);
}

TEST_CASE("a telephone held upright shows a lesson whole, in type that can be read", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  for (const std::string& lesson : lessons_there()) {
    const auto page = browser->page();
    page->resize(360, 740, 2, true);
    page->open(page_of(lesson));
    for (int stop = 1; stop <= 4; ++stop) {
      CAPTURE(lesson, stop);
      go_to_stop(*page, stop);
      CHECK(page->evaluate("document.scrollingElement.scrollWidth") <= 360);
      CHECK(page->evaluate("(() => { const svg = document.querySelector('#board svg'), scale = "
                           "svg.getBoundingClientRect().width / svg.viewBox.baseVal.width; return "
                           "Math.min(...[...svg."
                           "querySelectorAll('text')].map((text) => text.getAttribute('font-size') "
                           "* scale)); })()")
                .get<double>() >= 12.9);
      page->evaluate("location.hash = '#/" + lesson + "/stop/" + std::to_string(stop + 1) + "'");
    }
    check_quiet(*page);
  }
}

TEST_CASE("a page runs nothing that a capsule brings, and nothing of anybody else's", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "mine.tilestep.json";
  REQUIRE(
      run_tilestep({"run", "online-softmax", "--backend", "emulated", "--capsule", file.string()})
          .code == 0);
  const auto page = browser->page();
  page->open(page_of("online-softmax"));
  go_to_stop(*page, 1);
  page->drop_file("body", file);
  page->wait_for("!document.getElementById('capsule').hidden");
  check_quiet(*page);
  const std::string evil = "<img src=x onerror=hacked=1><script>hacked=1</script>";
  json capsule = json::parse(file_text(file));
  capsule["notes"] = evil;
  capsule["made_at"] = evil;
  capsule["settings"][evil] = evil;
  capsule["report"]["summary"] = evil;
  capsule["report"]["tables"][0]["title"] = evil;
  capsule["report"]["tables"][0]["rows"][0][0] = evil;
  std::ofstream(file) << capsule.dump();
  page->drop_file("body", file);
  page->wait_for("document.querySelector('#capsule .notes').textContent.includes('onerror')");
  CHECK(page->evaluate("document.querySelectorAll('#capsule img, #capsule script').length") == 0);
  CHECK(page->evaluate("typeof hacked") == "undefined");
  check_quiet(*page);
  for (const char* text :
       {"", "{", "[]", "{\"tilestep_capsule\": 2}", "{\"tilestep_capsule\": 1, \"lesson\": {}}",
        "{\"tilestep_capsule\": 1, \"lesson\": \"__proto__\", \"settings\": {}}",
        "{\"tilestep_capsule\": 1, \"lesson\": \"online-softmax\", \"settings\": {}, \"report\": "
        "3, "
        "\"step\": -1e99, \"phase\": \"x\"}"}) {
    CAPTURE(text);
    page->evaluate(
        "document.getElementById('message').textContent = ''; "
        "document.getElementById('capsule').hidden = true");
    std::ofstream(file) << text;
    page->drop_file("body", file);
    page->wait_for(
        "document.getElementById('message').textContent != '' || "
        "!document.getElementById('capsule').hidden");
    check_quiet(*page);
  }
  // A file that is gone, or changes while it is read.
  page->evaluate(
      "document.getElementById('message').textContent = ''; "
      "File.prototype.text = () => Promise.reject(new Error('gone'))");
  page->drop_file("body", file);
  page->wait_for("document.getElementById('message').textContent.includes('could not be read')");
  check_quiet(*page);
  // A script that is not the page's own is refused, and so is HTML made of text.
  page->evaluate(
      "(() => { const script = document.createElement('script'); try { script.textContent = "
      "'hacked = 1'; } catch { } document.body.append(script); })()");
  CHECK(page->evaluate("typeof hacked") == "undefined");
  CHECK_THROWS(page->evaluate("document.body.innerHTML = 'x'"));
  CHECK_FALSE(page->console_errors().empty());
}

TEST_CASE("a lesson is gone through by a reader who only hears it", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto page = browser->page();
  page->open(page_of("online-softmax"));
  go_to_stop(*page, 1);
  const auto text_of = [](const json& node, const char* member) {
    return node.contains(member) ? node.at(member).value("value", std::string()) : std::string();
  };
  int buttons = 0, headings = 0, pictures = 0;
  for (const json& node : page->accessibility()) {
    if (node.value("ignored", false)) continue;
    const std::string role = text_of(node, "role"), name = text_of(node, "name");
    CAPTURE(node.dump());
    if (role == "button" || role == "link" || role == "slider" || role == "tab")
      CHECK(!name.empty());
    buttons += role == "button" ? 1 : 0;
    headings += role == "heading" ? 1 : 0;
    if (role == "image") {
      CHECK(name.size() > 8);
      ++pictures;
    }
  }
  CHECK(buttons > 5);
  CHECK(headings >= 1);
  CHECK(pictures == 1);
  const std::string before = page->evaluate("document.getElementById('headline').textContent");
  CHECK(page->evaluate("document.getElementById('headline').getAttribute('aria-live')") ==
        "polite");
  page->press("ArrowRight");
  skip_questions(*page);
  page->wait_for("document.getElementById('headline').textContent != " + json(before).dump());
  // By Tab alone all the controls are reached.
  bool reached = false;
  for (int k = 0; k < 80 && !reached; ++k) {
    page->press("Tab");
    reached = page->evaluate("document.activeElement.id") == "tab-exercises";
  }
  CHECK(reached);
  check_quiet(*page);
}

TEST_CASE("colours follow the system, and paper has all stops", "[browser]") {
  const auto browser = make_browser();
  if (!browser) return;
  const auto page = browser->page();
  page->set_media({.dark = true});
  page->open(page_of("coalescing"));
  go_to_stop(*page, 1);
  const std::string ink = "document.querySelector('#board text').getAttribute('fill')";
  const std::string dark = page->evaluate(ink);
  page->set_media({.dark = false});
  page->wait_for(ink + " != " + json(dark).dump());
  page->evaluate("window.print = () => { window.printed = true; }");
  page->click("#print");
  page->wait_for("window.printed === true");
  const std::size_t stops = app::guide_of("coalescing").stops.size();
  CHECK(page->evaluate("document.querySelectorAll('#paper article').length") == stops);
  page->evaluate("dispatchEvent(new Event('afterprint'))");
  CHECK(page->evaluate("document.getElementById('paper')").is_null());
  page->click("#worksheet");
  page->wait_for("document.querySelectorAll('#paper ol').length == 2");
  // The answers are on a page of their own.
  const std::string sheet = "document.querySelectorAll('#paper ol')[0]",
                    key = "document.querySelectorAll('#paper ol')[1]";
  CHECK(page->evaluate(sheet + ".children.length") >= 4);
  CHECK(page->evaluate(sheet + ".textContent.includes('because')") == false);
  CHECK(page->evaluate(key + ".textContent.includes('because')") == true);
  page->set_media({.print = true});
  CHECK(page->evaluate("getComputedStyle(document.querySelector('main')).display") == "none");
  check_quiet(*page);
}
