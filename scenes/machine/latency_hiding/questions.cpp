// The questions of the lesson on latency hiding before its steps.
#include "scenes/shared/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using latency_hiding::Arm, latency_hiding::Counted, latency_hiding::Demand, latency_hiding::kLanes,
    latency_hiding::kMostWarps, latency_hiding::Kernel, latency_hiding::Occupancy,
    latency_hiding::occupancy_of, latency_hiding::What;
using words::counted, words::number, words::significant;

const Probe* LatencyHidingScene::at_step(int Probe::*of, int step) const {
  const auto found = std::find_if(probes_.begin(), probes_.end(), [&](const Probe& each) {
    return each.row == 0 && each.*of == step;
  });
  return found == probes_.end() ? nullptr : &*found;
}

// ---- copies -----------------------------------------------------------------------------------------------

/// Before anything is seen: the bytes that all warps request.
Question LatencyHidingScene::bytes_question() const {
  const bool one = !clocked() || trace_.machine.rows.size() == 1;
  const auto bytes = static_cast<int>(weight() * 1024);
  const bool serialized = trace_.broken == latency_hiding::Break::serialize_loads;
  const int deep = serialized ? 1 : std::max(trace_.loads_in_flight, 1);
  const double kib = clocked() ? static_cast<double>(trace_.asked_bytes()) / 1024 : weight() * deep;
  const double loads = kib / weight();
  const std::string each = is(Kernel::bulk_copy) ? counted(bytes, "byte") + "/stage"
                                                 : counted(bytes, "byte") + " per warp load";
  return of_kind(
      "bytes-asked",
      ask_number(
          fmt::format(
              "{}, {}, {} at a time. How many KiB {} in flight before {} must wait?",
              one ? std::string("One warp") : counted(std::ssize(trace_.machine.rows), "warp"),
              each, counted(deep, noun()), one ? "does it have" : "do they have",
              one ? "it" : "all"),
          kib, {kib / 4, kib * 4, kib * 2, kib / 2},
          [](double value) { return significant(value, 4); },
          fmt::format("all are issued before any must wait: {} · {} B = {} KiB.",
                      significant(loads, 4), bytes, significant(kib, 4))));
}

/// Before a first use: when does it happen?
std::optional<Question> LatencyHidingScene::use_question(int next) const {
  const Probe* one = at_step(&Probe::use_step, next + 1);
  if (one == nullptr || !clocked()) return std::nullopt;
  const std::int64_t zero = is(Kernel::chase) ? one->issue : origin({next, 0});
  if (static_cast<double>(one->use - zero) > time_high()) return std::nullopt;
  const double taken = static_cast<double>(one->use - one->issue);
  return of_kind(
      "first-use",
      ask_to_set(fmt::format("{} {} was issued at {}. At which {} does the first instruction that "
                             "needs it run?",
                             is(Kernel::copy)        ? "Load"
                             : is(Kernel::bulk_copy) ? "Stage"
                                                     : "Hop",
                             copies() ? zoom_lane(one->number) : one->number, one->issue - zero,
                             unit() == "cycles" ? "cycle" : unit()),
                 {"warp_loads"}, time_axis(), static_cast<double>(one->use - zero),
                 0.06 * time_high(),
                 fmt::format("the data took {:.0f} {} from issue to use.", taken, unit())));
}

/// Before the recording with four chains is shown beside one chain: how long do they take?
std::optional<Question> LatencyHidingScene::four_chains_question() const {
  const Results& both = results_;
  if (both.here != 0 || both.values.size() < 2) return std::nullopt;
  const double ratio = both.values[1] / both.values[0];
  const std::vector<std::string> choices = {"About as long", "Twice as long", "Four times as long"};
  const std::size_t answer = ratio < 1.4 ? 0 : ratio < 2.8 ? 1 : 2;
  return of_kind(
      "four-chains",
      ask(fmt::format("64 steps of one chain took {:.0f} cycles. How long do they take with four "
                      "chains per thread, which do four times the FMAs?",
                      both.values[0]),
          choices[answer], choices,
          fmt::format(
              "four chains took {:.0f} cycles: while one waits for its result, another issues.",
              both.values[1])));
}

// ---- what limits ------------------------------------------------------------------------------------------

Question LatencyHidingScene::block_limit_question() const {
  constexpr int kSmall = 32, kRegisters = 24;
  const Occupancy all = occupancy_of({.threads = kSmall, .registers = kRegisters});
  return of_kind(
      "block-limit",
      ask_count(fmt::format("A block has {} threads, {} registers each and no shared memory. How "
                            "many of a multiprocessor's {} warps can be resident?",
                            kSmall, kRegisters, kMostWarps),
                all.warps, {kMostWarps, 16, 48},
                fmt::format("a multiprocessor holds {} at most, however small.",
                            counted(all.resident, "block"))));
}

