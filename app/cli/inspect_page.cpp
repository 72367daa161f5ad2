#include "app/cli/inspect_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "app/cli/html.hpp"
#include "app/cli/html_page.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/sentence.hpp"

namespace tilestep::app {
namespace {

using scenes::InspectedRequest;

/// Pictures take room; a page has those of the lines with the most to spare.
constexpr std::size_t kMostPictures = 16;

constexpr std::string_view kStyle = R"css(
.finding { border-left: 3px solid var(--wrong); margin: 12px 0; }
.finding.slow { border-left-color: var(--accent); }
.finding h3 { margin: 0 0 4px; } .finding p { margin: 0 0 8px; }
pre { margin: 0; font: 13px/1.6 "JetBrains Mono", ui-monospace, monospace; white-space: pre; overflow-x: auto; }
table.source td { padding: 0 12px; border: 0; font: 13px/1.6 "JetBrains Mono", ui-monospace, monospace; }
table.source td.code { white-space: pre; width: 100%; }
table.source td.n { color: var(--muted); }
table.source tr.wrong td.code { background: color-mix(in srgb, var(--wrong) 22%, transparent); }
table.source tr:target td.code { outline: 2px solid var(--accent); }
td.heat { background: linear-gradient(90deg, var(--bar) var(--full), transparent 0); }
figure { margin: 8px 0 24px; } figure svg { width: 100%; height: auto; border-radius: 12px; }
.on-light { display: none; }
@media (prefers-color-scheme: light) { .on-light { display: block; } .on-dark { display: none; } }
@media print { .on-light { display: block; } .on-dark { display: none; } }
)css";

/// What a line moves for all launches: sectors of global memory and turns of shared memory.
struct Moved {
  double requests = 0, moved = 0, least = 0;
  double per_request() const { return requests > 0 ? moved / requests : 0; }
  double least_per_request() const { return requests > 0 ? least / requests : 0; }
};
struct LineMoved {
  Moved global, shared;
};

std::size_t column_of(const lab::Table& table, std::string_view id) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].id == id) return i;
  }
  throw Error(fmt::format(
      "this is no report of `tilestep inspect`: its table '{}' has no column '{}'", table.id, id));
}

double number(const lab::Table& table, std::size_t row, std::string_view id) {
  const auto* value = std::get_if<double>(&table.rows[row][column_of(table, id)]);
  return value == nullptr ? 0 : *value;
}
std::string words(const lab::Table& table, std::size_t row, std::string_view id) {
  return table.text(row, column_of(table, id));
}

std::map<int, LineMoved> moved_by_line(const lab::Report& report) {
  std::map<int, LineMoved> lines;
  const lab::Table* table = report.table("accesses");
  for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
    LineMoved& line = lines[static_cast<int>(number(*table, row, "line"))];
    Moved& moved = words(*table, row, "space") == "shared" ? line.shared : line.global;
    const double requests = number(*table, row, "requests");
    moved.requests += requests;
    moved.moved += requests * number(*table, row, "per_request");
    moved.least += requests * number(*table, row, "least");
  }
  return lines;
}

std::string quoted(const std::vector<std::string>& source, int line) {
  if (line < 1 || line > static_cast<int>(source.size())) return {};
  return fmt::format("<pre><a href=\"#L{0}\">{0:>5}</a>  {1}</pre>\n", line,
                     html_escaped(lab::printable(source[static_cast<std::size_t>(line) - 1])));
}

