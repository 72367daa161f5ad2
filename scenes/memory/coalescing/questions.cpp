// The coalescing lesson's questions before requests, the events of its trace, and its questions about
// measurements. Later warps repeat what the first two showed.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/compared.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using coalescing::Access, coalescing::RequestStats, coalescing::Sector, coalescing::Site,
    coalescing::WarpRequest;
using words::counted;

namespace {

std::string because(const RequestStats& stats) {
  return fmt::format("the lanes touch {} in {} of {}, so {} of the bytes moved are used.",
                     counted(stats.bytes_used, "different byte"), counted(stats.sectors, "sector"),
                     counted(stats.lines, "line"), words::percent(stats.efficiency() / 100));
}

}  // namespace

Question CoalescingScene::length_question(const WarpRequest& next) const {
  const RequestStats stats = request_stats(next, trace_.element_bytes);
  return ask_to_set(
      fmt::format("{}, {} each: the 32 lanes request {}. How many 32-byte sectors move?",
                  trace_.statement, counted(trace_.element_bytes, "byte"),
                  counted(stats.bytes_used, "different byte")),
      {"moved"}, "sectors", stats.sectors, 0.5, because(stats));
}

/// The first lane whose bytes are not in lane 0's sector; nothing if all are.
std::optional<Question> CoalescingScene::next_sector_question(const WarpRequest& next) const {
  const auto sector = [&](int lane) { return next.byte_offset[lane] / coalescing::kSectorBytes; };
  int answer = 1;
  while (answer < coalescing::kLanes && next.active(answer) && sector(answer) == sector(0))
    ++answer;
  if (!next.active(0) || answer == coalescing::kLanes || !next.active(answer)) return std::nullopt;
  std::vector<std::string> others;
  for (const int lane : {8, 4, 16, 2, 1, 31}) {
    if (next.active(lane)) others.push_back(fmt::format("lane {}", lane));
  }
  const auto thing = [](const std::string& choice) {
    return picture::Key{"lane", std::stoi(choice.substr(5))};
  };
  return of_kind(
      "next-sector",
      about_each(thing,
                 ask(fmt::format("Now the warp {}s in order, [i], {} each. Lane 0's bytes begin a "
                                 "32-byte sector. Which lane is the first to need another sector?",
                                 name_of(next.kind), counted(trace_.element_bytes, "byte")),
                     fmt::format("lane {}", answer), others,
                     fmt::format("32 bytes hold {}, so lanes 0–{} share the first sector.",
                                 counted(answer, "element"), answer - 1))));
}

/// Sectors that this request and an earlier one of the same site both touch.
int CoalescingScene::shared_sectors(const WarpRequest& a, const WarpRequest& b) const {
  const std::vector<Sector> of_a = touched_sectors(a, trace_.element_bytes),
                            of_b = touched_sectors(b, trace_.element_bytes);
  return static_cast<int>(std::count_if(of_b.begin(), of_b.end(), [&](const Sector& each) {
    return std::any_of(of_a.begin(), of_a.end(),
                       [&](const Sector& other) { return other.index == each.index; });
  }));
}

Question CoalescingScene::shared_question(const WarpRequest& before,
                                          const WarpRequest& next) const {
  const int answer = shared_sectors(before, next);
  const int sectors = request_stats(next, trace_.element_bytes).sectors;
  return of_kind(
      "shared-sectors",
      about(
          {"memory"},
          ask_count(fmt::format(
                        "Warp {} is next, with {}. How many of these has warp {} already touched?",
                        next.warp, counted(sectors, "sector"), before.warp),
                    answer, {0, 1, sectors, sectors / 2, 2},
                    answer == 0
                        ? "the warps' bytes are in different sectors, so no cache can help."
                        : fmt::format("the warps share {} of {} sectors: if a cache still holds "
                                      "them, memory is not read again.",
                                      answer, sectors))));
}

std::optional<Question> CoalescingScene::question(const View& view) const {
  const StepAxis axis = steps();
  const int place = axis.place_of(view.cursor);
  const bool between = view.cursor.tile == 0 || part(view.cursor) == Part::moved;
  if (!between || place >= axis.places()) return std::nullopt;
  const auto coming = static_cast<std::size_t>(shown(axis.at_place(place + 1)));
  const WarpRequest& next = trace_.requests[coming];
  const bool pattern = next.site == Site::pattern;
  if (next.block != 0 || next.warp > 1) return std::nullopt;
  if (next.warp == 0 && pattern) {
    // The statement does not tell where a shuffle or a hand has put the lanes.
    const bool told = params_.pattern != coalescing::Pattern::permuted &&
                      params_.pattern != coalescing::Pattern::custom;
    return told ? std::optional(of_kind("length", length_question(next))) : std::nullopt;
  }
  std::optional<Question> asked;
  const auto each = static_cast<std::size_t>(in_full_);
  if (next.warp == 0) {
    asked = next_sector_question(next);
  } else if (pattern && coming >= each && trace_.requests[coming - each].site == next.site) {
    asked = shared_question(trace_.requests[coming - each], next);
  }
  if (asked) asked = shuffled(std::move(*asked), report_);
  return asked;
}