/// With twice the registers.
std::optional<Question> LatencyHidingScene::registers_question() const {
  Demand twice = trace_.demand();
  const int registers = twice.registers;
  if (registers == 0 || 2 * registers > latency_hiding::Multiprocessor().registers_per_thread)
    return std::nullopt;
  twice.registers *= 2;
  const Occupancy all = occupancy_of(twice);
  const int warps = warps_let_in(all, latency_hiding::Limit::registers);
  return of_kind(
      "twice-the-registers",
      ask_count(
          fmt::format("The kernel uses {} registers per thread. With {}, how many of the {} warps "
                      "would the register file admit?",
                      registers, 2 * registers, kMostWarps),
          warps, {kMostWarps, warps * 2, warps / 2, 16, 32, 8},
          fmt::format(
              "each warp takes {} of 65536 registers, and only whole blocks are admitted: {}.",
              all.registers_allocated, counted(warps, "warp"))));
}

/// At the end: the hardware's count.
std::optional<Question> LatencyHidingScene::eligible_question() const {
  double active = 0, eligible = -1;
  for (const Counted& one : trace_.machine.counted) {
    if (one.metric.starts_with("smsp__warps_active")) active = one.value;
    if (one.metric.starts_with("smsp__warps_eligible")) eligible = one.value;
  }
  if (eligible < 0 || active <= 0) return std::nullopt;
  return of_kind(
      "eligible",
      ask_number(
          fmt::format("A scheduler has {} warps. How many could issue in an average cycle, as the "
                      "hardware counted?",
                      significant(active, 2)),
          eligible, {active, active / 2, active / 4, active / 16, active / 64},
          [](double value) { return significant(value, 2); },
          fmt::format(
              "{} of {} active warps were eligible: the others wait, but one is enough to issue.",
              significant(eligible, 3), significant(active, 3)),
          0));
}

// ---- branch and tail --------------------------------------------------------------------------------------

Question LatencyHidingScene::lanes_question(int arm) const {
  const Arm& of = trace_.arms[static_cast<std::size_t>(arm)];
  const int lanes = std::popcount(of.voted);
  return of_kind(
      "arm-lanes",
      ask_count(fmt::format("The lanes take {} different arms. How many of the {} run in arm {}?",
                            std::ssize(trace_.arms), kLanes, arm),
                lanes, {kLanes, 1, kLanes / 2, kLanes - lanes, 4, 8},
                fmt::format("{} voted for it; the other {} idle and run in their own turn.", lanes,
                            kLanes - lanes)));
}

Question LatencyHidingScene::waves_question() const {
  const int fit = std::max(trace_.occupancy().resident, 1) * trace_.multiprocessors;
  const int waves = (trace_.blocks + fit - 1) / fit;
  return of_kind(
      "waves", ask_count(fmt::format("{} blocks, and {} fit at once. How many waves do they take?",
                                     trace_.blocks, fit),
                         waves, {waves + 1, waves - 1, 1, 2, 4, trace_.blocks / 32},
                         fmt::format("{} / {} = {}, and a partial wave counts as one.",
                                     trace_.blocks, fit, significant(trace_.waves(), 3))));
}

// ---- when -------------------------------------------------------------------------------------------------

std::optional<Question> LatencyHidingScene::question_before(int next) const {
  const int last = trace_.steps() - 1;
  if (next == last && last > 0) return eligible_question();
  if (tails()) {
    return next == 0 ? std::optional(waves_question()) : std::nullopt;
  }
  if (next == 0 && copies()) return bytes_question();
  if (next == 0 && trace_.arms.size() > 1) return lanes_question(0);
  if (is(Kernel::fma) && next == kSeen - 1) return four_chains_question();
  const int group_of = copies() ? std::max(trace_.loads_in_flight, 1) : 1;
  if (const Probe* used = at_step(&Probe::use_step, next + 1)) {
    const int apart = is(Kernel::chase) ? latency_hiding::kHops : latency_hiding::kProbes;
    const bool loads = copies() || is(Kernel::chase);
    return loads && used->number % apart == 0 ? use_question(next) : std::nullopt;
  }
  // Questions about limits are asked beside the bars of the limits.
  if (!copies() && !is(Kernel::spill)) return std::nullopt;
  if (const Probe* issued = at_step(&Probe::issue_step, next + 1)) {
    if (issued->number == group_of && copies() && trace_.arms.size() > 1) return lanes_question(1);
    if (issued->number == 2 * group_of) return block_limit_question();
    if (issued->number == 3 * group_of) return registers_question();
  }
  return std::nullopt;
}

std::optional<Question> LatencyHidingScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= trace_.steps()) return std::nullopt;
  std::optional<Question> asked = question_before(next);
  if (!asked) return asked;
  asked = shuffled(std::move(*asked), report_);
  if (asked->choices.empty()) return asked;  // it is set on its axis
  const bool of_side = asked->id == "block-limit" || asked->id == "twice-the-registers";
  if (of_side) return about(picture::Key{"occupancy"}, std::move(*asked));
  if (asked->id == "arm-lanes") return about(picture::Key{"arms"}, std::move(*asked));
  const bool counts = asked->id == "eligible" && copies();
  return about(picture::Key{counts    ? picture::Name("counted")
                            : tails() ? picture::Name("multiprocessor_box")
                                      : picture::Name("one_warp")},
               std::move(*asked));
}

}  // namespace tilestep::scenes
