// What the lesson on latency hiding asks before a step.
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

namespace {

constexpr double kNear = 0.1;  ///< what still counts as as long: a tenth

}  // namespace

const Probe* LatencyHidingScene::used_next(int next) const {
  const auto found = std::find_if(probes_.begin(), probes_.end(), [&](const Probe& each) {
    return each.row == 0 && each.use_step == next + 1;
  });
  return found == probes_.end() ? nullptr : &*found;
}

const Probe* LatencyHidingScene::issued_next(int next) const {
  const auto found = std::find_if(probes_.begin(), probes_.end(), [&](const Probe& each) {
    return each.row == 0 && each.issue_step == next + 1;
  });
  return found == probes_.end() ? nullptr : &*found;
}

// ---- copies -----------------------------------------------------------------------------------------------

/// Before anything is seen: what all warps ask for, on the scale of the curve below them.
Question LatencyHidingScene::bytes_question() const {
  const double kib = most_in_flight();
  const double high = picture::rounded(0, std::max(1.5 * kib, 1.0)).second;
  const bool one = !clocked();
  const auto bytes = static_cast<int>(weight() * 1024);
  const double loads = kib / weight();
  const std::string each = is(Kernel::bulk_copy) ? counted(bytes, "byte") + " a stage"
                                                 : counted(bytes, "byte") + " a load of a warp";
  return of_kind("bytes-asked",
                 ask_to_set(fmt::format("{}, {}. How many KiB {} in flight before {} must wait?",
                                        one ? std::string("One warp")
                                            : counted(std::ssize(trace_.machine.rows), "warp"),
                                        each, one ? "has it" : "have they", one ? "it" : "all"),
                            {"flight_box"}, "flight", kib, std::max(0.05 * kib, 0.011 * high),
                            fmt::format("all of them ask before any must wait: {} · {} B = {} KiB.",
                                        significant(loads, 4), bytes, significant(kib, 4))));
}

/// Before a first use: when will it be?
std::optional<Question> LatencyHidingScene::use_question(int next) const {
  const Probe* one = used_next(next);
  if (one == nullptr || !clocked()) return std::nullopt;
  const double high =
      picture::rounded(0, std::max<double>(1, static_cast<double>(trace_.machine.span))).second;
  return of_kind(
      "first-use",
      ask_to_set(
          fmt::format("{} {} has just been issued, at {}. At which {} will the first "
                      "instruction that needs it run?",
                      is(Kernel::copy)        ? "Load"
                      : is(Kernel::bulk_copy) ? "Stage"
                                              : "Hop",
                      one->number, one->issue, unit() == "cycles" ? "cycle" : unit()),
          {"warp_loads"}, "time", static_cast<double>(one->use), 0.03 * high,
          fmt::format(
              "the data took {:.0f} {} from the issue to the use, {:.0f} of them the probe's own.",
              static_cast<double>(one->use - one->issue), unit(), trace_.machine.probe_cost)));
}

/// Before a later first use: as long as the one before it?
std::optional<Question> LatencyHidingScene::next_latency_question(int next) const {
  const Probe* one = used_next(next);
  if (one == nullptr || !clocked()) return std::nullopt;
  const Probe* before = nullptr;
  for (const Probe& each : probes_) {
    if (each.row == 0 && each.use_step <= next &&
        (before == nullptr || each.use_step > before->use_step)) {
      before = &each;
    }
  }
  if (before == nullptr || latency(*before) <= 0) return std::nullopt;
  const double was = latency(*before), is_now = latency(*one);
  const std::vector<std::string> choices = {"Shorter by more than a tenth",
                                            "As long, within a tenth", "Up to twice as long",
                                            "More than twice as long"};
  const std::size_t answer = is_now < (1 - kNear) * was    ? 0
                             : is_now <= (1 + kNear) * was ? 1
                             : is_now <= 2 * was           ? 2
                                                           : 3;
  return of_kind("next-latency",
                 ask(fmt::format("{} {} took {:.0f} {}. How long does {} {} take?", noun(),
                                 before->number, was, unit(), noun(), one->number),
                     choices[answer], choices,
                     fmt::format("it took {:.0f} after {:.0f} {}.", is_now, was, unit())));
}

// ---- what limits ------------------------------------------------------------------------------------------

Question LatencyHidingScene::block_limit_question() const {
  constexpr int kSmall = 32, kRegisters = 24;
  const Occupancy all = occupancy_of({.threads = kSmall, .registers = kRegisters});
  return of_kind(
      "block-limit",
      ask_count(
          fmt::format("A block of {} threads, {} registers each and no shared memory. How many of "
                      "the {} warps of a multiprocessor can be resident?",
                      kSmall, kRegisters, kMostWarps),
          all.warps, {kMostWarps, 16, 48},
          fmt::format("a multiprocessor holds {} at most, however small they are.",
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
          fmt::format(
              "The kernel takes {} registers a thread. With {}, how many of the {} warps would "
              "the register file let in?",
              registers, 2 * registers, kMostWarps),
          warps, {kMostWarps, warps * 2, warps / 2, 16, 32, 8},
          fmt::format(
              "each warp takes {} of the 65536 registers, and only whole blocks are let in: {}.",
              all.registers_allocated, counted(warps, "warp"))));
}

/// At the end: what the hardware counted.
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
          fmt::format("A scheduler has {} warps. How many of them could issue in an average "
                      "cycle, as the hardware counted?",
                      significant(active, 2)),
          eligible, {active, active / 2, active / 4, active / 16, active / 64},
          [](double value) { return significant(value, 2); },
          fmt::format(
              "{} of {} active warps were eligible: the others wait, and one is enough to issue.",
              significant(eligible, 3), significant(active, 3)),
          0));
}