std::string findings_html(const lab::Report& report, const std::vector<std::string>& source) {
  const lab::Table* table = report.table("findings");
  if (table == nullptr || table->rows.empty())
    return "<p>No mistake was found, and no request that moves much more than it needs.</p>\n";
  std::string html;
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const bool mistake = words(*table, row, "mistake") == "yes";
    const int line = static_cast<int>(number(*table, row, "line")),
              other = static_cast<int>(number(*table, row, "other_line"));
    html += fmt::format("<div class=\"panel finding{}\"><h3>{}</h3>\n<p>{}</p>\n",
                        mistake ? "" : " slow", html_escaped(words(*table, row, "kind")),
                        html_escaped(words(*table, row, "text")));
    html += quoted(source, line);
    if (other != line) html += quoted(source, other);
    if (const std::string lesson = words(*table, row, "lesson"); !lesson.empty())
      html += fmt::format(
          "<p class=\"note\">The lesson on it: <code>tilestep open {} --reader --stop "
          "{}</code></p>\n",
          html_escaped(lesson), html_escaped(words(*table, row, "stop")));
    if (const std::string exercise = words(*table, row, "exercise"); !exercise.empty())
      html += fmt::format(
          "<p class=\"note\">An exercise on it: <code>tilestep exercise list {}</code></p>\n",
          html_escaped(exercise));
    html += "</div>\n";
  }
  return html;
}

std::string heat_cell(const Moved& moved) {
  if (moved.requests == 0) return "<td></td>";
  // All of the bar: eight times what would do, or more.
  const double over = moved.least > 0 ? moved.moved / moved.least : 1;
  const double full = std::clamp((over - 1) / 7, 0.0, 1.0);
  return fmt::format(
      "<td class=\"n heat\" style=\"--full: {:.0f}%\">{:.3g} <span class=\"note\">/ "
      "{:.3g}</span></td>",
      100 * full, moved.per_request(), moved.least_per_request());
}

std::string source_html(const lab::Report& report, const std::vector<std::string>& source) {
  const std::map<int, LineMoved> lines = moved_by_line(report);
  std::map<int, bool> wrong;
  if (const lab::Table* table = report.table("findings")) {
    for (std::size_t row = 0; row < table->rows.size(); ++row) {
      if (words(*table, row, "mistake") == "yes")
        wrong[static_cast<int>(number(*table, row, "line"))] = true;
    }
  }
  std::string html =
      "<div class=\"scroll\"><table class=\"source\"><thead><tr><th class=\"n\">line</th><th "
      "class=\"n\">sectors / least</th><th class=\"n\">bank turns / least</th>"
      "<th>source</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int line = static_cast<int>(i) + 1;
    const auto found = lines.find(line);
    const LineMoved moved = found == lines.end() ? LineMoved() : found->second;
    html += fmt::format(
        "<tr id=\"L{0}\"{1}><td class=\"n\">{0}</td>{2}{3}<td class=\"code\">{4}</td></tr>\n", line,
        wrong.count(line) > 0 ? " class=\"wrong\"" : "", heat_cell(moved.global),
        heat_cell(moved.shared), html_escaped(lab::printable(source[i])));
  }
  return html + "</tbody></table></div>\n";
}

/// The requests with the most to spare, one for each line and space.
std::string pictures_html(const lab::Report& report,
                          const std::function<RequestDrawn(const picture::Picture&)>& draw) {
  std::map<std::tuple<int, bool, std::string>, InspectedRequest> worst;
  for (InspectedRequest& each : scenes::inspected_requests(report)) {
    auto [kept, fresh] = worst.try_emplace({each.line, each.shared, each.use}, each);
    if (!fresh && each.moved - each.least > kept->second.moved - kept->second.least)
      kept->second = std::move(each);
  }
  std::vector<InspectedRequest> chosen;
  for (auto& [place, request] : worst) chosen.push_back(std::move(request));
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) {
    return a.moved - a.least > b.moved - b.least;
  });
  chosen.resize(std::min(chosen.size(), kMostPictures));
  std::string html;
  for (const InspectedRequest& each : chosen) {
    const RequestDrawn drawn = draw(scenes::picture_of(each));
    const std::string what =
        each.shared ? lab::plural(each.moved, "bank turn") : lab::plural(each.moved, "sector");
    html += fmt::format(
        "<figure><h3>Line <a href=\"#L{0}\">{0}</a>, launch {1}: a {2} of {3} takes {4}, {5} would "
        "do</h3>\n<div class=\"on-dark\">{6}</div><div class=\"on-light\">{7}</div></figure>\n",
        each.line, each.launch, html_escaped(each.use),
        each.shared ? "shared memory" : "global memory", what, each.least, drawn.dark, drawn.light);
  }
  return html;
}

