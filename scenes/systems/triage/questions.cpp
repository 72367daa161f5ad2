// The questions and events of the lesson on diagnosis.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/shared/words.hpp"
#include "scenes/systems/triage/scene.hpp"

namespace tilestep::scenes {

using triage::Instrument, triage::Op, triage::Row, triage::Verdict;
using words::counted;

/// Before a look, of what it will show.
std::optional<Question> TriageScene::look_question(int look) const {
  const std::vector<const Row*> rows = rows_of(look);
  if (rows.empty()) return std::nullopt;
  const auto total = [&rows](int lane) {
    double all = 0;
    for (const Row* row : rows) all += row->lane == lane ? row->count : 0;
    return static_cast<std::int64_t>(all);
  };
  switch (probe(look).instrument) {
    case Instrument::timeline: {
      const auto calls = static_cast<std::int64_t>(
          std::count_if(rows.begin(), rows.end(), [](const Row* row) { return row->lane == 0; }));
      const auto kernels = static_cast<std::int64_t>(rows.size()) - calls;
      return of_kind("timeline-calls",
                     ask_count("How many calls will the host's lane have for this step?", calls,
                               {kernels, 1, 2 * kernels, kernels + 4},
                               fmt::format("the device's lane has {}, and a graph starts them with "
                                           "one call where there is one.",
                                           counted(kernels, "kernel"))));
    }
    case Instrument::kernels:
      return of_kind(
          "launches",
          ask_count("How many kernels does this step launch?", total(0),
                    {total(0) + 8, total(0) / 2, 2 * total(0), 11},
                    "each operator is a kernel, layer by layer, and small ones add up."));
    case Instrument::shapes: {
      const Row& narrow =
          **std::min_element(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
            const auto load = [](const Row* row) { return row->value > 0 ? row->value : 99; };
            return load(a) < load(b);
          });
      return of_kind("load-bytes",
                     ask_count("What is the narrowest load of any kernel here, in bytes?",
                               static_cast<std::int64_t>(narrow.value), {16, 2, 4, 8},
                               fmt::format("{} reads so.", narrow.what)));
    }
    case Instrument::counters: {
      for (const Row* row : rows) {
        if (row->op != static_cast<int>(Op::attend)) continue;
        return of_kind("blocks",
                       ask_count("How many blocks of attend does a multiprocessor hold at once?",
                                 static_cast<std::int64_t>(row->count), {1, 16, 32, 8},
                                 fmt::format("{}.", row->note.substr(row->note.find(':') + 2))));
      }
      return std::nullopt;
    }
    case Instrument::roofline:
      return of_kind(
          "intensity",
          ask("A product of 4 rows with BF16 weights: how many FLOP per byte of weights?", "4",
              {"1", "16", "300"},
              "each weight of 2 bytes takes part in 2 FLOP for each of 4 rows."));
    case Instrument::sectors: {
      const Row& worst = **std::max_element(
          rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->value < b->value; });
      return of_kind(
          "sectors",
          ask_count(
              "A request is what 32 lanes load at once. How many sectors of 32 bytes does the "
              "widest request here touch?",
              static_cast<std::int64_t>(worst.value), {16, 32, 2, 4},
              fmt::format("{} of {} reads so, and {} would hold its numbers.", worst.what,
                          worst.note, words::significant(worst.second, 3))));
    }
    case Instrument::gaps:
      return of_kind("calls", ask_count("How many calls does the host make for this step?",
                                        total(0), {1, total(1), 2 * total(1), 3},
                                        fmt::format("the device runs {}.",
                                                    counted(rows[rows.size() - 2]->count > 0
                                                                ? static_cast<std::int64_t>(
                                                                      rows[rows.size() - 2]->count)
                                                                : 0,
                                                            "kernel"))));
    case Instrument::queue:
      break;
  }
  const auto wanted = static_cast<std::int64_t>(rows.front()->second);
  return of_kind("rows",
                 ask_count(fmt::format("{} decode together. How many rows does a step compute?",
                                       counted(wanted, "user")),
                           static_cast<std::int64_t>(rows.front()->count),
                           {wanted, triage::kMostRows, wanted + 1, 1},
                           "a step computes what its bucket holds, wanted or not."));
}

std::optional<Question> TriageScene::question(const View& view) const {
  const int next = view.cursor.tile + 1;
  if (next > trace_.length()) return std::nullopt;
  std::optional<Question> asked;
  if (next < trace_.diagnosis_step()) {
    asked = look_question(next - 1);
  } else if (next == trace_.diagnosis_step()) {
    asked = of_kind(
        "amdahl",
        ask_ratio(
            "A kernel is 3 % of a step, and becomes twice as fast. How many times as fast does "
            "the step become?",
            1 / (1 - 0.015), {1.5, 2.0, 1.2},
            "97 % stay as they are, and 3 % become 1.5 %: 1.015 at most 1.031."));
  } else if (trace_.verdict.applied) {
    const Verdict& verdict = trace_.verdict;
    const std::string fix(name_of(trace_.fix));
    if (verdict.before_us > 0) {
      asked =
          of_kind("fix", ask_to_set(fmt::format("How many times as fast is a step with {}?", fix),
                                    {"curve_box"}, "times", verdict.gain(), 0.1,
                                    fmt::format("it took {:.0f} µs, and takes {:.0f}.",
                                                verdict.before_us, verdict.after_us)));
    } else {
      asked = of_kind("fix", ask(fmt::format("Does {} take away what is wrong here?", fix),
                                 verdict.fixed == verdict.faults ? "All of it"
                                 : verdict.fixed > 0             ? "A part"
                                                                 : "Nothing of it",
                                 {"All of it", "Nothing of it", "A part"},
                                 fmt::format("{} of {} gone.", verdict.fixed,
                                             counted(verdict.faults, "fault") +
                                                 (verdict.faults == 1 ? " is" : " are"))));
    }
  }
  return placed(std::move(asked), report_, picture::Key{"gap"});
}

void TriageScene::find_events() {
  events_.clear();
  if (!trace_.looks.empty()) {
    events_.push_back({{1, 0}, "first, " + std::string(name_of(trace_.looks.front().instrument))});
  }
  events_.push_back({{trace_.diagnosis_step(), 0}, "the diagnosis"});
  if (trace_.verdict.applied) events_.push_back({{trace_.verdict_step(), 0}, "the fix is run"});
}

}  // namespace tilestep::scenes
