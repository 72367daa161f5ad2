// The state at a cursor: the lives of the k-tiles, the ring, the consumer warpgroups.
#include <algorithm>
#include <utility>

#include "scenes/matmul/hopper_gemm/scene.hpp"

namespace tilestep::scenes {

using hopper_gemm::What;

namespace {

/// Whether a consumer issued its products before event `at` (never: at all).
bool read_before(const KTileLife& life, int at) {
  for (const int c : {0, 1}) {
    const int issued = life.when(What::issues, c);
    if (issued != kNever && (at == kNever || issued < at)) return true;
  }
  return false;
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
  int readers = 0;
  for (const int c : {0, 1}) {
    const int released = life.when(What::releases, c);
    readers += released != kNever && (at == kNever || released <= at) ? 1 : 0;
  }
  return readers >= trace_.readers();
}

void HopperGemmScene::take(HopperMoment& now, const hopper_gemm::Event& event) const {
  if (event.lane > std::ssize(now.consumers)) return;
  const bool of_consumer = event.lane > 0;
  const auto c = static_cast<std::size_t>(of_consumer ? event.lane - 1 : 0);
  const auto note = [&](int k, What what) {
    int& when = now.lives[k].events[static_cast<std::size_t>(what)][c];
    if (what != What::lands || when == kNever) when = now.now;  // the first of several
  };
  ConsumerNow& consumer = now.consumers[c];
  if (event.what >= What::stores) {
    (event.what == What::stores ? now.stores : now.stored)[event.number][c] = now.now;
    if (event.what == What::stored) return;
    // A consumer that stores has waited for all its products.
    for (const int k : std::exchange(consumer.under_way, {})) {
      note(k, What::waited);
      ++consumer.added;
    }
    return;
  }
  note(event.number, event.what);
  KTileLife& life = now.lives[event.number];
  life.stage = event.stage;
  const int tile = event.number / std::max(k_tiles(), 1);
  if (of_consumer && tile != consumer.tile) {
    consumer.tile = tile;
    consumer.added = 0;
  }
  if (event.what == What::expects) life.announced = event.bytes;
  if (event.what == What::copies) ++now.copied;
  if (event.what == What::lands) life.arrived += event.bytes;
  if (event.what == What::issues) consumer.under_way.push_back(event.number);
  if (event.what == What::waited) {
    std::erase(consumer.under_way, event.number);
    ++consumer.added;
  }
  if (event.what == What::releases && all_released(life)) ++now.released;
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
    const bool begun = life.when(What::expects) != kNever || life.when(What::copies) != kNever;
    const bool used = read_before(life, kNever);
    if (life.when(What::flips) != kNever || used) ++stage.full_phases;
    if (all_released(life)) ++stage.empty_phases;
    if (!begun) continue;
    stage.overwritten = broken() && stage.k_tile >= 0 &&
                        !released_before(now.life(stage.k_tile), life.when(What::copies));
    stage.k_tile = number;
    stage.released_by = 0;
    for (const int c : {0, 1}) stage.released_by += life.when(What::releases, c) != kNever ? 1 : 0;
    stage.read_early = broken() && has_tma() && read_before(life, life.when(What::flips));
    const bool there =
        has_tma() ? life.when(What::flips) != kNever : life.when(What::copies) != kNever;
    stage.state = all_released(life) ? StageNow::released
                  : used             ? StageNow::in_use
                  : there            ? StageNow::full
                                     : StageNow::filling;
  }
  return now;
}

}  // namespace tilestep::scenes
