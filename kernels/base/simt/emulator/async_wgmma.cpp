// wgmma: products that a warpgroup starts together and waits for later.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/base/simt/emulator/async_engine.hpp"
#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/wgmma_math.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt::emulated {
namespace {

using hopper::Format;
constexpr int kRows = hopper::kWgmmaRows;
/// What a thread finds in its sums before it has waited: a NaN that no product gives.
constexpr std::uint32_t kPoison = 0x7FE5A5E5;

// Row and column of d of sum `i` of a thread of the warpgroup.
int row_of(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
int column_of(int thread, int i) {
  return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

/// Numbers along k of one product.
int depth_of(int format) {
  const auto f = static_cast<Format>(format);
  return f == Format::e4m3 || f == Format::s8 ? hopper::kWgmmaBytes : hopper::kWgmmaBytes / 2;
}

// A product that nobody waits for outlives the variables its sums are in. The emulator names that; until it has,
// AddressSanitizer must let it look there. The fiber's stack is still mapped.
[[gnu::no_sanitize_address]] std::uint32_t word_of(const float* sums, int i) {
  const float value = sums[i];
  return std::bit_cast<std::uint32_t>(value);
}
[[gnu::no_sanitize_address]] void put_word(float* sums, int i, float value) {
  sums[i] = value;
}

std::uint64_t hash_of(const float* sums, int count) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, a word at a time
  for (int i = 0; i < count; ++i) hash = (hash ^ word_of(sums, i)) * 0x100000001B3u;
  return hash;
}

}  // namespace

void AsyncEngine::begin_products() {
  step();
  ProductThread& mine = warpgroup(me()).threads[static_cast<std::size_t>(place_in_group(me()))];
  mine.began = true;
  for (auto& [sums, settled] : mine.settled) settled.fenced = true;
}

// A product may only follow touched registers after wgmma_begin().
void AsyncEngine::check_registers(ProductThread& mine, float* sums, const Product& product,
                                  Location at) {
  const auto settled = mine.settled.find(sums);
  const bool touched = settled != mine.settled.end() && !settled->second.fenced &&
                       (product.fresh || settled->second.hash != hash_of(sums, product.n / 2));
  if (mine.began && !touched) return;
  unsafe([&] {
    return fmt::format("reaches wgmma in {} without wgmma_begin() {}", line_of(at),
                       mine.began ? "after using its accumulators" : "before the first");
  });
}

void AsyncEngine::multiply(const Product& product, float* sums, Location at) {
  const int thread = me();
  const int group_index = group_of(thread);
  Warpgroup& group = warpgroup(thread);
  if (block_threads_ < (group_index % block_groups_ + 1) * kWarpgroup) {
    runner_.fail(
        fmt::format("reaches wgmma in {}, but its warpgroup does not have 128 threads: the block "
                    "has {}",
                    line_of(at), block_threads_));
  }
  step();
  const int index = place_in_group(thread);
  const Clock number = ++group.threads[static_cast<std::size_t>(index)].posted;
  Operation& operation = operation_for(group_index, number, product, at);
  check_needs(operation, at);
  if (product.a_registers != nullptr) {
    const auto format = static_cast<Format>(product.format);
    put_fragment(format, index, product.a_registers, operation.a.data());
  }
  take_sums(group_index, index, operation, sums, at);
  operation.depth = std::max(operation.depth, known(thread)[depth_component()]);
  if (++operation.posted == kWarpgroup) {
    operation.needs = {};
    if (completion_ == Completion::earliest) run_products(group_index, number);
  }
  nudge();
}

// The product that the calling thread comes to, as the first of its warpgroup or after others.
AsyncEngine::Operation& AsyncEngine::operation_for(int group_index, Clock number,
                                                   const Product& product, Location at) {
  Warpgroup& group = groups_[static_cast<std::size_t>(group_index)];
  if (number > group.done + group.operations.size()) {
    group.operations.push_back({.product = product, .accumulator = kNone, .at = at});
    Operation& fresh = group.operations.back();
    add_needs(fresh, group_index, number);
    if (product.a_registers != nullptr) {
      fresh.a.resize(static_cast<std::size_t>(kRows * depth_of(product.format)));
    }
  }
  Operation& operation = group.operation(number);
  if (!operation.product.same_as(product)) {
    runner_.fail(
        fmt::format("reaches wgmma in {} with other operands than the rest of its warpgroup "
                    "in {}",
                    line_of(at), line_of(operation.at)));
  }
  return operation;
}

// From here on the sums are the product's; the thread finds NaN in them.
void AsyncEngine::take_sums(int group_index, int index, Operation& operation, float* sums,
                            Location at) {
  Warpgroup& group = groups_[static_cast<std::size_t>(group_index)];
  const Product& product = operation.product;
  const int number = accumulator_for(group, index, sums, product.n);
  Accumulator& accumulator = group.accumulators[static_cast<std::size_t>(number)];
  float*& there = accumulator.registers[static_cast<std::size_t>(index)];
  if (there == nullptr) {
    ProductThread& mine = group.threads[static_cast<std::size_t>(index)];
    check_registers(mine, sums, product, at);
    mine.settled.erase(sums);
    there = sums;
    for (int i = 0; i < product.n / 2; ++i) {
      accumulator
          .tile[static_cast<std::size_t>(row_of(index, i) * product.n + column_of(index, i))] =
          sums[i];
      sums[i] = std::bit_cast<float>(kPoison);
    }
  }
  if (operation.accumulator == kNone) {
    operation.accumulator = number;
    ++accumulator.users;
  }
  if (operation.accumulator != number || there != sums) {
    runner_.fail(fmt::format(
        "reaches wgmma in {} with other accumulators than the rest of its warpgroup", line_of(at)));
  }
}

// The accumulator that a thread's sums are part of: of products under way, or of the first one.
int AsyncEngine::accumulator_for(Warpgroup& group, int index, float* sums, int n) {
  const auto i = static_cast<std::size_t>(index);
  int free = kNone;
  int joinable = kNone;
  for (std::size_t a = 0; a < group.accumulators.size(); ++a) {
    const Accumulator& accumulator = group.accumulators[a];
    if (accumulator.users == 0) {
      free = static_cast<int>(a);
    } else if (accumulator.registers[i] == sums && accumulator.n == n) {
      return static_cast<int>(a);
    }
  }
  // Others of the warpgroup have begun it: the one that this thread's product names.
  const Operation& operation = group.operation(group.threads[i].posted);
  if (operation.accumulator != kNone) joinable = operation.accumulator;
  if (joinable != kNone) return joinable;
  if (free == kNone) {
    free = static_cast<int>(group.accumulators.size());
    group.accumulators.emplace_back();
  }
  Accumulator& fresh = group.accumulators[static_cast<std::size_t>(free)];
  fresh.n = n;
  fresh.tile.assign(static_cast<std::size_t>(kRows * n), 0.0f);
  fresh.registers.fill(nullptr);
  return free;
}

// What all threads of the warpgroup must know: the copies and fences of the two tiles.
void AsyncEngine::add_needs(Operation& operation, int group, Clock number) {
  const auto look = [&](const OperandLayout& layout) {
    for (int piece = 0; piece < layout.pieces(); ++piece) {
      const unsigned local = layout.address(piece);
      within(local, kGranule, "multiplies", operation.at);
      const unsigned address = here(local);
      Granule& g = granule(address);
      g.products[static_cast<std::size_t>(group % block_groups_)] = number;
      for (const Access& writer : g.writers) {
        const auto known = std::find_if(
            operation.needs.begin(), operation.needs.end(),
            [&](const Need& need) { return !need.copy && need.index == writer.thread; });
        if (known == operation.needs.end()) {
          operation.needs.push_back({.index = writer.thread,
                                     .clock = writer.clock,
                                     .address = address,
                                     .at = writer.at,
                                     .copies = writer.copies});
        } else if (known->clock < writer.clock) {
          known->clock = writer.clock;
          known->copies = writer.copies;
          known->address = address;
          known->at = writer.at;
        }
      }
      if (g.copy == kNone) continue;
      const auto known =
          std::find_if(operation.needs.begin(), operation.needs.end(),
                       [&](const Need& need) { return need.copy && need.index == g.copy; });
      if (known == operation.needs.end()) {
        operation.needs.push_back({.copy = true,
                                   .index = g.copy,
                                   .row_begin = g.copy_row,
                                   .row_end = g.copy_row + 1,
                                   .address = address});
      } else {
        known->row_begin = std::min(known->row_begin, g.copy_row);
        known->row_end = std::max(known->row_end, g.copy_row + 1);
      }
    }
  };
  const Product& product = operation.product;
  if (product.a_registers == nullptr) look(OperandLayout(product.a, kRows, false));
  look(OperandLayout(product.b, product.n, product.turned_b));
}

void AsyncEngine::check_needs(const Operation& operation, Location at) const {
  for (const Need& need : operation.needs) {
    if (!need.copy) {
      Granule g;  // as if all the bytes had one shadow
      g.writers.push_back(
          {.thread = need.index, .clock = need.clock, .at = need.at, .copies = need.copies});
      check_fenced(g, need.address, "multiplies", at);
      continue;
    }
    // What ended the last row's phase ended the others' before.
    if (knows_row(me(), copies_[static_cast<std::size_t>(need.index)], need.row_end - 1)) continue;
    Granule g;
    g.copy = need.index;
    for (int row = need.row_begin; row < need.row_end; ++row) {
      if (knows_row(me(), copies_[static_cast<std::size_t>(need.index)], row)) continue;
      g.copy_row = row;
      check_copied(g, need.address, "multiplies", at);
      break;
    }
  }
}

void AsyncEngine::run_products(int group_index, Clock upto) {
  Warpgroup& group = groups_[static_cast<std::size_t>(group_index)];
  const Clock before = group.done;
  while (group.done < upto && !group.operations.empty() &&
         group.operations.front().posted == kWarpgroup) {
    const Operation operation = std::move(group.operations.front());
    group.operations.pop_front();
    group.past.push_back({operation.at, operation.depth});
    ++group.done;
    run_product(group_index, operation);
  }
  if (group.done != before) wake(group.sleepers);
}

// The numbers of an operand, row after row or k after k as they lie.
void AsyncEngine::load_operand(Format format, int rank, const OperandLayout& layout, float* to) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(layout.pieces() * kGranule));
  for (int piece = 0; piece < layout.pieces(); ++piece) {
    async_read(in_block(layout.address(piece), rank), bytes.data() + piece * kGranule);
  }
  decode_numbers(format, bytes.data(), static_cast<int>(bytes.size()), to);
}

