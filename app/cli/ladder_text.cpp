#include "app/cli/ladder_text.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "app/cli/output.hpp"
#include "app/cli/report_text.hpp"
#include "kernels/base/lab/quick.hpp"

namespace tilestep::app {
namespace {

/// What changed at a rung of the table `ladder`; empty if the table does not say.
std::string what_changed(const lab::Table& ladder, std::size_t row) {
  for (std::size_t c = 0; c < ladder.columns.size(); ++c) {
    const std::string& id = ladder.columns[c].id;
    if (id == "why" || id == "what_changed") return ladder.text(row, c);
  }
  return "";
}

/// "cuBLAS 13.1.0 BF16", of a measurement `library_bf16`.
std::string peer_name(const lab::Measurement& library) {
  std::string format = library.id.substr(library.id.find('_') + 1);
  for (char& c : format) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return library.variant + " " + format;
}

/// The rungs over several cases (mask, length) where none has a rate of its own, without what changed; nullptr: they have.
const lab::Table* cases_of(const lab::Report& report) {
  const lab::Table* ladder = report.table("ladder");
  for (std::size_t r = 0; ladder != nullptr && r < ladder->rows.size(); ++r) {
    if (rate_of(report, ladder->text(r, 0)) != nullptr) return nullptr;
  }
  return report.table("ladder_measured");
}

lab::Table without(lab::Table table, std::string_view id) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (table.columns[c].id != id) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
  return table;
}

SharedDetail parts_of(const std::string& detail) {
  const std::size_t note = detail.rfind("; ");
  if (note == std::string::npos) return {detail, ""};
  return {detail.substr(0, note), detail.substr(note + 2)};
}

}  // namespace

const lab::Measurement* rate_of(const lab::Report& report, const std::string& rung) {
  for (const lab::Measurement& m : report.measurements) {
    const bool is_rate = m.unit == "GB/s" || m.unit == "TFLOP/s";
    if (m.variant == rung && is_rate && m.samples > 0) return &m;
  }
  return nullptr;
}

const lab::Measurement* fraction_of(const lab::Report& report, const std::string& rung) {
  const lab::Measurement* copy = report.measurement("fraction_of_copy", rung);
  return copy != nullptr ? copy : report.measurement("fraction_of_cublas", rung);
}

lab::Table ladder_table(const lab::Report& report) {
  const lab::Table* ladder = report.table("ladder");
  if (ladder == nullptr) return measurement_table(report);
  if (const lab::Table* cases = cases_of(report)) return without(*cases, "what_changed");
  const lab::Measurement* first = nullptr;
  bool of_copy = false;
  for (std::size_t r = 0; r < ladder->rows.size() && first == nullptr; ++r) {
    first = rate_of(report, ladder->text(r, 0));
    of_copy = report.measurement("fraction_of_copy", ladder->text(r, 0)) != nullptr;
  }
  const std::string unit = first != nullptr ? first->unit : "";
  const int decimals = unit == "GB/s" ? 0 : 1;
  lab::Table table{"ladder_rates",
                   ladder->title,
                   {{"rung", "rung", "", -1},
                    {"why", "what changed", "", -1},
                    {"rate", "median", unit, decimals},
                    {"spread", "p10–p90", unit, -1},
                    {"fraction", of_copy ? "of copy" : "of cuBLAS", "", 2}},
                   {}};
  for (std::size_t r = 0; r < ladder->rows.size(); ++r) {
    const std::string rung = ladder->text(r, 0);
    std::vector<lab::Cell> row = {"`" + rung + "`", what_changed(*ladder, r), {}, {}, {}};
    if (const lab::Measurement* rate = rate_of(report, rung)) {
      row[2] = rate->stable() ? lab::Cell(rate->value) : lab::Cell("unstable");
      if (rate->p10 && rate->p90)
        row[3] = fmt::format("{:.{}f}–{:.{}f}", *rate->p10, decimals, *rate->p90, decimals);
    }
    if (const lab::Measurement* fraction = fraction_of(report, rung)) {
      row[4] = fraction->value;
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

SharedDetail shared_detail(const lab::Report& report) {
  const lab::Table* ladder = report.table("ladder");
  std::optional<SharedDetail> shared;
  for (std::size_t r = 0; ladder != nullptr && r < ladder->rows.size(); ++r) {
    const lab::Measurement* rate = rate_of(report, ladder->text(r, 0));
    if (rate == nullptr) continue;
    const SharedDetail own = parts_of(rate->detail);
    if (!shared) shared = own;
    while (!own.shape.starts_with(shared->shape)) {
      const std::size_t comma = shared->shape.rfind(", ");
      shared->shape.resize(comma == std::string::npos ? 0 : comma);
    }
    if (own.note != shared->note) shared->note.clear();
  }
  return shared.value_or(SharedDetail{});
}

std::string ladder_markdown(const lab::Report& report) {
  std::string text = ladder_table(report).to_markdown() + "\n";
  const auto [shape, note] = shared_detail(report);
  if (!shape.empty()) text += shape + (note.empty() ? "" : "; " + note) + ". ";
  text += report.device.name;
  if (!report.device.driver.empty()) text += ", driver " + report.device.driver;
  if (!report.device.toolkit.empty()) text += ", toolkit " + report.device.toolkit;
  text += report.recorded_at.empty() ? ", measured on " + today()
                                     : ", recorded on " + report.recorded_at;
  // Where copies are themselves a ladder, the device's own is a variant of that name.
  const lab::Measurement* copy = report.measurement("copy_bandwidth", "device");
  if (copy == nullptr) copy = report.measurement("copy_bandwidth");
  if (copy != nullptr) {
    text += fmt::format("; the device's own copy in the same run: {:.0f} GB/s", copy->value);
  }
  for (const lab::Measurement& m : report.measurements) {
    if (!m.id.starts_with("library_") || m.samples == 0 || !m.detail.starts_with(shape)) continue;
    if (cases_of(report) != nullptr) continue;  // its columns compare each case with the peers'
    // How it was called, and on what, where the rungs differ in that.
    const std::string own = parts_of(m.detail).shape.substr(shape.size());
    text += fmt::format("; {}{}{} in the same run: {:.1f} TFLOP/s", peer_name(m), own,
                        own.empty() ? "" : ",", m.value);
  }
  if (const std::string what = lab::left_out(report); !what.empty()) {
    text += "; a quick bench, one short round, without " + what;
  }
  return text + ".\n";
}

}  // namespace tilestep::app
