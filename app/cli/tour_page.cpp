#include "app/cli/tour_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/cli/html.hpp"
#include "app/cli/report_text.hpp"
#include "app/file.hpp"
#include "kernels/base/workbench/exercise.hpp"

namespace tilestep::app {
namespace {

/// What is longer is in the CSV beside the page.
constexpr std::size_t kMostRows = 100;
/// What is longer is folded.
constexpr std::size_t kMostOpenRows = 12;

constexpr std::string_view kStyle = R"css(
:root { color-scheme: dark light;
  --back: #0e1116; --panel: #151a21; --raised: #1f2630; --line: #2c3541; --text: #e6eaf0;
  --muted: #9da9b8; --accent: #ffb84d; --on-accent: #1b1203; --link: #7cc8f5; --good: #4cc38a;
  --wrong: #ff6b6b; --bar: #ffb84d2e; }
@media (prefers-color-scheme: light) { :root {
  --back: #f1f4f8; --panel: #ffffff; --raised: #ebeff4; --line: #c6ced8; --text: #10151c;
  --muted: #4a5666; --accent: #b84e00; --on-accent: #ffffff; --link: #0062a0; --good: #0f7b4f;
  --wrong: #c62828; --bar: #b84e0026; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 Inter, system-ui, -apple-system, "Segoe UI", sans-serif; }
main, header.top, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header.top { padding-top: 48px; padding-bottom: 8px; }
header.top nav { margin-bottom: 24px; font-size: 14px; }
h1 { font-size: 40px; line-height: 1.15; letter-spacing: -0.02em; margin: 4px 0 12px; }
h2 { font-size: 22px; letter-spacing: -0.01em; margin: 48px 0 12px; }
h3 { font-size: 16px; margin: 24px 0 8px; }
p.lead { font-size: 20px; color: var(--muted); max-width: 44em; margin: 0 0 16px; }
.chapter { color: var(--accent); font-size: 13px; font-weight: 600; letter-spacing: .08em;
  text-transform: uppercase; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.note { color: var(--muted); font-size: 14px; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px;
  padding: 16px 20px; }
.summary { border-left: 3px solid var(--accent); margin: 24px 0; font-size: 18px; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; padding: 0; margin: 16px 0; list-style: none; }
.chips li { background: var(--raised); border: 1px solid var(--line); border-radius: 999px;
  padding: 3px 12px; font: 13px/1.5 "JetBrains Mono", ui-monospace, monospace; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 12px;
  background: var(--panel); }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td.w { white-space: nowrap; }
th { text-align: left; font-weight: 600; color: var(--muted); font-size: 13px; }
th, td { padding: 8px 16px; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
tbody tr:hover { background: var(--raised); }
td.n, th.n { text-align: right; white-space: nowrap; }
td.n { font-family: "JetBrains Mono", ui-monospace, monospace; font-variant-numeric: tabular-nums; }
td.bar { background: linear-gradient(90deg, var(--bar) var(--full), transparent 0); }
.mark { display: inline-block; border: 1px solid var(--line); border-radius: 999px;
  padding: 0 9px; font-size: 12px; white-space: nowrap; background: var(--raised); }
.mark.measured, .mark.counted { border-color: var(--good); }
.mark.recorded { border-color: var(--link); }
.ok { color: var(--good); font-weight: 600; } .failed { color: var(--wrong); font-weight: 600; }
.gallery input { position: absolute; opacity: 0; pointer-events: none; }
.gallery .steps { display: flex; flex-wrap: wrap; gap: 6px; margin-bottom: 12px; }
.gallery label { cursor: pointer; padding: 5px 14px; border-radius: 8px; font-size: 14px;
  border: 1px solid var(--line); background: var(--panel); color: var(--muted); }
.gallery label:hover { color: var(--text); }
.gallery figure { display: none; margin: 0; }
img { display: block; max-width: 100%; height: auto; border-radius: 12px;
  border: 1px solid var(--line); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 24px; margin: 32px 0; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 16px; color: inherit;
  overflow: hidden; display: block; transition: border-color .15s, transform .15s; }
.card:hover { text-decoration: none; border-color: var(--accent); transform: translateY(-2px); }
.card img { border: 0; border-bottom: 1px solid var(--line); border-radius: 0; }
.card div { padding: 16px 20px 20px; } .card h2 { margin: 4px 0 6px; }
summary { cursor: pointer; }
.card p { margin: 0; color: var(--muted); }
code { font-family: "JetBrains Mono", ui-monospace, monospace; font-size: .92em; }
footer { color: var(--muted); font-size: 14px; padding-top: 48px; padding-bottom: 48px; }
@media print { :root { --back: #ffffff; --panel: #ffffff; --raised: #ffffff; --line: #c6ced8; --text: #10151c;
  --muted: #4a5666; --accent: #b84e00; --link: #10151c; } @page { size: A4; margin: 16mm 18mm; }
  body { font-size: 11pt; } h1 { font-size: 24pt; } .data, header.top nav { display: none; }
  main, header.top, footer { max-width: none; padding-left: 0; padding-right: 0; } }
)css";

}  // namespace

std::string page(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "{}<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      kPageBegins, html_escaped(title), kStyle, style, body);
}

namespace {

bool numeric(const lab::Table& table, std::size_t column) {
  return std::none_of(table.rows.begin(), table.rows.end(), [column](const auto& row) {
    return std::holds_alternative<std::string>(row.at(column));
  });
}

/// Short words stay on one line, so that names do not break at their hyphens.
std::string_view cell_class(std::string_view text) {
  constexpr std::size_t kShort = 24;
  return text.size() <= kShort ? " class=\"w\"" : "";
}

}  // namespace

std::string table_html(const lab::Table& table) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const lab::Column& column = table.columns[c];
    html += fmt::format("<th{}>{}{}</th>", numeric(table, c) ? " class=\"n\"" : "",
                        html_escaped(column.label),
                        column.unit.empty() ? "" : " (" + html_escaped(column.unit) + ")");
  }
  html += "</tr></thead>\n<tbody>\n";
  const std::size_t rows = std::min(table.rows.size(), kMostRows);
  for (std::size_t r = 0; r < rows; ++r) {
    html += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string text = table.text(r, c);
      html += fmt::format("<td{}>{}</td>", numeric(table, c) ? " class=\"n\"" : cell_class(text),
                          html_escaped(text));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

namespace {

/// A long table is folded: who looks for it finds it, and nobody scrolls past it.
std::string table_section(const lab::Table& table) {
  const bool folded = table.rows.size() > kMostOpenRows;
  std::string html = folded ? fmt::format("<details><summary>{} ({} rows)</summary>\n",
                                          html_escaped(table.title), table.rows.size())
                            : fmt::format("<h3>{}</h3>\n", html_escaped(table.title));
  html += table_html(table);
  const std::string id = html_escaped(table.id);
  html += fmt::format(
      "<p class=\"note\"><a href=\"{0}.csv\">{0}.csv</a> · <a href=\"{0}.md\">{0}.md"
      "</a>{1}</p>\n",
      id,
      table.rows.size() > kMostRows
          ? fmt::format(" · the first {} of {} rows are shown here", kMostRows, table.rows.size())
          : std::string());
  if (folded) html += "</details>\n";
  return html;
}

/// The largest timed rate of each unit, so that a bar behind a number says how it compares.
std::map<std::string, double> largest_rates(const lab::Report& report) {
  std::map<std::string, double> largest;
  for (const lab::Measurement& m : report.measurements) {
    if (m.samples == 0 || !m.unit.ends_with("/s") || !std::isfinite(m.value)) continue;
    largest[m.unit] = std::max(largest[m.unit], m.value);
  }
  return largest;
}

std::string measurement_row(const lab::Measurement& m, const lab::Report& report, double largest) {
  const bool bar = largest > 0 && m.samples > 0 && m.stable() && std::isfinite(m.value);
  const std::string spread =
      m.p10 && m.p90 ? fmt::format("{}–{}", number_words(*m.p10), number_words(*m.p90)) : "";
  return fmt::format(
      "<tr><td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"n{}\"{}>{}</td><td "
      "class=\"n\">{}</td>"
      "<td><span class=\"mark {}\" title=\"{}\">{}</span></td><td>{}</td></tr>\n",
      html_escaped(m.id), html_escaped(m.variant), bar ? " bar" : "",
      bar ? fmt::format(" style=\"--full: {:.1f}%\"", 100 * m.value / largest) : std::string(),
      html_escaped(value_words(m)), html_escaped(spread), name_of(m.provenance),
      html_escaped(provenance_words(m, report)), name_of(m.provenance), html_escaped(m.detail));
}

/// One sentence for each kind of number on the page, so that the marks need no hovering.
std::string provenance_notes(const lab::Report& report, bool timed) {
  std::vector<std::string> sentences;
  for (const lab::Measurement& m : report.measurements) {
    if ((m.samples > 0) != timed) continue;
    lab::Measurement bare = m;
    bare.samples = 0;
    const std::string words = provenance_words(bare, report);
    if (std::find(sentences.begin(), sentences.end(), words) == sentences.end()) {
      sentences.push_back(words);
    }
  }
  return html_escaped(fmt::format("{}", fmt::join(sentences, " · ")));
}

/// The timed measurements, or those that were not timed, under a heading of their own.
std::string measurement_section(const lab::Report& report, bool timed, std::string_view heading) {
  const auto largest = largest_rates(report);
  std::string rows;
  for (const lab::Measurement& m : report.measurements) {
    if ((m.samples > 0) != timed) continue;
    rows += measurement_row(m, report, largest.contains(m.unit) ? largest.at(m.unit) : 0);
  }
  if (rows.empty()) return "";
  const std::string place = timed ? " id=\"throughput\"" : "";
  return fmt::format(
      "<h2{}>{}</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>what</th><th>variant</th>"
      "<th class=\"n\">value</th><th class=\"n\">p10–p90</th><th>where from</th><th>detail</th>"
      "</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n<p class=\"note\">{}</p>\n",
      place, heading, rows, provenance_notes(report, timed));
}

std::string check_section(const lab::Report& report) {
  if (report.checks.empty()) return "";
  std::string html =
      "<h2>Checked against the reference</h2>\n<div class=\"scroll\"><table>\n<thead><tr>"
      "<th>check</th><th>result</th><th class=\"n\">max error</th><th class=\"n\">tolerance</th>"
      "<th>why this tolerance</th></tr></thead>\n<tbody>\n";
  for (const lab::Check& check : report.checks) {
    html += fmt::format(
        "<tr><td class=\"w\">{}</td><td class=\"w {}\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td>"
        "<td>{}</td></tr>\n",
        html_escaped(check.id), check.ok ? "ok" : "failed", check.ok ? "✓ ok" : "✗ failed",
        number_words(check.max_error), number_words(check.tolerance), html_escaped(check.detail));
  }
  return html + "</tbody>\n</table></div>\n";
}

/// Which picture is chosen is the browser's own state of a group of radio buttons: the arrow keys
/// step through it, without a script.
std::string gallery(const TourStop& stop) {
  if (stop.pictures.empty()) {
    return fmt::format("<p class=\"panel\">There are no pictures: {}</p>\n",
                       html_escaped(stop.missing));
  }
  const std::size_t chosen = stop.pictures.size() / 2;
  std::string inputs, labels, figures;
  for (std::size_t i = 0; i < stop.pictures.size(); ++i) {
    const TourPicture& picture = stop.pictures[i];
    inputs += fmt::format("<input type=\"radio\" name=\"step\" id=\"s{}\"{}>\n", i,
                          i == chosen ? " checked" : "");
    labels += fmt::format("<label for=\"s{}\">{}</label>", i, html_escaped(picture.label));
    figures += fmt::format(
        "<figure class=\"f{0}\"><a href=\"{1}\"><img src=\"{1}\" alt=\"{2}\">"
        "</a></figure>\n",
        i, html_escaped(picture.file), html_escaped(picture.alt));
  }
  return fmt::format(
      "<div class=\"gallery\">\n{}<div class=\"steps\">{}</div>\n{}</div>\n"
      "<p class=\"note\">Click a step, or press ← and → once a step is chosen.{}</p>\n",
      inputs, labels, figures,
      stop.light_file.empty()
          ? std::string()
          : fmt::format(" The last one <a href=\"{}\">in the light theme</a>, for projectors.",
                        html_escaped(stop.light_file)));
}

std::string gallery_style(std::size_t pictures) {
  std::string style;
  for (std::size_t i = 0; i < pictures; ++i) {
    style += fmt::format(
        "#s{0}:checked ~ figure.f{0} {{ display: block; }}\n"
        "#s{0}:checked ~ .steps label[for=s{0}] {{ background: var(--accent); color: "
        "var(--on-accent); "
        "border-color: var(--accent); }}\n"
        "#s{0}:focus-visible ~ .steps label[for=s{0}] {{ outline: 2px solid var(--text); }}\n",
        i);
  }
  return style;
}

/// What there is to do at the end of the lesson.
std::string exercise_section(std::string_view lesson) {
  std::string rows;
  for (const lab::Exercise& one : lab::exercises()) {
    if (one.lesson != lesson) continue;
    rows += fmt::format(
        "<h3>{}</h3>\n{}<p class=\"note\"><code>tilestep exercise reset {} {} --out "
        "mine</code></p>\n",
        html_escaped(one.title), guide_text_html(one.task), html_escaped(one.lesson),
        html_escaped(one.name));
  }
  return rows.empty()
             ? rows
             : fmt::format(
                   "<h2>Exercises</h2>\n<p class=\"note\">In the window they are under "
                   "Kernel; <code>tilestep exercise check mine</code> checks a file.</p>\n{}",
                   rows);
}

std::string chips(const lab::Report& report) {
  std::string html =
      fmt::format("<ul class=\"chips\"><li>{}</li>", html_escaped(device_words(report)));
  for (const auto& [id, value] : report.params) {
    html += fmt::format("<li>{} = {}</li>", html_escaped(id), html_escaped(lab::to_text(value)));
  }
  return html + "</ul>\n";
}

/// The stop that a lesson is shown by: its surprise, or the one in the middle; null: there is none with a picture.
const PathView* telling_stop(const std::vector<PathView>& path) {
  const PathView* middle = nullptr;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].dark_file.empty() || path[i].stop.tab == "measured") continue;
    if (path[i].stop.kind == "surprise") return &path[i];
    if (middle == nullptr || i <= path.size() / 2) middle = &path[i];
  }
  return middle;
}

std::string card(const TourStop& stop) {
  std::string dark, light, alt;
  if (const PathView* view = telling_stop(stop.path)) {
    dark = view->dark_file;
    light = view->light_file;
    alt = view->alt;
  } else if (!stop.pictures.empty()) {
    dark = stop.pictures.back().file;
    light = stop.light_file;
    alt = stop.pictures.back().alt;
  }
  std::string picture;
  if (!dark.empty()) {
    const std::string folder = html_escaped(stop.info.id) + "/";
    picture = "<picture>";
    if (!light.empty()) {
      picture += fmt::format("<source media=\"(prefers-color-scheme: light)\" srcset=\"{}{}\">",
                             folder, html_escaped(light));
    }
    picture += fmt::format("<img src=\"{}{}\" alt=\"{}\"></picture>", folder, html_escaped(dark),
                           html_escaped(alt));
  }
  return fmt::format(
      "<a class=\"card\" href=\"{}\">{}<div><span class=\"chapter\">{}</span><h2>{}</h2><p>{}</p>"
      "</div></a>\n",
      html_escaped(page_path(stop.info)), picture, html_escaped(stop.info.chapter),
      html_escaped(stop.info.title), html_escaped(stop.info.takeaway));
}

}  // namespace

std::string page_path(const lab::LessonInfo& info) {
  return info.id + "/index.html";
}

std::string lesson_page(const TourStop& stop) {
  std::string body = fmt::format(
      "<header class=\"top\"><nav><a href=\"../index.html\">tilestep</a></nav>"
      "<span class=\"chapter\">{}</span><h1>{}</h1><p class=\"lead\">{}</p></header>\n<main>\n",
      html_escaped(stop.info.chapter), html_escaped(stop.info.title),
      html_escaped(stop.info.takeaway));
  if (!stop.intro.empty()) body += guide_text_html(stop.intro);
  body += stop.path.empty() ? gallery(stop) : path_html(stop.path);
  if (!stop.more.empty()) body += guide_text_html(stop.more);
  body += exercise_section(stop.info.id);
  body += "<div class=\"data\">\n";  // which is not printed
  body += fmt::format("<p class=\"panel summary\">{}</p>\n", html_escaped(stop.report.summary));
  body += chips(stop.report);
  body += "<h2>What the kernel recorded</h2>\n";
  for (const lab::Table& table : stop.report.tables) body += table_section(table);
  body += measurement_section(stop.report, true, "Throughput");
  body += measurement_section(stop.report, false, "Numbers");
  body += check_section(stop.report);
  body += fmt::format(
      "</div>\n</main>\n<footer>All of it as data: <a href=\"report.json\">report.json</a>. Make "
      "it "
      "yourself: <code>tilestep run {0} --json</code>, or open the window with "
      "<code>tilestep open {0}</code>.</footer>\n",
      html_escaped(stop.info.id));
  const std::size_t chosen = stop.path.empty() ? stop.pictures.size() : stop.path.size();
  const std::string style =
      gallery_style(chosen) + (stop.path.empty() ? std::string() : path_style(chosen));
  return page(stop.info.title + " · tilestep", style, body);
}

std::string index_page(const std::vector<TourStop>& stops) {
  std::string body =
      "<header class=\"top\"><h1>tilestep</h1><p class=\"lead\">How GPU kernels for language "
      "models "
      "work, step by step. Every picture here is drawn from what a kernel recorded while it ran, "
      "and "
      "every number says where it comes from.</p></header>\n<main>\n<div class=\"cards\">\n";
  for (const TourStop& stop : stops) body += card(stop);
  body +=
      "</div>\n</main>\n<footer>This is the tour, made by <code>tilestep tour</code>. On a machine "
      "with a display, <code>tilestep</code> opens the window, where the steps are yours to "
      "take.</footer>\n";
  return page("tilestep: the tour", "", body);
}

}  // namespace tilestep::app