void AsyncEngine::run_product(int group_index, const Operation& operation) {
  Warpgroup& group = groups_[static_cast<std::size_t>(group_index)];
  const Product& product = operation.product;
  const auto format = static_cast<Format>(product.format);
  const int n = product.n;
  const int rank = group_index / block_groups_;
  const int depth = depth_of(product.format);
  std::vector<float> a = operation.a;
  if (a.empty()) {
    a.resize(static_cast<std::size_t>(kRows * depth));
    load_operand(format, rank, OperandLayout(product.a, kRows, false), a.data());
  }
  std::vector<float> b(static_cast<std::size_t>(n * depth));
  load_operand(format, rank, OperandLayout(product.b, n, product.turned_b), b.data());
  if (!product.turned_b) {
    const std::vector<float> rows = b;
    transpose(rows.data(), n, depth, b.data());
  }
  Accumulator& accumulator = group.accumulators[static_cast<std::size_t>(operation.accumulator)];
  if (product.fresh) std::fill(accumulator.tile.begin(), accumulator.tile.end(), 0.0f);
  (format == Format::s8 ? add_whole_products : add_products)(a.data(), b.data(), depth, n,
                                                             accumulator.tile.data());
  if (log_ != nullptr) log_product(group_index, operation);
  if (--accumulator.users == 0) put_back(group_index, accumulator);
}

