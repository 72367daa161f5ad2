#include "scenes/matmul/hopper_gemm/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using hopper_gemm::Break, hopper_gemm::Variant, hopper_gemm::What;
using words::counted;

namespace {

constexpr const char* kTable = "events";

}  // namespace

StepAxis HopperGemmScene::loaded(const hopper_gemm::Trace&) {
  params_ = hopper_gemm::knob_table().params(report_.params);
  clocked_ = std::any_of(trace_.events.begin(), trace_.events.end(),
                         [](const hopper_gemm::Event& event) { return event.clock > 0; });
  find_events();
  find_timed();
  find_beats();
  return {trace_.steps(), 1, "event", {}, kTable, 0, {}, "k-tile", ends_};
}

double HopperGemmScene::progress(Cursor cursor) const {
  const int events = std::clamp(cursor.tile, 0, trace_.steps());
  const auto multiplied =
      std::count_if(trace_.events.begin(), trace_.events.begin() + events,
                    [](const hopper_gemm::Event& event) { return event.what == What::waited; });
  return static_cast<double>(multiplied) + events / (trace_.steps() + 1.0);
}

int HopperGemmScene::followed(const View& view, const HopperMoment& now) const {
  const int picked = view.pick("k-tile", -1);
  return now.lives.count(picked) > 0 ? picked : now.k_tile;
}

// ---- tables -------------------------------------------------------------------------------------

int HopperGemmScene::table_row(std::string_view table_id, const View& view) const {
  if (table_id == "tiles" && view.cursor.tile > 0) {
    return std::min(moment(view.cursor).tile, static_cast<int>(trace_.tiles.size()) - 1);
  }
  return Scene::table_row(table_id, view);
}

Cursor HopperGemmScene::known(const lab::Table& table, int row, int column) const {
  // What follows from the knobs alone.
  if (table.id == "swizzles" || table.id == "roofs" || table.id == "tiles") return {};
  if (table.id == "broken") return {trace_.steps(), 0};
  return Scene::known(table, row, column);
}

std::vector<picture::Subject> HopperGemmScene::subjects_of_row(std::string_view table_id,
                                                               int row) const {
  if (table_id == kTable && row >= 0 && row < trace_.steps()) {
    const hopper_gemm::Event& event = trace_.events[row];
    const bool of_tile = event.what == What::stores || event.what == What::stored;
    return {
        of_tile ? picture::Subject{"tile", event.number} : picture::Subject{"k-tile", event.number},
        {"event", row}};
  }
  if (table_id == "tiles" && row >= 0) return {{"tile", row}};
  return Scene::subjects_of_row(table_id, row);
}

// ---- words --------------------------------------------------------------------------------------

std::string HopperGemmScene::copier() const {
  return has_producer() ? "The producer" : has_tma() ? "Thread 0" : "All threads";
}

std::string HopperGemmScene::consumer(int number) const {
  return fmt::format("consumer {}", number);
}

/// Of a kernel that was broken on purpose.
std::string HopperGemmScene::outcome() const {
  const hopper_gemm::Broken& what = trace_.broken;
  const std::string wrong = fmt::format("{} of C {} wrong", counted(what.wrong, "element"),
                                        what.wrong == 1 ? "is" : "are");
  if (what.outcome == "hang") {
    return fmt::format("a wait never ended and was given up{}.",
                       what.wrong > 0 ? "; " + wrong : std::string());
  }
  if (what.outcome == "ended by the GPU") {
    return fmt::format("the GPU ended the launch.{}",
                       what.wrong > 0 ? " Under emulation " + wrong + "." : std::string());
  }
  if (what.wrong > 0) {
    return fmt::format("{}, first C[{}][{}]: {} instead of {}.", wrong, what.row, what.column,
                       words::significant(what.got, 4), words::significant(what.want, 4));
  }
  return "C is right this time, which proves nothing.";
}

