#include "app/cli/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/html.hpp"
#include "app/file.hpp"

namespace tilestep::app {
namespace {

/// What is longer is in the CSV beside the page.
constexpr std::size_t kMostRows = 100;
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
summary { cursor: pointer; }
code { font-family: "JetBrains Mono", ui-monospace, monospace; font-size: .92em; }
footer { color: var(--muted); font-size: 14px; padding-top: 48px; padding-bottom: 48px; }
@media print { :root { --back: #ffffff; --panel: #ffffff; --raised: #ffffff; --line: #c6ced8; --text: #10151c;
  --muted: #4a5666; --accent: #b84e00; --link: #10151c; } @page { size: A4; margin: 16mm 18mm; }
  body { font-size: 11pt; } h1 { font-size: 24pt; } header.top nav { display: none; }
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

}  // namespace tilestep::app
