#include "app/cli/site/site_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/html.hpp"
#include "app/cli/site/pack.hpp"
#include "app/file.hpp"
#include "kernels/base/lab/assets.hpp"
#include "scenes/shared/course.hpp"
#include "scenes/shared/glossary.hpp"

namespace tilestep::app {
namespace {

/// Where a picture and its text stand; the script fills it.
constexpr std::string_view kStage = R"html(<div id="course" hidden>
<nav id="stops" aria-label="Stops of the lesson"></nav>
<div class="show">
<div id="board" role="img" aria-label=""></div>
<p id="headline" class="unseen" aria-live="polite"></p>
<div id="transport" role="group" aria-label="Steps">
<button type="button" id="first" title="First step (Home)" aria-label="First step">|◀</button>
<button type="button" id="back" title="One step back (←)" aria-label="One step back">◀</button>
<button type="button" id="play" title="Play (Space)" aria-label="Play">▶</button>
<button type="button" id="forth" title="One step on (→)" aria-label="One step on">▶|</button>
<input type="range" id="place" min="0" value="0" aria-label="Place in the run">
<output id="where"></output>
</div>
<dl id="readouts"></dl>
<p id="source" class="note"></p>
<div id="sliders" hidden></div>
</div>
<div class="read" id="read"></div>
<div class="below">
<div id="tabs" role="tablist" aria-label="More of this lesson"></div>
<div id="panel" role="tabpanel"></div>
</div>
<section id="capsule" hidden aria-label="Capsule"></section>
</div>
)html";

std::string page(std::string_view title, std::string_view lesson, bool whole, std::string_view main,
                 const std::string& base_url) {
  const std::string address = base_url.empty()
                                  ? std::string()
                                  : base_url + (lesson.empty() ? "" : std::string(lesson) + "/");
  return fmt::format(
      "{}<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; "
      "style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; "
      "require-trusted-types-for 'script'\">\n"
      "<title>{}</title>\n{}<style>{}</style>\n</head>\n"
      "<body data-lesson=\"{}\" data-whole=\"{}\">\n"
      "<header><a href=\"#/\" class=\"home\">tilestep</a> <span id=\"title\"></span>"
      "<span class=\"right\"><button type=\"button\" id=\"presenter\" aria-pressed=\"false\" "
      "title=\"For a projector (P)\">Presenter</button> <button type=\"button\" id=\"print\" "
      "title=\"All stops with their pictures\">Print</button> <button type=\"button\" "
      "id=\"worksheet\" "
      "title=\"The lesson's questions on paper\">Worksheet</button> <button type=\"button\" "
      "id=\"keys\" "
      "title=\"Keys (?)\">Keys</button></span></header>\n"
      "<noscript><p class=\"note\">The steps need JavaScript, which is switched off "
      "here.</p></noscript>\n"
      "<main>\n{}{}</main>\n<p id=\"message\" role=\"status\" "
      "hidden></p>\n<script>{}</script>\n</body>\n</html>\n",
      kPageBegins, policy_hash(TILESTEP_SITE_SCRIPT), policy_hash(TILESTEP_SITE_STYLE),
      html_escaped(title),
      address.empty()
          ? std::string()
          : fmt::format("<link rel=\"canonical\" href=\"{}\">\n", html_escaped(address)),
      lab::asset("assets/site/course.css"), html_escaped(lesson), whole ? "yes" : "no", main,
      kStage, lab::asset("assets/site/course.js"));
}

std::string card(const SiteLesson& lesson) {
  const auto& rows = scenes::course();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const scenes::CourseRow& each) {
    return each.lesson == lesson.info.id;
  });
  std::string facts;
  if (row != rows.end()) {
    facts = fmt::format(
        "<p class=\"note\">About {} minutes · {} stops<span class=\"progress\" "
        "data-progress=\"{}\"></span></p><p class=\"note\">After it you can: {}</p>",
        row->minutes, row->stops.size(), html_escaped(lesson.info.id), html_escaped(row->after));
  }
  return fmt::format(
      "<li><a class=\"card\" href=\"#/{0}\"><div class=\"picture\" data-card=\"{0}\"></div><span "
      "class=\"chapter\">{1}</span><h2>{2}</h2><p>{3}</p>{4}</a></li>\n",
      html_escaped(lesson.info.id), html_escaped(lesson.info.chapter),
      html_escaped(lesson.info.title), html_escaped(lesson.info.takeaway), facts);
}

std::string glossary_html() {
  std::string html =
      "<section id=\"glossary\" hidden "
      "aria-label=\"Glossary\">\n<h1>Glossary</h1>\n<p><label>Search "
      "<input type=\"search\" id=\"search\"></label></p>\n";
  for (const scenes::Term& term : scenes::glossary()) {
    std::string names = term.name;
    for (const std::string& alias : term.aliases) names += "\n" + alias;
    std::string lessons;
    for (const std::string& lesson : term.lessons) {
      lessons += fmt::format("{0} <a href=\"#/{1}\">{1}</a>", lessons.empty() ? "" : ",",
                             html_escaped(lesson));
    }
    html += fmt::format(
        "<article class=\"term\" id=\"term-{}\" data-names=\"{}\" tabindex=\"-1\"><h2>{}</h2>\n{}"
        "<p class=\"note\">{}</p></article>\n",
        html_escaped(term.id), html_escaped(names), html_escaped(term.name),
        markdown_html(term.text, 3,
                      [](const std::string& target, const std::string& words) {
                        const bool is_term = target.starts_with("term:");
                        return fmt::format("<a href=\"{}{}\">{}</a>", is_term ? "#/glossary/" : "",
                                           html_escaped(is_term ? target.substr(5) : target),
                                           words);
                      }),
        lessons.empty() ? std::string() : "Seen in" + lessons);
  }
  return html + "</section>\n";
}

}  // namespace

std::string checked_base_url(const std::string& url) {
  if (url.empty()) return url;
  const bool web = url.starts_with("https://") || url.starts_with("http://");
  if (!web || url.find_first_of(" \"'<>#?\\") != std::string::npos) {
    throw Error(fmt::format(
        "--base-url cannot be '{}'; allowed: an address such as https://example.org/kernels/",
        url));
  }
  return url.ends_with('/') ? url : url + "/";
}

std::string course_page(const std::vector<SiteLesson>& lessons, bool whole,
                        const std::string& base_url) {
  std::string main =
      "<section id=\"home\" hidden>\n<h1>How GPU kernels for language models work</h1>\n<p "
      "class=\"lead\">Step by "
      "step: every picture is drawn from what a kernel recorded while it ran, and every number "
      "says "
      "where it comes from. <a href=\"#/glossary\">Glossary</a></p>\n<ul class=\"cards\">\n";
  for (const SiteLesson& lesson : lessons) main += card(lesson);
  main += "</ul>\n</section>\n" + glossary_html();
  for (const SiteLesson& lesson : lessons) {
    main += lesson.card;
    if (whole) main += lesson.body;
  }
  return page("tilestep: the course", "", whole, main, base_url);
}

std::string lesson_page(const SiteLesson& lesson, const std::string& base_url) {
  return page(lesson.info.title + " · tilestep", lesson.info.id, false, lesson.body, base_url);
}

}  // namespace tilestep::app