// The sums come to the threads' registers, which nobody may have written meanwhile.
void AsyncEngine::put_back(int group_index, Accumulator& accumulator) {
  Warpgroup& group = groups_[static_cast<std::size_t>(group_index)];
  const int count = accumulator.n / 2;
  int wrong = kNone;
  for (int thread = 0; thread < kWarpgroup; ++thread) {
    float* sums = accumulator.registers[static_cast<std::size_t>(thread)];
    for (int i = 0; i < count; ++i) {
      if (word_of(sums, i) != kPoison) {
        // Something else may lie there by now, a return address even.
        if (wrong == kNone) wrong = thread;
        continue;
      }
      put_word(sums, i,
               accumulator.tile[static_cast<std::size_t>(row_of(thread, i) * accumulator.n +
                                                         column_of(thread, i))]);
    }
    group.threads[static_cast<std::size_t>(thread)].settled[sums] = {
        .hash = hash_of(sums, count), .sums = count, .number = group.done};
  }
  if (wrong == kNone || !report_) return;
  throw KernelFault(fmt::format("{} writes accumulators of a wgmma before it has waited for it",
                                runner_.position(first_thread(group_index) + wrong)),
                    place_here());
}

void AsyncEngine::commit_products() {
  step();
  ProductThread& mine = warpgroup(me()).threads[static_cast<std::size_t>(place_in_group(me()))];
  mine.groups.push_back(mine.posted);
}

