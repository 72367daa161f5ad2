#include "app/cli/tour_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/cli/html.hpp"
#include "app/keep/link.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/questions.hpp"

namespace tilestep::app {
namespace {

/// What a chip tries is named by the command line that does it; what a text lights is in bold.
HtmlLink links_at(const PathView& view) {
  return [&view](const std::string& target, const std::string& words) {
    if (target.starts_with("try:")) {
      lab::Settings settings = view.stop.settings;
      for (const auto& [id, value] :
           scenes::try_settings(target, tilestep::lesson(view.lesson).knobs())) {
        settings[id] = value;
      }
      return fmt::format("<span class=\"try\" title=\"{}\">{}</span>",
                         html_escaped(link_of(view.lesson, settings, view.stop.step)), words);
    }
    if (target.starts_with("light:")) return fmt::format("<b class=\"lit\">{}</b>", words);
    return fmt::format("<a href=\"{}\">{}</a>", html_escaped(target), words);
  };
}

std::string question_html(const scenes::Question& question, std::string_view step) {
  std::string html = fmt::format(
      "<details class=\"question\"><summary>A question before {} step</summary>\n<p>{}</p>\n", step,
      html_escaped(question.text));
  for (std::size_t i = 0; i < question.choices.size(); ++i) {
    html += fmt::format("<p class=\"choice\"><b>{}</b> {}</p>\n", static_cast<char>('A' + i),
                        html_escaped(question.choices[i]));
  }
  std::string answer = scenes::answer_text(question);
  if (!question.choices.empty()) {
    answer = fmt::format("{}: {}", static_cast<char>('A' + question.answer), answer);
  }
  return html +
         fmt::format(
             "<details><summary>The answer</summary>\n<p><b>{}</b>, because {}</p></details>\n"
             "</details>\n",
             html_escaped(answer), html_escaped(question.because));
}

std::string themed_html(const std::string& dark, const std::string& light, std::string_view alt) {
  return fmt::format(
      "<a href=\"{0}\"><picture><source media=\"print, (prefers-color-scheme: light)\" "
      "srcset=\"{1}\"><img src=\"{0}\" alt=\"{2}\" loading=\"lazy\"></picture></a>\n",
      html_escaped(dark), html_escaped(light), html_escaped(alt));
}

std::string picture_html(const PathView& view) {
  if (view.dark_file.empty()) {
    return fmt::format("<p class=\"panel\">There is no picture: {}</p>\n",
                       html_escaped(view.missing));
  }
  const std::string picture = themed_html(view.dark_file, view.light_file, view.alt);
  if (view.chart_dark.empty()) return picture;
  const std::string chart = themed_html(view.chart_dark, view.chart_light, view.chart_alt);
  return view.stop.tab == "measured" ? chart + picture : picture + chart;
}

/// The lines of the kernel round the step's, which stand out; nothing where no line is lit.
std::string source_html(const scenes::SourceMark& mark) {
  if (mark.current <= 0) return "";
  constexpr int kAround = 4, kLongest = 40;
  const auto [least, most] = std::minmax_element(mark.step_lines.begin(), mark.step_lines.end());
  int first = mark.current, last = mark.current;
  if (least != mark.step_lines.end() && *most - *least <= kLongest) {
    first = std::min(first, *least);
    last = std::max(last, *most);
  }
  std::string rows;
  std::istringstream text{std::string(lab::asset(mark.path))};
  std::string line;
  for (int number = 1; std::getline(text, line) && number <= last + kAround; ++number) {
    if (number < first - kAround) continue;
    const bool of_step = std::count(mark.step_lines.begin(), mark.step_lines.end(), number) > 0;
    const auto value = mark.values.find(number);
    rows += fmt::format("<span class=\"{}\"><i>{:4}</i>  {}{}</span>\n",
                        number == mark.current ? "now"
                        : of_step              ? "step"
                                               : "",
                        number, html_escaped(line),
                        value == mark.values.end()
                            ? ""
                            : fmt::format("  <em>{}</em>", html_escaped(value->second)));
  }
  return fmt::format(
      "<details class=\"source\"><summary>The kernel here: {}, line {}</summary>\n<pre><code>{}"
      "</code></pre></details>\n",
      html_escaped(mark.path.substr(mark.path.rfind('/') + 1)), mark.current, rows);
}

/// "surprise" as a reader is told it.
std::string_view kind_words(const std::string& kind) {
  if (kind == "misconception") return "often misunderstood";
  if (kind == "limits") return "what this does not show";
  return kind;
}

std::string stop_html(const PathView& view, std::size_t index, std::size_t count) {
  std::string head = fmt::format(
      "<p class=\"note\">{} of {}{}</p>\n<h2>{}</h2>\n", index + 1, count,
      view.stop.kind.empty() ? std::string() : fmt::format(" · {}", kind_words(view.stop.kind)),
      html_escaped(view.stop.title));
  std::string text = markdown_html(view.stop.text, 3, links_at(view));
  if (view.stop.tab == "measured" && view.chart_dark.empty()) {
    text +=
        "<p class=\"note\">The numbers are below, under <a href=\"#throughput\">Throughput"
        "</a>.</p>\n";
  }
  if (view.question && view.stop.ask.empty()) text += question_html(*view.question, "the next");
  if (view.question && !view.stop.ask.empty()) text = question_html(*view.question, "this") + text;
  if (view.stop.tab != "measured") text += source_html(view.source);
  text += fmt::format("<p class=\"note\"><code>{}</code></p>\n", html_escaped(view.link));
  std::string next;
  if (index > 0) next += fmt::format("<label for=\"s{}\">← back</label>", index - 1);
  if (index + 1 < count) next += fmt::format("<label for=\"s{}\">next →</label>", index + 1);
  return fmt::format(
      "<section class=\"stop f{}\">\n<div class=\"seen\">{}</div>\n<div class=\"read\">"
      "{}{}<p class=\"turn\">{}</p></div>\n</section>\n",
      index, picture_html(view), head, text, next);
}

}  // namespace

std::string path_html(const std::vector<PathView>& views) {
  std::string inputs, labels, sections;
  for (std::size_t i = 0; i < views.size(); ++i) {
    // The one in focus is where the arrow keys begin.
    inputs += fmt::format("<input type=\"radio\" name=\"stop\" id=\"s{}\" aria-label=\"{}\"{}>\n",
                          i, html_escaped(views[i].stop.title), i == 0 ? " checked autofocus" : "");
    labels += fmt::format("<label for=\"s{}\" title=\"{}\">{}</label>", i,
                          html_escaped(views[i].stop.title), i + 1);
    sections += stop_html(views[i], i, views.size());
  }
  return fmt::format(
      "<div class=\"gallery path\">\n{}<div class=\"steps\">{}</div>\n{}</div>\n"
      "<p class=\"note\">← and → move between stops.</p>\n",
      inputs, labels, sections);
}

std::string path_style(std::size_t stops) {
  std::string style = R"css(
main, header.top, footer { max-width: 1440px; }
.path .stop { display: none; gap: 32px; grid-template-columns: minmax(0, 1fr) minmax(300px, 30em); }
.path .read h2 { margin-top: 0; } .path .read .note { margin: 0 0 4px; }
.path .seen { position: sticky; top: 16px; align-self: start; }
.path img { width: 100%; padding: 12px 16px; background: var(--panel); }
.item { padding-left: calc(var(--depth) * 22px); text-indent: -22px; margin: 4px 0; }
.item span { display: inline-block; width: 22px; text-indent: 0; }
.try { border: 1px solid var(--link); color: var(--link); border-radius: 999px; padding: 0 8px;
  white-space: nowrap; cursor: help; }
.lit { font-weight: 600; border-bottom: 2px solid var(--line); }
.question { border: 1px solid var(--line); border-radius: 12px; padding: 8px 16px; margin: 16px 0; }
.source pre { overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 12px; padding: 12px; font-size: 13px; line-height: 1.5; }
.source span { color: var(--muted); } .source i { font-style: normal; } .source .step { color: var(--text); }
.source .now { color: var(--text); background: var(--bar); } .source em { color: var(--link); }
.choice { margin: 4px 0; } summary { cursor: pointer; color: var(--link); }
.turn { display: flex; gap: 8px; margin-top: 20px; }
.path picture + a, .path a + a { display: block; margin-top: 12px; }
@media print { .path .steps, .path .turn, .path input, .path + .note { display: none; }
  .source, .question details { display: none; }
  .question::details-content { content-visibility: visible; height: auto; }
  .path .stop { display: block !important; break-inside: avoid; margin-bottom: 10mm; }
  .path .seen { position: static; } .path img { max-height: 100mm; width: auto; padding: 0; } }
@media (max-width: 900px) { .path .stop { grid-template-columns: minmax(0, 1fr); } .path .seen { position: static; } }
)css";
  for (std::size_t i = 0; i < stops; ++i) {
    style += fmt::format("#s{0}:checked ~ .f{0} {{ display: grid; }}\n", i);
  }
  return style;
}

std::string guide_text_html(std::string_view markdown) {
  return markdown_html(markdown, 2, [](const std::string& target, const std::string& words) {
    return fmt::format("<a href=\"{}\">{}</a>", html_escaped(target), words);
  });
}

}  // namespace tilestep::app
