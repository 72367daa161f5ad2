#include "app/cli/worksheet_page.hpp"

#include <fmt/format.h>

#include "app/cli/html.hpp"
#include "app/file.hpp"
#include "app/worker/protocol.hpp"

namespace tilestep::app {
namespace {

constexpr std::string_view kPrintStyle = R"css(
@page { size: A4; margin: 16mm 18mm; }
* { box-sizing: border-box; }
body { max-width: 174mm; margin: 8mm auto; padding: 0 4mm; color: #10151c; background: #fff;
  font: 11pt/1.45 Inter, system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 19pt; line-height: 1.2; margin: 0 0 2mm; }
h2 { font-size: 12pt; margin: 0 0 1.5mm; }
p { margin: 0 0 2mm; } .lead, .about, footer { color: #4a5666; font-size: 9.5pt; }
.name { display: flex; gap: 8mm; margin: 4mm 0 6mm; } .name span { flex: 1; border-bottom: 1px solid #10151c; }
.question { break-inside: avoid; border-top: 1px solid #c6ced8; padding: 4mm 0 3mm; }
img { display: block; width: 100%; max-height: 72mm; object-fit: contain; object-position: left; margin: 1mm 0 2mm; }
ol { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: 1fr 1fr; gap: 1mm 6mm; }
ol li::before { content: "☐ "; }
.line { display: inline-block; min-width: 45mm; border-bottom: 1px solid #10151c; }
.answer { font-weight: 700; }
table { border-collapse: collapse; font-size: 9pt; margin: 2mm 0; }
th, td { border: 1px solid #c6ced8; padding: 1mm 2.5mm; text-align: right; }
code { font: 9pt "JetBrains Mono", ui-monospace, monospace; }
footer { border-top: 1px solid #c6ced8; margin-top: 4mm; padding-top: 2mm; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
)css";

constexpr std::string_view kAltBefore = "the picture that the question is about";

std::string_view name_of(SheetPage page) {
  switch (page) {
    case SheetPage::sheet:
      return "worksheet";
    case SheetPage::key:
      return "key";
    case SheetPage::evidence:
      return "evidence";
  }
  return {};
}

std::string choice(const SheetItem& item, std::size_t index) {
  return fmt::format("{}. {}", static_cast<char>('A' + index), item.choices[index]);
}

/// The answer in full: "B. 2.00".
std::string full_answer(const SheetItem& item) {
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    if (item.answer == std::string(1, static_cast<char>('A' + i))) return choice(item, i);
  }
  return item.answer;
}

std::string footer_of(const Worksheet& worksheet) {
  return fmt::format(
      "Made by `tilestep worksheet {} --seed {} --out DIR`: the same seed gives the "
      "same questions.",
      worksheet.info.id, worksheet.seed);
}

std::string scale(const SheetItem& item) {
  return item.scale.empty() ? std::string() : fmt::format(" ({})", item.scale);
}

// ---- Markdown -----------------------------------------------------------------------------------

void add_question(std::string& text, const SheetItem& item) {
  text += item.text + "\n\n";
  if (item.choices.empty()) text += fmt::format("Answer{}: ____________________\n", scale(item));
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    text += fmt::format("- [ ] {}\n", choice(item, i));
  }
}

void add_evidence(std::string& text, const SheetItem& item) {
  text += fmt::format("{}\n\n**{}**, because {}\n", item.text, full_answer(item), item.because);
  if (!item.before.empty()) text += fmt::format("\nBefore: ![before]({})\n", item.before);
  if (!item.after.empty()) text += fmt::format("\nAfter: ![after]({})\n", item.after);
  if (!item.evidence.rows.empty()) {
    text += fmt::format("\n{}:\n\n{}", item.evidence.title, item.evidence.to_markdown());
  }
  text += fmt::format("\n`{}`\n", item.link);
}

// ---- HTML ---------------------------------------------------------------------------------------

std::string picture_html(const std::string& file, std::string_view alt) {
  return file.empty() ? std::string()
                      : fmt::format("<img src=\"{}\" alt=\"{}\">\n", html_escaped(file), alt);
}

std::string question_html(const SheetItem& item) {
  std::string html =
      picture_html(item.before, kAltBefore) + fmt::format("<p>{}</p>\n", html_escaped(item.text));
  if (item.choices.empty()) {
    return html + fmt::format("<p>Answer{}: <span class=\"line\">&nbsp;</span></p>\n",
                              html_escaped(scale(item)));
  }
  html += "<ol>\n";
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    html += fmt::format("<li>{}</li>\n", html_escaped(choice(item, i)));
  }
  return html + "</ol>\n";
}

std::string answer_html(const SheetItem& item) {
  return fmt::format("<p>{}</p>\n<p><span class=\"answer\">{}</span>, because {}</p>\n",
                     html_escaped(item.text), html_escaped(full_answer(item)),
                     html_escaped(item.because));
}

std::string rows_html(const lab::Table& table) {
  if (table.rows.empty()) return {};
  std::string html =
      fmt::format("<p class=\"about\">{}</p>\n<table><thead><tr>", html_escaped(table.title));
  for (const lab::Column& column : table.columns) {
    html += fmt::format("<th>{}{}</th>", html_escaped(column.label),
                        column.unit.empty() ? "" : " (" + html_escaped(column.unit) + ")");
  }
  html += "</tr></thead>\n<tbody>";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    html += "<tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      html += fmt::format("<td>{}</td>", html_escaped(table.text(r, c)));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

std::string item_html(const SheetItem& item, SheetPage page) {
  switch (page) {
    case SheetPage::sheet:
      return question_html(item);
    case SheetPage::key:
      return answer_html(item);
    case SheetPage::evidence:
      break;
  }
  return answer_html(item) + picture_html(item.before, "before the step") +
         picture_html(item.after, "after the step") + rows_html(item.evidence) +
         fmt::format("<p><code>{}</code></p>\n", html_escaped(item.link));
}

// ---- GIFT ---------------------------------------------------------------------------------------

/// `text` with the signs that GIFT has a use for.
std::string gift_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("~=#{}:\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string gift_answers(const SheetItem& item) {
  if (item.choices.empty()) {
    return fmt::format("#{:.6g}:{:.3g}\n", item.value, item.tolerance);
  }
  std::string answers;
  for (std::size_t i = 0; i < item.choices.size(); ++i) {
    const bool right = item.answer == std::string(1, static_cast<char>('A' + i));
    answers += fmt::format("{}{}\n", right ? '=' : '~', gift_escaped(item.choices[i]));
  }
  return answers;
}

}  // namespace

std::string sheet_gift(const Worksheet& worksheet,
                       const std::function<std::string(const std::string&)>& svg_of) {
  std::string text;
  for (std::size_t i = 0; i < worksheet.items.size(); ++i) {
    const SheetItem& item = worksheet.items[i];
    std::string html = fmt::format("<p><small>{}</small></p>", html_escaped(item.about));
    if (!item.before.empty()) {
      html += fmt::format("<img src=\"data:image/svg+xml;base64,{}\" alt=\"{}\">",
                          protocol::base64_of(svg_of(item.before)), kAltBefore);
    }
    html += fmt::format("<p>{}{}</p>", html_escaped(item.text), html_escaped(scale(item)));
    text += fmt::format("::{} {}.{}::[html]{}{{\n{}####{}\n}}\n\n", worksheet.info.id,
                        worksheet.seed, i + 1, gift_escaped(html), gift_answers(item),
                        gift_escaped(html_escaped(item.because)));
  }
  return text;
}

std::string sheet_markdown(const Worksheet& worksheet, SheetPage page) {
  std::string text =
      fmt::format("# {}: {}\n\n{}\n", worksheet.info.title, name_of(page), worksheet.info.takeaway);
  if (page == SheetPage::sheet) text += "\nName: ____________________ Date: ____________\n";
  for (std::size_t i = 0; i < worksheet.items.size(); ++i) {
    const SheetItem& item = worksheet.items[i];
    text += fmt::format("\n## Question {}\n\n*{}*\n\n", i + 1, item.about);
    switch (page) {
      case SheetPage::sheet:
        if (!item.before.empty()) text += fmt::format("![the picture]({})\n\n", item.before);
        add_question(text, item);
        break;
      case SheetPage::key:
        text += fmt::format("**{}**, because {}\n", full_answer(item), item.because);
        break;
      case SheetPage::evidence:
        add_evidence(text, item);
        break;
    }
  }
  return text + "\n---\n\n" + footer_of(worksheet) + "\n";
}

std::string sheet_html(const Worksheet& worksheet, SheetPage page) {
  const std::string title = fmt::format("{}: {}", worksheet.info.title, name_of(page));
  std::string body = fmt::format("<h1>{}</h1>\n<p class=\"lead\">{}</p>\n", html_escaped(title),
                                 html_escaped(worksheet.info.takeaway));
  if (page == SheetPage::sheet) {
    body += "<div class=\"name\"><span>Name:</span><span>Date:</span></div>\n";
  }
  for (std::size_t i = 0; i < worksheet.items.size(); ++i) {
    const SheetItem& item = worksheet.items[i];
    body += fmt::format(
        "<section class=\"question\"><h2>Question {}</h2>\n<p class=\"about\">{}"
        "</p>\n{}</section>\n",
        i + 1, html_escaped(item.about), item_html(item, page));
  }
  std::string footer = html_escaped(footer_of(worksheet));
  for (const char* tag : {"<code>", "</code>"}) {
    const std::size_t at = footer.find('`');
    if (at != footer.npos) footer.replace(at, 1, tag);
  }
  return fmt::format(
      "{}<head>\n<meta charset=\"utf-8\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}<footer>{}</footer>\n"
      "</body>\n</html>\n",
      kPageBegins, html_escaped(title), kPrintStyle, body, footer);
}

}  // namespace tilestep::app