std::string HopperGemmScene::sentence_of_copies(const HopperMoment& now) const {
  const hopper_gemm::Event& event = *now.last;
  const int k = event.number;
  switch (event.what) {
    case What::waits_empty: {
      const auto held = now.lives.find(k - trace_.stages);
      if (held == now.lives.end()) {
        return fmt::format(
            "Stage {} has held nothing yet: its empty barrier lets the producer pass.",
            event.stage);
      }
      return all_released(held->second)
                 ? fmt::format("The producer wants stage {} for k-tile {}: it has been released.",
                               event.stage, k)
                 : fmt::format(
                       "The producer wants stage {} for k-tile {} and waits for its release.",
                       event.stage, k);
    }
    case What::expects:
      return has_tma() ? fmt::format(
                             "Stage {}'s full barrier is told to expect {} bytes of "
                             "k-tile {}.",
                             event.stage, event.bytes, k)
                       : fmt::format("{} threads begin to copy k-tile {}, 16 bytes at a time.",
                                     128 * trace_.consumers, k);
    case What::copies: {
      if (!has_tma()) {
        return has_wgmma() ? fmt::format("K-tile {} is written to stage {} by ordinary stores.", k,
                                         event.stage)
                           : fmt::format("K-tile {} is requested by cp.async, for stage {}.", k,
                                         event.stage);
      }
      const int boxes = 2 * 128 / box_bytes();
      return fmt::format(
          "One thread has requested k-tile {}: {} for stage {}. It does not "
          "wait.",
          k, counted(boxes, "box", "boxes"), event.stage);
    }
    case What::lands:
      return event.pending > 0
                 ? fmt::format("{} bytes of k-tile {} have landed in stage {}; {} are pending.",
                               event.bytes, k, event.stage, event.pending)
                 : fmt::format("The last {} bytes of k-tile {} have landed in stage {}.",
                               event.bytes, k, event.stage);
    default:
      return emulated() ? fmt::format(
                              "No byte of k-tile {} is pending: stage {}'s full barrier "
                              "flips to its next phase.",
                              k, event.stage)
                        : fmt::format(
                              "A watching thread sees stage {}'s full barrier flip: k-tile "
                              "{} is there.",
                              event.stage, k);
  }
}

std::string HopperGemmScene::sentence_of_products(const HopperMoment& now) const {
  const hopper_gemm::Event& event = *now.last;
  const int k = event.number, c = std::clamp(event.lane - 1, 0, trace_.consumers - 1);
  const std::string who = fmt::format("Consumer {}", event.lane - 1);
  switch (event.what) {
    case What::waits_full: {
      const bool there = now.life(k).when(What::flips) != kNever;
      if (!has_tma()) return fmt::format("{} waits at __syncthreads() for k-tile {}.", who, k);
      return there ? fmt::format("{} wants k-tile {}: stage {}'s full barrier has flipped already.",
                                 who, k, event.stage)
                   : fmt::format("{} wants k-tile {} and waits at stage {}'s full barrier.", who, k,
                                 event.stage);
    }
    case What::issues:
      return has_wgmma()
                 ? fmt::format("{} finds k-tile {} in stage {} and issues 4 wgmma of 64 × {}.", who,
                               k, event.stage, trace_.columns)
                 : fmt::format("{} has k-tile {}: its warps multiply it by mma.sync.", who, k);
    case What::commits:
      return fmt::format("The products of k-tile {} are in flight; {} goes on meanwhile.", k,
                         consumer(event.lane - 1));
    case What::waited:
      return fmt::format("K-tile {} is in the accumulators of {}: {} of {} added.", k,
                         consumer(event.lane - 1), now.consumers[c].added, k_tiles());
    case What::releases: {
      return all_released(now.life(k))
                 ? fmt::format("{} releases stage {}: k-tile {} is done, the stage is free.", who,
                               event.stage, k)
                 : fmt::format("{} releases stage {}; the others still read k-tile {}.", who,
                               event.stage, k);
    }
    case What::stores:
      return fmt::format(
          "{} stores its 64 × {} accumulators to C: {} added.", who, trace_.columns,
          k_tiles() == 1 ? "its k-tile is" : fmt::format("all {} k-tiles are", k_tiles()));
    default:
      return fmt::format("{} has stored {}tile {}.", who,
                         trace_.readers() > 1 ? "its part of " : "", tile(event.number).number);
  }
}

