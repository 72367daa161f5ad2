#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tests/catch.hpp"
#include "tests/reports.hpp"

/// What the tests of all lessons ask of a trace.
namespace tilestep::tests {

/// The lines of the source, one after another, hold these statements.
inline void check_lines(std::string_view path, std::span<const int> lines,
                        std::initializer_list<std::string_view> statements) {
  REQUIRE(lines.size() == statements.size());
  auto line = lines.begin();
  for (const std::string_view statement : statements) {
    const std::string source = source_line(path, *line++);
    INFO(source);
    CHECK(contains(source, statement));
  }
}

/// A run of the lesson, held to its own checks, and its trace to what comes back from JSON.
template <class Params, class Trace>
lab::Report held_run(const Runs<Params, Trace>& runs, const Params& params,
                     simt::Device& device = device_at_hand()) {
  CAPTURE(runs.words(params));
  lab::Report report = runs(params, device);
  CHECK(failed_checks(report) == "");
  CHECK((to_json(runs.read(report.trace)) == report.trace));
  return report;
}
/// The row of a tensor in a trace's ledger; all 0: it has none.
template <class Trace, class Tensor>
auto ledger_row(const Trace& trace, Tensor tensor) {
  for (const auto& row : trace.ledger) {
    if (row.tensor == tensor) return row;
  }
  return typename decltype(trace.ledger)::value_type{};
}

/// Damage to a trace's JSON and what must be in the sentence that refuses it.
struct Damage {
  std::string at;        ///< JSON pointer: "/steps/l/0"
  nlohmann::json value;  ///< to put there; kGone: nothing
  std::string says;
};
inline const nlohmann::json kGone = nlohmann::json::value_t::discarded;

/// `again` reads a trace and writes it again: trace_again of a lesson.
inline void check_refusals(const nlohmann::json& good,
                           nlohmann::json (*again)(const nlohmann::json&),
                           const std::vector<Damage>& damages) {
  for (const Damage& damage : damages) {
    nlohmann::json bad = good;
    const nlohmann::json::json_pointer at(damage.at);
    if (!damage.value.is_discarded()) {
      bad.at(at) = damage.value;
    } else if (nlohmann::json& parent = bad.at(at.parent_pointer()); parent.is_array()) {
      parent.erase(std::stoul(at.back()));
    } else {
      parent.erase(at.back());
    }
    const std::string sentence = error_of([&] { again(bad); });
    INFO(damage.at << ": " << sentence);
    CHECK(contains(sentence, damage.says));
  }
}

}  // namespace tilestep::tests