// ---- events ---------------------------------------------------------------------------------------

/// The first request of each kind, and things that no earlier warp did.
void CoalescingScene::find_events() {
  int most[2] = {0, 0};  // sectors, by access
  bool together = false, partial = false;
  for (std::size_t r = 0; r < trace_.requests.size(); ++r) {
    const WarpRequest& request = trace_.requests[r];
    const RequestStats stats = request_stats(request, trace_.element_bytes);
    Cursor at = after(r);
    if (at.tile <= in_full_) at.phase = static_cast<int>(Part::sectors);
    int& so_far = most[static_cast<std::size_t>(request.kind)];
    const std::string who = fmt::format("block {}, warp {}", request.block, request.warp);
    if (so_far == 0) {
      events_.push_back({at, fmt::format("the first {}: {}", name_of(request.kind),
                                         counted(stats.sectors, "sector"))});
    } else if (stats.sectors > so_far) {
      events_.push_back({at, fmt::format("{}: {} sectors, most so far", who, stats.sectors)});
    } else if (!partial && stats.lanes < coalescing::kLanes) {
      events_.push_back({at, fmt::format("{}: only {}", who, counted(stats.lanes, "lane"))});
      partial = true;
    } else if (!together && r >= 2 && trace_.requests[r - 2].site == request.site &&
               shared_sectors(trace_.requests[r - 2], request) > 0) {
      events_.push_back({at, fmt::format("{}: sectors that moved before", who)});
      together = true;
    }
    so_far = std::max(so_far, stats.sectors);
  }
}

// ---- about measurements ---------------------------------------------------------------------------

namespace {

/// Wide and strided against narrow and sequential, with one load per thread.
std::optional<Question> wide_question(const lab::Report& bench) {
  const auto of = [&](const char* stride, const char* bytes, const char* launch) {
    return number_with(
        bench, "bandwidth_by_launch",
        {{"stride", stride}, {"element_bytes", bytes}, {"access", "load"}, {"launch", launch}},
        "bandwidth");
  };
  const auto wide = of("2", "16", "1 load a thread"), narrow = of("1", "4", "1 load a thread"),
             four = of("1", "4", "4 loads a thread");
  if (!wide || !narrow || !four) return std::nullopt;
  return about_view(
      "Loads and blocks", "wide-or-sequential",
      ask_larger(
          "Each thread has one load in flight. 16-byte loads at stride 2 waste half of the "
          "traffic; contiguous 4-byte loads waste none. Which delivers more useful bytes per "
          "second?",
          *wide, *narrow, 1.03,
          {"16 bytes at stride 2", "4 bytes, sequential", "Equal, within 3 %"},
          fmt::format("wide loads keep more bytes in flight, though half the traffic is wasted "
                      "({:.0f} against {:.0f} GB/s; with four 4-byte loads per thread {:.0f}; {}).",
                      *wide, *narrow, *four, measured::where_measured(bench))));
}

/// From stride 8 on every lane has a sector of its own.
std::optional<Question> stride_question(const lab::Report& bench) {
  const auto of = [&](const char* stride) {
    return number_with(bench, "bandwidth_by_stride", {{"stride", stride}}, "load");
  };
  const auto near = of("8"), far = of("32");
  return ask_faster(bench, {"Stride and offset", "DRAM traffic"}, "beyond-sectors",
                    {near, far, "GB/s"},
                    "At stride 8 each lane of a 4-byte load has its own sector, so stride 32 moves "
                    "no more sectors. How many times as fast as stride 32 is stride 8?",
                    {1, 4, 2, 8},
                    "from stride 16 on the counters see 64 bytes read per float instead of 32, and "
                    "larger strides touch more DRAM pages");
}

/// One element off: one more sector per request, which the neighbour has already fetched.
std::optional<Question> offset_question(const lab::Report& bench) {
  const auto of = [&](const char* offset) {
    return number_with(bench, "bandwidth_by_offset", {{"offset", offset}}, "load");
  };
  const auto aligned = of("0"), off = of("1");
  if (!aligned || !off || *aligned <= 0) return std::nullopt;
  return about_view(
      "Stride and offset", "misaligned",
      ask_loss("Loads one element off an aligned address touch 5 sectors per request instead of 4. "
               "How much bandwidth does that cost?",
               *off, *aligned, {20, 50, 3, 10},
               fmt::format("the fifth sector is the next warp's first, and a cache has it ({:.0f} "
                           "against {:.0f} GB/s, {}).",
                           *off, *aligned, measured::where_measured(bench))));
}

}  // namespace

std::vector<Question> CoalescingScene::measured_questions(const lab::Report& bench) const {
  return asked_of(bench, {wide_question(bench), stride_question(bench), offset_question(bench)});
}

std::vector<std::string> CoalescingScene::stage_knobs() const {
  const std::string own(coalescing::knob_of(params_.pattern));
  if (own.empty()) return {"pattern", "element_bytes", "access"};
  return {"pattern", own, "element_bytes"};
}

}  // namespace tilestep::scenes