std::string HopperGemmScene::sentence(const HopperMoment& now) const {
  if (now.last == nullptr) {
    const int tiles = std::max<int>(static_cast<int>(trace_.tiles.size()), 1);
    std::string of_each = tiles > 1 ? fmt::format("{}, each of ", counted(tiles, "tile")) : "";
    return fmt::format("Nothing has happened yet: {}{} to go, through a ring of {}.", of_each,
                       counted(k_tiles(), "k-tile"), counted(trace_.stages, "stage"));
  }
  if (judged(now)) {
    return fmt::format("{}: {}", name_of(params_.broken), outcome());
  }
  if (at_end(now) && !timed_.empty()) {
    return fmt::format("With {} a k-tile took {:.0f} cycles, {:.0f} of them products.",
                       counted(timed_.back().stages, "stage"), timed_.back().cycles, products_);
  }
  return now.last->what <= What::flips ? sentence_of_copies(now) : sentence_of_products(now);
}

std::string HopperGemmScene::brief(const HopperMoment& now) const {
  if (now.last == nullptr) return "Nothing has happened yet.";
  if (judged(now)) return trace_.broken.outcome.empty() ? "finished" : trace_.broken.outcome;
  const bool of_tile = now.last->what >= What::stores;
  return fmt::format("{} {}: {}", of_tile ? "Tile" : "K-tile", now.last->number,
                     name_of(now.last->what));
}

std::vector<picture::Symbol> HopperGemmScene::symbols(const View& view) const {
  const HopperMoment now = moment(view.cursor);
  if (now.last == nullptr) return {};
  std::vector<picture::Symbol> all;
  const int k = now.k_tile;
  for (const char* word : {"k-tile", "K-tile"}) {
    all.push_back(
        {fmt::format("{} {}", word, k),
         {"k-tile", k},
         now.tone_of(k),
         fmt::format("128 bytes of k of the block's {} rows of A and {} rows of B: number "
                     "{} of {} that the block multiplies.",
                     trace_.rows, trace_.columns, k, all_k_tiles()),
         {"number"}});
  }
  const int stage = now.life(k).stage;
  for (const char* word : {"stage", "Stage"}) {
    all.push_back(
        {fmt::format("{} {}", word, stage),
         {"stage", stage},
         0,
         fmt::format("{} bytes of shared memory for one k-tile, {} of A and {} of B; number "
                     "{} of {}.",
                     trace_.stage_bytes, a_bytes(), trace_.stage_bytes - a_bytes(), stage,
                     trace_.stages),
         {"stages"}});
  }
  return all;
}

// ---- numbers ------------------------------------------------------------------------------------

std::vector<Readout> HopperGemmScene::readouts(const View& view) const {
  const HopperMoment now = moment(view.cursor);
  const int k = followed(view, now);
  const KTileLife& life = now.life(k);
  const std::string device = report_.device.name;
  std::vector<Readout> all;
  const auto add = [&](std::string id, std::string label, std::string value, std::string unit,
                       lab::Provenance from, std::string detail) -> Readout& {
    return all.emplace_back(Readout{std::move(id), std::move(label), std::move(value),
                                    std::move(unit), from, std::move(detail)});
  };
  const auto traced = lab::Provenance::traced, derived = lab::Provenance::derived;
  if (has_tma()) {
    const bool told = life.when(What::expects) != kNever;
    const bool there = life.when(What::flips) != kNever;
    add("announced", fmt::format("announced of k-tile {}", k),
        told ? std::to_string(life.announced) : "—", told ? "B" : "", traced,
        fmt::format("Bytes that the copying thread told the stage's full barrier to expect, traced "
                    "on {}.",
                    device))
        .about = {"k-tile", k};
    const bool known = told && (there || emulated());
    add("pending", "pending",
        known ? std::to_string(there ? 0 : life.announced - life.arrived) : "—", known ? "B" : "",
        traced,
        emulated()
            ? "Expected minus landed bytes, as the emulation counts them."
            : "On a GPU landing has no clock of its own: a watching thread polls the barrier, "
              "and all that is known is that nothing is pending once it flips.");
  }
  const auto in_use = std::count_if(now.stages.begin(), now.stages.end(), [](const StageNow& each) {
    return each.state != StageNow::empty && each.state != StageNow::released;
  });
  // Without a clock the events stand k-tile by k-tile: what overlapped is not known.
  add("in_use", "stages in use", clocked_ ? std::to_string(in_use) : "—",
      clocked_ ? fmt::format("of {}", trace_.stages) : "", traced,
      fmt::format("Stages that hold a k-tile, or wait for one. Traced on {}.", device));
  add("ahead", "k-tiles ahead",
      clocked_ ? std::to_string(std::max(now.copied - now.released, 0)) : "—", "", derived,
      "k-tiles whose copies are issued, less those that all consumers have released");
  return all;
}