// ---- branch and tail --------------------------------------------------------------------------------------

Question LatencyHidingScene::lanes_question(int arm) const {
  const Arm& of = trace_.arms[static_cast<std::size_t>(arm)];
  const int lanes = std::popcount(of.voted);
  return of_kind(
      "arm-lanes",
      ask_count(fmt::format("The lanes want {} different arms. How many of the {} run in arm {}?",
                            std::ssize(trace_.arms), kLanes, arm),
                lanes, {kLanes, 1, kLanes / 2, kLanes - lanes, 4, 8},
                fmt::format("{} voted for it; the other {} stand still and run in their own turn.",
                            lanes, kLanes - lanes)));
}

Question LatencyHidingScene::waves_question() const {
  const int fit = std::max(trace_.occupancy().resident, 1) * trace_.multiprocessors;
  const int waves = (trace_.blocks + fit - 1) / fit;
  return of_kind(
      "waves", ask_count(fmt::format("{} blocks, and {} fit at once. How many waves do they take?",
                                     trace_.blocks, fit),
                         waves, {waves + 1, waves - 1, 1, 2, 4, trace_.blocks / 32},
                         fmt::format("{} / {} = {}, and a wave that is not full counts as one.",
                                     trace_.blocks, fit, significant(trace_.waves(), 3))));
}

/// What the last wave has of work, on the curve's own scale.
std::optional<Question> LatencyHidingScene::last_wave_question() const {
  const int fit = std::max(trace_.occupancy().resident, 1) * trace_.multiprocessors;
  const int last = trace_.blocks % fit;
  const double high = picture::rounded(0, std::max(1.5 * most_in_flight(), 1.0)).second;
  if (last == 0 || last > high) return std::nullopt;
  return of_kind(
      "last-wave",
      ask_to_set(
          fmt::format("{} blocks in waves of {}: how many are left for the last wave?",
                      trace_.blocks, fit),
          {"flight_box"}, "flight", last, 0.04 * high,
          fmt::format("{} mod {} = {}, and room for {} more stays empty until the last has ended.",
                      trace_.blocks, fit, last, fit - last)));
}

// ---- when -------------------------------------------------------------------------------------------------

std::optional<Question> LatencyHidingScene::question_before(int next) const {
  const int last = trace_.steps() - 1;
  if (next == last && last > 0) return eligible_question();
  if (tails()) {
    if (next == 0) return waves_question();
    if (next == last / 4) return block_limit_question();
    return next == last / 2 ? last_wave_question() : std::nullopt;
  }
  if (next == 0 && copies()) return bytes_question();
  if (next == 0 && trace_.arms.size() > 1) return lanes_question(0);
  const bool loads = copies() || is(Kernel::chase);
  const int group = copies() ? std::max(trace_.loads_in_flight, 1) : 1;
  if (const Probe* used = used_next(next)) {
    const int apart = is(Kernel::chase) ? latency_hiding::kHops : latency_hiding::kProbes;
    if (loads && used->number % apart == 0) return use_question(next);
    // Not of every group: a walk that always asks the same is no walk.
    if (used->number % group != 0 || used->number / group % 3 != 1) return std::nullopt;
    return next_latency_question(next);
  }
  if (const Probe* issued = issued_next(next)) {
    if (issued->number == group && copies() && trace_.arms.size() > 1) return lanes_question(1);
    if (issued->number == 2 * group) return block_limit_question();
    if (issued->number == 3 * group) return registers_question();
  }
  return std::nullopt;
}

std::optional<Question> LatencyHidingScene::question(const View& view) const {
  const int next = view.cursor.tile;
  if (next >= trace_.steps()) return std::nullopt;
  std::optional<Question> asked = question_before(next);
  if (!asked) return asked;
  asked = shuffled(std::move(*asked), report_);
  if (asked->choices.empty()) return asked;  // it stands on its axis
  const bool of_side = asked->id == "block-limit" || asked->id == "twice-the-registers";
  if (of_side) return about(picture::Key{"occupancy"}, std::move(*asked));
  if (asked->id == "arm-lanes") return about(picture::Key{"arms"}, std::move(*asked));
  return about(picture::Key{asked->id == "eligible" ? picture::Name("counted")
                                                    : picture::Name("multiprocessor_box")},
               std::move(*asked));
}

}  // namespace tilestep::scenes
