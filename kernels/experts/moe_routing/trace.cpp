#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"

namespace tilestep::moe_routing {
namespace {

constexpr int kNone = -1;
constexpr int kMostMma = 1 << 16;  ///< of a tile

constexpr lab::When from(Step step) {
  return {static_cast<int>(step) + 1, 0};
}
/// Of lists whose entries' members say it themselves.
lab::When by_member(const Trace&, std::size_t) {
  return {};
}

lab::Fields<TokenTrace> token_fields(const Trace& trace) {
  return lab::Fields<TokenTrace>(lab::Digits::all)
      .from_here(from(Step::score))
      .reals("logits", &TokenTrace::logits, trace.experts > kMostLogits ? 0 : trace.experts)
      .from_here(from(Step::top_k))
      .wholes("expert", &TokenTrace::expert, trace.top_k, 0, trace.experts - 1)
      .reals(TILESTEP_MEMBERS(TokenTrace, probability, gate), trace.top_k)
      .from_here(from(Step::count))
      .wholes("rank", &TokenTrace::rank, trace.top_k, 0, lab::kMostCount)
      .from_here(from(Step::offset))
      .wholes("slot", &TokenTrace::slot, trace.top_k, kNone, lab::kMostCount)
      .from_here(from(Step::combine))
      .real("output", &TokenTrace::output);
}

lab::Fields<ExpertTrace> expert_fields() {
  return lab::Fields<ExpertTrace>()
      .from_here(from(Step::count))
      .whole("wanted", &ExpertTrace::wanted, 0, lab::kMostCount)
      .whole("kept", &ExpertTrace::kept, 0, &ExpertTrace::wanted)
      .from_here(from(Step::offset))
      .whole(TILESTEP_MEMBERS(ExpertTrace, first_slot, tiles, padded), 0, lab::kMostCount);
}

lab::Fields<TileTrace> tile_fields(const Trace& trace) {
  return lab::Fields<TileTrace>()
      .whole("expert", &TileTrace::expert, 0, trace.experts - 1)
      .whole("number", &TileTrace::number, 0, lab::kMostCount)
      .whole("kept", &TileTrace::kept, 0, trace.tile)
      .whole("block", &TileTrace::block, 0, trace.blocks - 1)
      .whole("processor", &TileTrace::processor, 0, lab::kMostCount)
      .real(TILESTEP_MEMBERS(TileTrace, begin, end));
}

lab::Fields<SchemeTrace> scheme_fields(const Trace& trace) {
  const auto tiles = [](const SchemeTrace& scheme) { return std::ssize(scheme.expert); };
  return lab::Fields<SchemeTrace>()
      .name("scheme", &SchemeTrace::scheme)
      .whole("blocks", &SchemeTrace::blocks, 0, lab::kMostCount)
      .wholes("expert", &SchemeTrace::expert, lab::kAnyCount, 0, trace.experts - 1)
      .wholes("kept", &SchemeTrace::kept, tiles, 0, trace.tile)
      .wholes("block", &SchemeTrace::block, tiles, kNone,
              [](const SchemeTrace& scheme) { return scheme.blocks - 1; })
      .wholes("mma", &SchemeTrace::mma, tiles, 0, kMostMma);
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .whole("tokens", &Trace::tokens, 1, 1 << 24)
      .whole("experts", &Trace::experts, 1, 1 << 16)
      .whole("top_k", &Trace::top_k, 1, &Trace::experts)
      .whole("tile", &Trace::tile, 1, 1 << 16)
      .whole("capacity", &Trace::capacity, kNone, lab::kMostCount)
      .name(TILESTEP_MEMBERS(Trace, routing, scheme))
      .whole(TILESTEP_MEMBERS(Trace, tiles_run, blocks), 0, lab::kMostCount)
      .text("clock_unit", &Trace::clock_unit)
      .lines("lines", &Trace::lines, [](const Trace&) { return step_lines(); })
      .list("token", &Trace::token, token_fields,
            [](const Trace& trace) { return std::min(trace.tokens, kShownTokens); })
      .known_each(by_member)
      .columns("expert", &Trace::expert, expert_fields(), &Trace::experts)
      .known_each(by_member)
      .columns(
          "tiles", &Trace::tiles, tile_fields,
          [](const Trace& trace) { return std::min<std::int64_t>(trace.tiles_run, kShownTiles); })
      .known_each([](const Trace&, std::size_t) { return from(Step::multiply); })
      .list("schemes", &Trace::schemes, scheme_fields,
            [](const Trace& trace) { return trace.schemes_run(); })
      .known_each([](const Trace&, std::size_t) { return from(Step::multiply); })
      .left_out_for(nlohmann::json::array());
}

}  // namespace

int Trace::schemes_run() const {
  const int most = expert[with_most(&ExpertTrace::kept).front()].kept;
  const bool all = (most + tile - 1) / tile * experts <= kComparedTiles;
  return all ? static_cast<int>(all_of<Scheme>().size()) : 1;
}

std::int64_t Trace::kept() const {
  std::int64_t sum = 0;
  for (const ExpertTrace& one : expert) sum += one.kept;
  return sum;
}

std::int64_t Trace::dropped() const {
  std::int64_t sum = 0;
  for (const ExpertTrace& one : expert) sum += one.dropped();
  return sum;
}

double Trace::useful() const {
  return slots() == 0 ? 1 : static_cast<double>(kept()) / static_cast<double>(slots());
}

std::vector<QueuedTile> queued(const SchemeTrace& scheme) {
  std::vector<std::vector<int>> of_block(static_cast<std::size_t>(scheme.blocks));
  for (std::size_t i = 0; i < scheme.tiles(); ++i) {
    if (scheme.block[i] >= 0) of_block[static_cast<std::size_t>(scheme.block[i])].push_back(int(i));
  }
  std::vector<QueuedTile> all;
  std::array<int, kProcessors> free{};
  for (const std::vector<int>& tiles : of_block) {
    const auto first = std::min_element(free.begin(), free.end());
    for (const int tile : tiles) {
      const int end = *first + scheme.mma[static_cast<std::size_t>(tile)];
      all.push_back({tile, static_cast<int>(first - free.begin()), *first, end});
      *first = end;
    }
  }
  return all;
}

std::vector<int> Trace::with_most(int ExpertTrace::*count) const {
  int most = 0;
  for (const ExpertTrace& each : expert) most = std::max(most, each.*count);
  std::vector<int> found;
  for (std::size_t e = 0; e < expert.size(); ++e) {
    if (expert[e].*count == most) found.push_back(static_cast<int>(e));
  }
  return found;
}

std::string experts_text(const std::vector<int>& experts, int of) {
  constexpr std::size_t kMostNames = 3;
  const std::size_t count = experts.size();
  if (count > 1 && static_cast<int>(count) == of) {
    return of == 2 ? "both experts" : fmt::format("all {} experts", of);
  }
  if (count > kMostNames) return fmt::format("{} of {} experts", count, of);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const char* before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
    text += fmt::format("{}E{}", before, experts[i]);
  }
  return text;
}

std::string busiest_text(const Trace& trace) {
  const std::vector<int> busiest = trace.with_most(&ExpertTrace::kept);
  const int most = trace.expert[static_cast<std::size_t>(busiest.front())].kept;
  const std::string who = experts_text(busiest, trace.experts);
  const std::string tokens = lab::plural(most, "token");
  if (busiest.size() == 1) return fmt::format("{} is busiest, with {}", who, tokens);
  if (static_cast<int>(busiest.size()) == trace.experts) {
    return fmt::format("{} have {} each", who, tokens);
  }
  return fmt::format("{} are busiest, with {} each", who, tokens);
}

Trace::Assignment Trace::in_slot(int slot) const {
  for (std::size_t t = 0; t < token.size(); ++t) {
    for (std::size_t choice = 0; choice < token[t].slot.size(); ++choice) {
      if (slot >= 0 && token[t].slot[choice] == slot) {
        return {static_cast<int>(t), static_cast<int>(choice)};
      }
    }
  }
  return {};
}

TILESTEP_TRACE_JSON("MoE trace", trace_fields())

}  // namespace tilestep::moe_routing