void AsyncEngine::wait_products(int pending, Location at) {
  nudge();
  step();
  const int group_index = group_of(me());
  Warpgroup& group = warpgroup(me());
  ProductThread& mine = group.threads[static_cast<std::size_t>(place_in_group(me()))];
  const auto kept = static_cast<std::size_t>(pending);
  const Clock upto = mine.groups.size() > kept ? mine.groups[mine.groups.size() - 1 - kept] : 0;
  mine.awaited = std::max(mine.awaited, upto);
  while (group.done < upto) {
    group.sleepers.push_back(me());
    sleep(Sleep::products, group_index, 0, at);
  }
  for (auto& [sums, settled] : mine.settled) {
    if (settled.awaited || settled.number > upto) continue;
    settled.awaited = true;
    if (settled.hash != hash_of(sums, settled.sums)) {
      unsafe([&] {
        return "writes accumulators of a wgmma before it has waited for it in " + line_of(at);
      });
    }
  }
  if (upto > 0) deepen(me(), group.past[upto - 1].depth + 1);
  Clock& known_here = known(me())[warp_of(me() / 32)];
  known_here = std::max(known_here, upto);
  // Nobody asks for groups that have been waited for.
  if (mine.groups.size() > kept) {
    mine.groups.erase(mine.groups.begin(), mine.groups.end() - static_cast<std::ptrdiff_t>(kept));
  }
}

void AsyncEngine::thread_ended() {
  const int thread = me();
  const Warpgroup& group = warpgroup(thread);
  const ProductThread& mine = group.threads[static_cast<std::size_t>(place_in_group(thread))];
  if (mine.awaited < mine.posted) {
    const Location posted_at = mine.posted <= group.done
                                   ? group.past[mine.posted - 1].at
                                   : group.operations[mine.posted - 1 - group.done].at;
    runner_.fail(fmt::format("ends without wgmma_wait for the wgmma of {}{}", line_of(posted_at),
                             mine.groups.empty() || mine.groups.back() < mine.posted
                                 ? ", which no wgmma_commit has closed"
                                 : ""));
  }
  for (const Store& store : stores_) {
    const Storer& storer = storers_[static_cast<std::size_t>(store.storer)];
    if (storer.thread != thread || knows_store(thread, store)) continue;
    unsafe([&] {
      return fmt::format(
          "ends without store_wait for the store of {}: its shared memory may be gone "
          "before it is read",
          line_of(store.at));
    });
  }
  end_cluster_barrier(1);
  if (runner_.ended(rank()) + 1 == block_threads_) block_ended(rank());
}

}  // namespace tilestep::simt::emulated
