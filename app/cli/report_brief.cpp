#include <fmt/format.h>

#include <algorithm>

#include "app/cli/fitted_table.hpp"
#include "app/cli/ladder_text.hpp"
#include "app/cli/report_text.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

constexpr std::size_t kMostRates = 6;
/// The main table gets what the rest leaves of the terminal, but never less than this.
constexpr int kFewestTableLines = 8;

/// "3 rows" or "1 row"; empty for none.
std::string counted(std::size_t count, std::string_view noun) {
  if (count == 0) return "";
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// What stands in the report and is not shown, in words.
class LeftOut {
 public:
  void add(std::size_t count, std::string_view noun) {
    const std::string words = counted(count, noun);
    if (!words.empty()) words_ += (words_.empty() ? "" : ", ") + words;
  }
  std::string sentence(std::size_t width) const {
    if (words_.empty()) return "";
    return "\n" + wrapped(fmt::format("Omitted: {}; --all shows them.", words_), width);
  }

 private:
  std::string words_;
};

const lab::Table* main_table(const lab::Report& report) {
  const std::string& id = lesson(report.lesson).info().main_table;
  if (const lab::Table* table = report.table(id)) return table;
  return report.tables.empty() ? nullptr : &report.tables.front();
}

bool is_timed_rate(const lab::Measurement& m) {
  return m.samples > 0 && m.unit.ends_with("/s");
}

/// The ladder of the bench; a recorded one where this report is none of a bench.
const lab::Table* ladder_of(const lab::Report& report) {
  const lab::Recording* recording = lab::recording(report.lesson);
  const lab::Table* recorded = recording == nullptr ? nullptr : recording->bench.table("ladder");
  return recorded != nullptr ? recorded : report.table("ladder");
}

/// The rates that matter: those of the rungs of the ladder, where there is one, else the first; of
/// a long ladder where it starts and how it ends.
std::vector<const lab::Measurement*> headline_rates(const lab::Report& report) {
  std::vector<const lab::Measurement*> rates;
  if (const lab::Table* ladder = ladder_of(report)) {
    for (std::size_t r = 0; r < ladder->rows.size(); ++r) {
      if (const auto* rate = rate_of(report, ladder->text(r, 0))) rates.push_back(rate);
    }
    if (rates.size() > kMostRates) rates.erase(rates.begin() + 1, rates.end() - kMostRates + 1);
  }
  if (!rates.empty()) return rates;
  for (const lab::Measurement& m : report.measurements) {
    if (is_timed_rate(m) && rates.size() < kMostRates) rates.push_back(&m);
  }
  return rates;
}

/// Where no throughput is known: what the run itself found.
std::vector<const lab::Measurement*> headline_findings(const lab::Report& report) {
  std::vector<const lab::Measurement*> found;
  for (const lab::Measurement& m : report.measurements) {
    if (m.provenance != lab::Provenance::derived && found.size() < kMostRates) found.push_back(&m);
  }
  return found;
}

/// A word in a column of its own, then `text`.
std::string labelled(std::string_view label, std::string_view text, std::size_t width) {
  constexpr std::size_t kColumn = 8;
  std::string lines;
  for (const std::string& line : wrapped_lines(text, width - kColumn)) {
    lines += padded(lines.empty() ? label : "", kColumn) + line + "\n";
  }
  return lines;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

/// One line for each, after one that says where they come from.
std::string headline_text(const lab::Report& report,
                          const std::vector<const lab::Measurement*>& headline, std::size_t width) {
  if (headline.empty()) return "";
  // The variant says enough where all measure the same.
  const bool same = std::all_of(headline.begin(), headline.end(), [&](const lab::Measurement* m) {
    return m->id == headline.front()->id && !m->variant.empty();
  });
  const auto name = [same](const lab::Measurement& m) {
    if (m.variant.empty()) return m.id;
    return same ? m.variant : fmt::format("{} {}", m.id, m.variant);
  };
  std::size_t names = 0, values = 0;
  for (const lab::Measurement* m : headline) {
    names = std::max(names, display_width(name(*m)));
    values = std::max(values, display_width(value_words(*m)));
  }
  std::string where = provenance_words(*headline.front(), report);
  where.resize(std::min(where.size(), where.rfind(", ")));  // how many samples, --all says
  std::string text = "\n" + wrapped(capitalized(where), width);
  for (const lab::Measurement* m : headline) {
    const lab::Measurement* of = fraction_of(report, m->variant);
    std::string line =
        fmt::format("{}  {}", padded(name(*m), names), padded(value_words(*m), values, true));
    if (of != nullptr && is_timed_rate(*m)) {
      line += fmt::format("  {:.2f} of {}", of->value,
                          of->id == "fraction_of_copy" ? "a copy" : "cuBLAS");
    }
    text += "  " + wrapped(line, width - 2, 4);
  }
  return text;
}

/// "5 checks ok", or the failed ones with what went wrong.
std::string checks_text(const lab::Report& report, std::size_t width) {
  if (report.checks.empty()) return "";
  const auto failed = std::count_if(report.checks.begin(), report.checks.end(),
                                    [](const lab::Check& check) { return !check.ok; });
  if (failed == 0 && report.kernel && report.kernel->idle) {
    const char* elsewhere = report.table("trials") == nullptr ? "--trials looks for knobs that do."
                                                              : "Its trials are below.";
    return "\n" +
           wrapped(fmt::format("{} ok, but with these knobs the run launches none of your code. {}",
                               counted(report.checks.size(), "check"), elsewhere),
                   width, 0);
  }
  if (failed == 0) return "\n" + counted(report.checks.size(), "check") + " ok\n";
  std::string text =
      fmt::format("\n{} of {} FAILED:\n", failed, counted(report.checks.size(), "check"));
  for (const lab::Check& check : report.checks) {
    if (check.ok) continue;
    text += wrapped(
        fmt::format("  {}: error {}, tolerance {}; {}", check.id, number_words(check.max_error),
                    number_words(check.tolerance), check.detail),
        width, 4);
  }
  return text;
}

}  // namespace

std::string report_brief(const lab::Report& report, TerminalSize terminal) {
  const auto width = static_cast<std::size_t>(terminal.columns);
  std::string head =
      wrapped(report.summary, width) + "\n" + labelled("device", device_words(report), width);
  if (!report.params.empty()) head += labelled("knobs", settings_words(report), width);
  auto headline = headline_rates(report);
  if (headline.empty()) headline = headline_findings(report);
  const std::string tail = checks_text(report, width) + headline_text(report, headline, width);

  LeftOut left_out;
  std::string body;
  if (const lab::Table* table = main_table(report)) {
    const std::string title = "\n" + wrapped(table->title, width);
    const std::string around = head + title + tail;
    const auto used = static_cast<int>(std::count(around.begin(), around.end(), '\n'));
    constexpr int kBelow = 3;  // what was left out, and the prompt
    const int room = std::max(terminal.rows - used - kBelow, kFewestTableLines);
    const FittedTable shown = fitted(*table, width, room);
    body = title + shown.text;
    left_out.add(shown.rows_left_out, "row");
    left_out.add(shown.columns_left_out.size(), "column");
    left_out.add(report.tables.size() - 1, "table");
  }
  left_out.add(report.measurements.size() - headline.size(), "measurement");
  return head + body + tail + left_out.sentence(width);
}

}  // namespace tilestep::app