// ---- the kernel ---------------------------------------------------------------------------------

SourceMark HopperGemmScene::source(const View& view) const {
  const std::string_view path = hopper_gemm::source_path(trace_.variant);
  const int events = std::clamp(view.cursor.tile, 0, trace_.steps());
  const int current = events > 0 ? static_cast<int>(trace_.events[events - 1].what) : -1;
  SourceMark mark = source_mark(path, trace_.lines, current);
  for (int e = 0; e < events; ++e) {
    const hopper_gemm::Event& event = trace_.events[e];
    const int line = trace_.lines[static_cast<std::size_t>(event.what)];
    if (line <= 0) continue;
    const bool of_tile = event.what == What::stores || event.what == What::stored;
    std::string value = fmt::format("{} = {}", of_tile ? "tile" : "number", event.number);
    if (event.what == What::expects && event.bytes > 0) {
      value += fmt::format("; {} bytes", event.bytes);
    } else if (!of_tile) {
      value += fmt::format(", stage {}", event.stage);
    }
    if (event.what == What::waits_full && has_tma())
      value += fmt::format(", parity {}", event.parity);
    mark.values[line] = std::move(value);
  }
  return mark;
}

// ---- events -------------------------------------------------------------------------------------

/// Each is told by what came before it alone.
void HopperGemmScene::find_events() {
  constexpr int kMostTiles = 12;
  ends_.clear();
  std::set<std::string> known;
  std::map<int, int> released, stored;
  std::set<int> there;
  int held = 0, tiles = 0;
  const auto say = [&](int event, const char* kind, std::string text) {
    if (known.insert(kind).second) events_.push_back({{event + 1, 0}, std::move(text)});
  };
  for (int e = 0; e < trace_.steps(); ++e) {
    const hopper_gemm::Event& event = trace_.events[e];
    switch (event.what) {
      case What::copies:
        if (!has_tma()) {
          there.insert(event.number);
          ends_.push_back(e + 1);
          say(e, "full", "the first stage is written");
        }
        if (++held == trace_.stages && trace_.stages > 1) {
          say(e, "ring", fmt::format("all {} stages are taken", trace_.stages));
        }
        if (event.number >= trace_.stages) {
          say(e, "again", fmt::format("stage {} is filled again", event.stage));
        }
        break;
      case What::flips:
        there.insert(event.number);
        ends_.push_back(e + 1);
        say(e, "full", fmt::format("stage {} is the first to be full", event.stage));
        break;
      case What::waits_full:
        if (there.count(event.number) == 0) {
          say(e, "waits", fmt::format("{} waits first", consumer(event.lane - 1)));
        }
        break;
      case What::issues:
        say(e, "products", "the first products are issued");
        break;
      case What::releases:
        if (++released[event.number] == trace_.readers()) {
          --held;
          ends_.push_back(e + 1);
          say(e, "free", fmt::format("stage {} is free again", event.stage));
        }
        break;
      case What::stored:
        if (++stored[event.number] == trace_.readers() && tiles++ < kMostTiles) {
          say(e, fmt::format("tile {}", event.number).c_str(),
              trace_.tiles.size() > 1
                  ? fmt::format("tile {} of C is done", tile(event.number).number)
                  : std::string("the tile of C is done"));
        }
        break;
      default:
        break;
    }
  }
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(hopper_gemm, HopperGemmScene)
