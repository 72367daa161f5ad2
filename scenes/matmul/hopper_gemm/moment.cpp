// The state at a cursor: the lives of the k-tiles, the ring, the consumer warpgroups.
#include <algorithm>
#include <utility>

#include "scenes/matmul/hopper_gemm/scene.hpp"

namespace tilestep::scenes {

using hopper_gemm::What;

namespace {

constexpr KTileLife::Both kNotYet = {kNever, kNever};

/// Whether a consumer issued its products before event `at` (never: at all).
bool read_before(const KTileLife& life, int at) {
  return std::any_of(life.issues.begin(), life.issues.end(),
                     [&](int issued) { return issued != kNever && (at == kNever || issued < at); });
}

}  // namespace

int HopperGemmScene::all_k_tiles() const {
  return k_tiles() * std::max<int>(static_cast<int>(trace_.tiles.size()), 1);
}

const hopper_gemm::BlockTile& HopperGemmScene::tile(int number) const {
  static const hopper_gemm::BlockTile kFirst;
  if (trace_.tiles.empty()) return kFirst;
  return trace_.tiles[std::clamp<std::size_t>(number, 0, trace_.tiles.size() - 1)];
}

bool HopperGemmScene::all_released(const KTileLife& life) const {
  return released_before(life, kNever);
}

/// Whether all readers had released it by event `at` (never: by now).
bool HopperGemmScene::released_before(const KTileLife& life, int at) const {
  const auto given = [at](int released) {
    return released != kNever && (at == kNever || released <= at);
  };
  return std::count_if(life.releases.begin(), life.releases.end(), given) >= trace_.readers();
}

/// A consumer's event: lane 1 or 2.
void HopperGemmScene::take_of_consumer(HopperMoment& now, const hopper_gemm::Event& event) const {
  const int c = event.lane - 1;
  if (c < 0 || c >= static_cast<int>(now.consumers.size())) return;
  ConsumerNow& consumer = now.consumers[c];
  if (event.what == What::stores || event.what == What::stored) {
    auto& events = event.what == What::stores ? now.stores : now.stored;
    events.try_emplace(event.number, kNotYet).first->second[c] = now.now;
    if (event.what == What::stores) {
      // A consumer that stores has waited for all its products.
      for (const int k : std::exchange(consumer.under_way, {})) {
        now.lives[k].waited[c] = now.now;
        ++consumer.added;
      }
    }
    return;
  }
  KTileLife& life = now.lives[event.number];
  life.stage = event.stage;
  const int tile = event.number / std::max(k_tiles(), 1);
  if (tile != consumer.tile) {
    consumer.tile = tile;
    consumer.added = 0;
  }
  auto& under_way = consumer.under_way;
  switch (event.what) {
    case What::waits_full:
      life.waits_full[c] = now.now;
      break;
    case What::issues:
      life.issues[c] = now.now;
      under_way.push_back(event.number);
      break;
    case What::commits:
      life.commits[c] = now.now;
      break;
    case What::waited:
      life.waited[c] = now.now;
      std::erase(under_way, event.number);
      ++consumer.added;
      break;
    case What::releases:
      life.releases[c] = now.now;
      if (all_released(life)) ++now.released;
      break;
    default:
      break;
  }
}

/// An event of the copying thread, the copy engine or a barrier.
void HopperGemmScene::take(HopperMoment& now, const hopper_gemm::Event& event) const {
  if (event.lane > 0) return take_of_consumer(now, event);
  KTileLife& life = now.lives[event.number];
  life.stage = event.stage;
  switch (event.what) {
    case What::waits_empty:
      life.waits_empty = now.now;
      break;
    case What::expects:
      life.expects = now.now;
      life.announced = event.bytes;
      break;
    case What::copies:
      life.copies = now.now;
      ++now.copied;
      break;
    case What::lands:
      if (life.lands == kNever) life.lands = now.now;
      life.arrived += event.bytes;
      break;
    case What::flips:
      life.flips = now.now;
      break;
    default:
      break;
  }
}

HopperMoment HopperGemmScene::moment(Cursor cursor) const {
  HopperMoment now;
  now.events = std::clamp(cursor.tile, 0, trace_.steps());
  now.stages.resize(std::max(trace_.stages, 1));
  now.consumers.resize(std::clamp(trace_.consumers, 1, 2));
  if (trace_.readers() < trace_.consumers) now.consumers[1].tile = 1;
  for (now.now = 1; now.now <= now.events; ++now.now) take(now, trace_.events[now.now - 1]);
  if (now.events > 0) {
    now.last = &trace_.events[now.events - 1];
    const bool of_tile = now.last->what == What::stores || now.last->what == What::stored;
    now.tile = of_tile ? now.last->number : now.last->number / std::max(k_tiles(), 1);
    now.k_tile = of_tile ? (now.tile + 1) * k_tiles() - 1 : now.last->number;
  }
  for (const auto& [number, life] : now.lives) {
    if (life.stage < 0 || life.stage >= std::ssize(now.stages)) continue;
    StageNow& stage = now.stages[life.stage];
    const bool begun = life.expects != kNever || life.copies != kNever;
    const bool used = life.issues != kNotYet;
    if (life.flips != kNever || used) ++stage.full_phases;
    if (all_released(life)) ++stage.empty_phases;
    if (!begun) continue;
    const auto before = now.lives.find(stage.k_tile);
    stage.overwritten =
        broken() && before != now.lives.end() && !released_before(before->second, life.copies);
    stage.k_tile = number;
    stage.released_by = static_cast<int>(std::count_if(life.releases.begin(), life.releases.end(),
                                                       [](int at) { return at != kNever; }));
    stage.read_early = broken() && has_tma() && read_before(life, life.flips);
    const bool there = has_tma() ? life.flips != kNever : life.copies != kNever;
    stage.state = all_released(life) ? StageNow::released
                  : used             ? StageNow::in_use
                  : there            ? StageNow::full
                                     : StageNow::filling;
  }
  return now;
}

}  // namespace tilestep::scenes
