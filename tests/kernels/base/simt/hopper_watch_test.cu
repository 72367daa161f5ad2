// The emulation's clock that counts words, its log, and threads that only watch.

#include <map>
#include <string>
#include <vector>

#include "kernels/base/simt/tensor_map.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/hopper_testing.hpp"
#include "tests/kernels/base/simt/hopper_watch_kernels.cu"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

using emulated_backend::Fault;
using emulated_backend::WatchedTile;
constexpr int kTiles = 7;

struct Watched {
  std::vector<float> sums;
  std::vector<WatchedTile> notes;
};

Watched watched(const EmulationOptions& options, int watched_tiles = kTiles,
                Fault fault = Fault::none) {
  const auto device = make_emulated_device({}, options);
  const Buffer<float> matrix(*device, counting<float>(8 * 8 * kTiles));
  Buffer<float> sums(*device, 32);
  Buffer<WatchedTile> notes(*device, kTiles + 2);
  sums.fill(0xFF);
  notes.fill(0);
  const auto map = tensor_map(matrix.span(),
                              {.rows = 8, .columns = 8 * kTiles, .box_rows = 8, .box_columns = 8});
  launch(*device, {.name = "watched_ring", .block = {96}, .shared_bytes = 2 * 272 + 1024},
         emulated_backend::watched_ring, map, global(sums.span(), "sums"),
         global(notes.span(), "notes"), kTiles, watched_tiles, fault);
  return {sums.download(), notes.download()};
}

std::vector<long long> clocks_of(const Watched& run) {
  std::vector<long long> clocks;
  for (const WatchedTile& note : run.notes) {
    clocks.insert(clocks.end(), {note.issued, note.waited, note.read, note.landed, note.seen});
  }
  return clocks;
}

TEST_CASE("hopper: the clock counts words, whenever the hardware does its work", "[hopper]") {
  const Watched first = watched({.os_threads = 1});
  for (int tile = 0; tile < kTiles; ++tile) {
    const WatchedTile& note = first.notes[static_cast<std::size_t>(tile)];
    INFO(tile);
    CHECK(note.seen == 1);
    CHECK(note.landed == note.issued + 1);  // a copy takes 1, and watching nothing
    CHECK(note.waited >= note.landed);
    CHECK(note.read == note.waited + 1);
    if (tile < 2) continue;
    // The producer waits for its stage, arrives and fetches: three words after the release.
    const WatchedTile& before = first.notes[static_cast<std::size_t>(tile - 2)];
    CHECK(note.issued >= before.read + 2);
  }
  for (const EmulationOptions& options : all_completions()) {
    CHECK(clocks_of(watched(options)) == clocks_of(first));
  }
}

TEST_CASE("hopper: a watch ends when nothing else can go on, and is no wait", "[hopper]") {
  for (const EmulationOptions& options : all_completions()) {
    const Watched beyond = watched(options, kTiles + 2);
    CHECK(beyond.notes[kTiles - 1].seen == 1);
    CHECK(beyond.notes[kTiles].seen == 0);  // no such tile comes
    CHECK(beyond.sums == watched(options, 0).sums);
    const std::string read = outcome_of([&] { watched(options, kTiles, Fault::half_waits); });
    INFO(read);
    CHECK(missing_in(read, {"watched_ring: thread (64,0,0)", "reads ", "may still be under way"}) ==
          "");
  }
  const std::string unread =
      outcome_of([&] { watched({.os_threads = 1}, kTiles, Fault::full_wait); });
  CHECK(missing_in(unread, {"thread (32,0,0)", "reads "}) == "");
}

TEST_CASE("hopper: the log says when bytes land and phases end", "[hopper]") {
  for (EmulationOptions options : all_completions()) {
    std::vector<AsyncEvent> log;
    options.log = &log;
    options.os_threads = 0;
    const Watched run = watched(options);
    std::map<std::pair<int, long long>, int> landed;  // bytes, of a barrier and phase
    int ended = 0;
    for (const AsyncEvent& event : log) {
      CHECK(event.block == 0);
      if (event.kind == AsyncEvent::Kind::landed) {
        CHECK(event.barrier == "full");
        CHECK(event.thread == 0);
        CHECK(event.pending_arrivals == 0);
        int& bytes = landed[{event.number, event.phase}];
        bytes += event.bytes;
        CHECK(event.pending_bytes == emulated_backend::kWatchedBytes - bytes);
        const auto tile = static_cast<std::size_t>(event.phase * 2 + event.number);
        CHECK(event.depth == run.notes[tile].landed);
      } else if (event.kind == AsyncEvent::Kind::phase_ended && event.barrier == "full") {
        CHECK(landed[{event.number, event.phase}] == emulated_backend::kWatchedBytes);
        ++ended;
      }
    }
    CHECK(ended == kTiles);
  }
}

}  // namespace
}  // namespace tilestep::simt