/// The most divergent warp of each kernel.
std::string paths_html(const lab::Report& report,
                       const std::function<RequestDrawn(const picture::Picture&)>& draw) {
  std::string html;
  std::set<std::string> drawn_kernels;
  for (const scenes::InspectedPaths& each : scenes::inspected_paths(report)) {
    if (drawn_kernels.size() >= kMostPictures || !drawn_kernels.insert(each.kernel).second)
      continue;
    const RequestDrawn drawn = draw(scenes::picture_of(each));
    html += fmt::format(
        "<figure><h3>{}, launch {}: {}; hatched lanes idle</h3>\n<div "
        "class=\"on-dark\">{}</div><div "
        "class=\"on-light\">{}</div></figure>\n",
        html_escaped(each.kernel), each.launch, scenes::said_of(each), drawn.dark, drawn.light);
  }
  return html;
}

std::string section(std::string_view heading, const std::string& body) {
  return body.empty() ? std::string() : fmt::format("<h2>{}</h2>\n{}", heading, body);
}

}  // namespace

std::string inspect_page(const lab::Report& report, const std::string& file,
                         const std::vector<std::string>& source,
                         const std::function<RequestDrawn(const picture::Picture&)>& draw) {
  std::string body = fmt::format(
      "<header class=\"top\"><p class=\"chapter\">tilestep inspect</p>\n<h1>{}</h1>\n<p "
      "class=\"lead\">{}</p></header>\n<main>\n",
      html_escaped(file), html_escaped(report.summary));
  body += section("What was found", findings_html(report, source));
  body += section("The source, and what its lines move",
                  "<p class=\"note\">Traced under emulation: a warp's request for global memory "
                  "moves sectors of 32 bytes, one for shared memory takes turns of 32 banks. "
                  "Beside each the least that would do.</p>\n" +
                      source_html(report, source));
  body += section("Requests with the most to spare", pictures_html(report, draw));
  body += section("Divergent warps", paths_html(report, draw));
  if (const scenes::InspectedTimeline timeline = scenes::inspected_timeline(report);
      !timeline.events.empty()) {
    const RequestDrawn drawn = draw(scenes::picture_of(timeline));
    body +=
        section("The program's calls", fmt::format("<figure><div class=\"on-dark\">{}</div><div "
                                                   "class=\"on-light\">{}</div></figure>\n",
                                                   drawn.dark, drawn.light));
  }
  for (const char* id : {"launches", "occupancy", "roofline", "measured", "counted", "events",
                         "accesses", "branches"}) {
    if (const lab::Table* table = report.table(id); table != nullptr && !table->rows.empty())
      body += section(html_escaped(table->title), table_html(*table));
  }
  for (const std::string& each : scenes::differences_of(report))
    body += fmt::format("<p class=\"note\">{}</p>\n", html_escaped(each));
  const auto printed = report.trace->find("printed");
  if (printed != report.trace->end() && printed->is_string() &&
      !printed->get<std::string>().empty())
    body += section(
        "What the program printed",
        fmt::format("<pre class=\"panel\">{}</pre>\n", html_escaped(printed->get<std::string>())));
  body +=
      "</main>\n<footer><p>Made by tilestep. " +
      std::string(report.table("measured") == nullptr
                      ? "Kernels ran under emulation: no time here is a GPU's."
                      : "Times and counts are a GPU's where they are called measured or counted.") +
      "</p></footer>\n";
  return page(file + " · tilestep inspect", kStyle, body);
}

}  // namespace tilestep::app
