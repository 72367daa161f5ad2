// TMA: boxes of a matrix to shared memory and back.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt::emulated {
namespace {

constexpr int kTileAlignment = 128;

// A row of the box as it is in the matrix, with zeros for what lies outside.
void read_row(const BoxMap& map, int column, std::int64_t row, unsigned char* to) {
  std::memset(to, 0, static_cast<std::size_t>(map.row_bytes()));
  if (row < 0 || row >= map.rows) return;
  const std::int64_t begin = std::max<std::int64_t>(column, 0);
  const std::int64_t end =
      std::min<std::int64_t>(std::int64_t{column} + map.box_columns, map.columns);
  if (begin >= end) return;
  std::memcpy(to + (begin - column) * map.element_bytes,
              map.base + row * map.pitch + begin * map.element_bytes,
              static_cast<std::size_t>((end - begin) * map.element_bytes));
}

void write_row(const BoxMap& map, int column, std::int64_t row, const unsigned char* from) {
  if (row < 0 || row >= map.rows) return;
  const std::int64_t begin = std::max<std::int64_t>(column, 0);
  const std::int64_t end =
      std::min<std::int64_t>(std::int64_t{column} + map.box_columns, map.columns);
  if (begin >= end) return;
  std::memcpy(map.base + row * map.pitch + begin * map.element_bytes,
              from + (begin - column) * map.element_bytes,
              static_cast<std::size_t>((end - begin) * map.element_bytes));
}

// Adds a number to one that other blocks add to at the same time.
template <class Bits, class Sum>
void add_number(unsigned char* to, const unsigned char* from, Sum sum) {
  auto* there = reinterpret_cast<Bits*>(to);
  Bits added = 0;
  std::memcpy(&added, from, sizeof added);
  Bits before = __atomic_load_n(there, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(there, &before, sum(before, added), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
}

// The same as write_row, but for F32 (4 bytes) or BF16 (2), added to what is there.
void add_row(const BoxMap& map, int column, std::int64_t row, const unsigned char* from) {
  if (row < 0 || row >= map.rows) return;
  for (int i = 0; i < map.box_columns; ++i) {
    const std::int64_t at = std::int64_t{column} + i;
    if (at < 0 || at >= map.columns) continue;
    unsigned char* to = map.base + row * map.pitch + at * map.element_bytes;
    if (map.element_bytes == 4) {
      add_number<std::uint32_t>(to, from + i * 4, [](std::uint32_t a, std::uint32_t b) {
        return std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
      });
    } else {
      add_number<std::uint16_t>(to, from + i * 2, [](std::uint16_t a, std::uint16_t b) {
        const float sum = std::bit_cast<float>(std::uint32_t{a} << 16) +
                          std::bit_cast<float>(std::uint32_t{b} << 16);
        return static_cast<std::uint16_t>(numeric::encode(numeric::kBf16, sum));
      });
    }
  }
}

}  // namespace

void AsyncEngine::check_rank(const BoxMap& map, bool says_which, Location at) const {
  if ((map.matrices > 0) == says_which) return;
  runner_.fail(fmt::format("uses a tensor map in {} {}", line_of(at),
                           says_which ? "with the number of a matrix, but it has only one"
                                      : "without the number of a matrix, but it has several"));
}

BoxMap AsyncEngine::matrix_of(const BoxMap& map, int which, Location at) const {
  check_rank(map, true, at);
  BoxMap one = map;
  one.matrices = 0;
  if (which < 0 || which >= map.matrices) {
    one.rows = 0;
  } else {
    one.base += which * map.matrix_pitch;
  }
  return one;
}

void AsyncEngine::fetch(const BoxMap& map, unsigned to, unsigned barrier, int column, int row,
                        int blocks, Location at) {
  check_rank(map, false, at);
  within(to, map.bytes(), "copies", at);
  if (to % kTileAlignment != 0) {
    runner_.fail(fmt::format("copies to shared address {} in {}; allowed: multiples of {}", to,
                             line_of(at), kTileAlignment));
  }
  step();
  if (blocks == 1) {
    fetch_into(map, here(to), here(barrier), column, row, at);
  } else {
    const int last = block_of(static_cast<unsigned>(blocks) - 1, "copies", at);
    for (int rank = 0; rank <= last; ++rank) {
      fetch_into(map, in_block(to, rank), in_block(barrier, rank), column, row, at);
    }
  }
  if (completion_ == Completion::earliest || completion_ == Completion::early_copies) {
    while (!pending_copies_.empty()) land_pending(0);
  }
  nudge();
}

void AsyncEngine::fetch_into(const BoxMap& map, unsigned to, unsigned barrier, int column, int row,
                             Location at) {
  if (rank_at(to) != rank()) visit(rank_at(to), "copies", at);
  const int index = used(barrier, at);
  if (!barriers_[static_cast<std::size_t>(index)].published) {
    unsafe([&] {
      return fmt::format(
          "copies with {} in {}, which TMA was not told of: publish_barriers() after its "
          "barrier_init is missing",
          barrier_name(barriers_[static_cast<std::size_t>(index)]), line_of(at));
    });
  }
  const int number =
      new_copy({.map = map,
                .to = to,
                .barrier = index,
                .column = column,
                .row = row,
                .at = at,
                .thread = me(),
                .depth = known(me())[depth_component()],
                .row_phase = std::vector<Clock>(static_cast<std::size_t>(map.box_rows)),
                .granules = map.bytes() / kGranule});
  const int row_bytes = map.row_bytes();
  for (int r = 0; r < map.box_rows; ++r) {
    for (int byte = 0; byte < row_bytes; byte += kGranule) {
      claim(to + static_cast<unsigned>(r * row_bytes + byte), number, r, at);
    }
  }
  pending_copies_.push_back(number);
}

// A long kernel keeps no more copies than its shared memory has room for.
int AsyncEngine::new_copy(Copy copy) {
  if (free_copies_.empty()) {
    copies_.push_back(std::move(copy));
    return static_cast<int>(copies_.size()) - 1;
  }
  const int number = free_copies_.back();
  free_copies_.pop_back();
  copies_[static_cast<std::size_t>(number)] = std::move(copy);
  return number;
}

// Once all its bytes came and others followed them nobody asks for a copy.
void AsyncEngine::retire(int number) {
  const Copy& copy = copies_[static_cast<std::size_t>(number)];
  if (copy.granules == 0 && copy.landed()) free_copies_.push_back(number);
}

// From now on 16 bytes are a row's of the copy.
void AsyncEngine::claim(unsigned address, int copy, int row, Location at) {
  Granule& g = granule(address);
  constexpr const char* kDoes = "starts a copy to";
  check_copied(g, address, kDoes, at);
  check_released(g, address, kDoes, at);
  check_fenced(g, address, kDoes, at);
  for (const Access& reader : g.readers) {
    if (knows(me(), reader)) continue;
    unsafe([&] {
      return fmt::format(
          "starts a copy to {} in {}, which {} may still read in {}: nothing tells this thread "
          "that it is done",
          place(address), line_of(at), who(reader.thread), line_of(reader.at));
    });
  }
  const int before = std::exchange(g.copy, copy);
  if (before != kNone) {
    --copies_[static_cast<std::size_t>(before)].granules;
    retire(before);
  }
  g.copy_row = row;
  g.store = kNone;
  g.stale_kept = false;
  g.products.fill(0);
  g.writers.clear();
  g.readers.clear();
}

void AsyncEngine::land_pending(std::size_t which) {
  const int number = pending_copies_[which];
  Copy& copy = copies_[static_cast<std::size_t>(number)];
  land(copy);
  if (!copy.landed()) return;
  pending_copies_.erase(pending_copies_.begin() + static_cast<std::ptrdiff_t>(which));
  retire(number);
}

// Bytes come until all are there, or until they end a phase: what the barrier was told of too few comes
// after that.
void AsyncEngine::land(Copy& copy) {
  int run = 0;  // bytes since the last that were logged
  while (copy.landed_rows < copy.map.box_rows) {
    Barrier& barrier = barriers_[static_cast<std::size_t>(copy.barrier)];
    Clock& depth = barrier.gathering[depth_component()];
    depth = std::max(depth, copy.depth + 1);
    int bytes = copy.map.row_bytes() - copy.landed_bytes;
    if (barrier.pending == 0 && barrier.bytes > 0 && barrier.bytes < bytes) {
      bytes = static_cast<int>(barrier.bytes);
    }
    land_bytes(copy, bytes);
    copy.landed_bytes += bytes;
    if (copy.landed_bytes == copy.map.row_bytes()) {
      copy.row_phase[static_cast<std::size_t>(copy.landed_rows)] = barrier.phase + 1;
      ++copy.landed_rows;
      copy.landed_bytes = 0;
    }
    barrier.bytes -= bytes;
    run += bytes;
    const bool ends = barrier.pending == 0 && barrier.bytes == 0;
    if (log_ != nullptr && (ends || copy.landed_rows == copy.map.box_rows)) {
      const int landed = copy.landed_rows * copy.map.row_bytes() + copy.landed_bytes;
      log_landed(copy, copy.to + static_cast<unsigned>(landed - run), run);
    }
    if (end_phase(copy.barrier)) return;
  }
}

void AsyncEngine::land_bytes(const Copy& copy, int bytes) {
  std::array<unsigned char, 256 * 4> row;
  const int row_bytes = copy.map.row_bytes();
  read_row(copy.map, copy.column, std::int64_t{copy.row} + copy.landed_rows, row.data());
  const unsigned to = copy.to + static_cast<unsigned>(copy.landed_rows * row_bytes);
  for (int byte = copy.landed_bytes; byte < copy.landed_bytes + bytes;) {
    const int chunk = std::min(kGranule - byte % kGranule, copy.landed_bytes + bytes - byte);
    const unsigned address =
        hopper::swizzled_address(to + static_cast<unsigned>(byte), copy.map.swizzle);
    std::memcpy(memory(address), row.data() + byte, static_cast<std::size_t>(chunk));
    byte += chunk;
  }
}

// ---- stores -------------------------------------------------------------------------------------

int AsyncEngine::storer_here() {
  for (std::size_t i = 0; i < storers_.size(); ++i) {
    if (storers_[i].thread == me()) return static_cast<int>(i);
  }
  if (storers_.size() == static_cast<std::size_t>(kMostStorers * blocks_)) {
    runner_.fail(
        fmt::format("stores by TMA from more than {} threads of a block, which the emulation "
                    "cannot tell apart; one thread is enough",
                    static_cast<int>(kMostStorers)));
  }
  storers_.push_back({.thread = me()});
  return static_cast<int>(storers_.size()) - 1;
}

void AsyncEngine::store(const BoxMap& map, unsigned from, int column, int row, bool adds,
                        Location at) {
  check_rank(map, false, at);
  within(from, map.bytes(), "stores", at);
  if (adds && map.element_bytes == 1) {
    runner_.fail(
        fmt::format("adds numbers of 1 byte by TMA in {}; allowed: FP32 and BF16", line_of(at)));
  }
  if (from % kTileAlignment != 0) {
    runner_.fail(fmt::format("stores from shared address {} in {}; allowed: multiples of {}", from,
                             line_of(at), kTileAlignment));
  }
  step();
  const int number = static_cast<int>(stores_.size());
  for (int byte = 0; byte < map.bytes(); byte += kGranule) {
    const unsigned address = here(from) + static_cast<unsigned>(byte);
    Granule& g = granule(address);
    check_copied(g, address, "stores", at);
    check_fenced(g, address, "stores", at);
    g.store = number;
  }
  const int storer = storer_here();
  stores_.push_back({.map = map,
                     .from = here(from),
                     .column = column,
                     .row = row,
                     .at = at,
                     .storer = storer,
                     .number = ++storers_[static_cast<std::size_t>(storer)].started,
                     .depth = known(me())[depth_component()],
                     .adds = adds});
  if (completion_ == Completion::earliest) {
    Storer& mine = storers_[static_cast<std::size_t>(storer)];
    finish_stores(mine, mine.started);
  }
  nudge();
}

void AsyncEngine::run_store(Store& store) {
  std::array<unsigned char, 256 * 4> row;
  const int row_bytes = store.map.row_bytes();
  for (int r = 0; r < store.map.box_rows; ++r) {
    for (int byte = 0; byte < row_bytes; byte += kGranule) {
      const unsigned address = store.from + static_cast<unsigned>(r * row_bytes + byte);
      async_read(hopper::swizzled_address(address, store.map.swizzle), row.data() + byte);
    }
    (store.adds ? add_row : write_row)(store.map, store.column, std::int64_t{store.row} + r,
                                       row.data());
  }
  store.done = true;
}

void AsyncEngine::finish_stores(Storer& storer, Clock upto) {
  for (std::size_t i = done_stores_; i < stores_.size(); ++i) {
    Store& store = stores_[i];
    if (storers_[static_cast<std::size_t>(store.storer)].thread != storer.thread) continue;
    if (!store.done && store.number <= upto) run_store(store);
  }
  while (done_stores_ < stores_.size() && stores_[done_stores_].done) ++done_stores_;
  storer.done = std::max(storer.done, std::min(upto, storer.started));
  if (storer.asleep && storer.done >= storer.awaited) {
    storer.asleep = false;
    std::vector<int> sleepers{storer.thread};
    wake(sleepers);
  }
}

void AsyncEngine::commit_stores() {
  step();
  Storer& storer = storers_[static_cast<std::size_t>(storer_here())];
  storer.groups.push_back(storer.started);
}

void AsyncEngine::wait_stores(int pending, Location at) {
  step();
  const auto index = static_cast<std::size_t>(storer_here());
  const std::vector<Clock>& groups = storers_[index].groups;
  const auto kept = static_cast<std::size_t>(pending);
  const Clock upto = groups.size() > kept ? groups[groups.size() - 1 - kept] : 0;
  while (storers_[index].done < upto) {
    storers_[index].awaited = upto;
    storers_[index].asleep = true;
    sleep(Sleep::stores, static_cast<int>(index), 0, at);
  }
  const auto last = std::find_if(stores_.rbegin(), stores_.rend(), [&](const Store& store) {
    return store.storer == static_cast<int>(index) && store.number <= upto;
  });
  if (last != stores_.rend()) deepen(me(), last->depth + 1);
  Clock& mine = known(me())[storer_of(static_cast<int>(index))];
  mine = std::max(mine, upto);
}

}  // namespace tilestep::simt::emulated
