#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/paged_kv/params.hpp"
#include "kernels/attention/paged_kv/serving.hpp"
#include "kernels/lessons.hpp"

/// \file
/// A run of the lesson on a paged cache: an engine's steps, and then the reads of one kernel launch from the pages that
/// the engine handed out.
namespace tilestep::paged_kv {

/// The kind of a step of the picture.
enum class Act {
  serve,  ///< a step of the engine
  read,   ///< a block has read its pages
};
constexpr auto names_of(Act) {
  return std::to_array<std::string_view>({"serve", "read"});
}

/// What ran, and which part of the whole.
struct Shape {
  int cached_heads = 1;
  int key = 32;  ///< numbers of a key
  int page_size = 16;
  KvType kv_dtype = KvType::bf16;
  int prefix = 0;
  std::string cut;  ///< the part of the whole that ran; empty: all
  bool operator==(const Shape&) const = default;
};

/// One block's reads for K/V head 0: pages of one request, or of several that share them.
struct ItemTrace {
  int row = 0, rows = 1;          ///< of the requests: the first, and how many
  int first_page = 0, pages = 0;  ///< places in the block table
  int tokens = 0;
  bool operator==(const ItemTrace&) const = default;
};

/// The traced item's copies of K from a page, by the kernel's own addresses.
struct GatherTrace {
  int page = 0;
  int tokens = 0;
  int bytes = 0;
  int sectors = 0;    ///< of 32 bytes that hold them
  bool owned = true;  ///< the page is in the request's table, as the allocator has it
  bool operator==(const GatherTrace&) const = default;
};

/// The result of a broken run.
struct BrokenResult {
  std::string outcome;                      ///< in words; empty: nothing was broken
  int wrong = 0, elements = 0;              ///< numbers of O
  int stale_request = -1, stale_page = -1;  ///< its table names a page that it does not own
  bool operator==(const BrokenResult&) const = default;
};

struct Trace {
  Shape shape;
  Break broken = Break::none;
  // The engine.
  int pool = 0;   ///< pages
  int limit = 1;  ///< tokens reserved per request in a contiguous cache
  int stride = 1;
  int coming = 0;  ///< requests in all
  int most_running = 1;
  std::vector<Served> serving;
  // The launch.
  std::vector<Running> requests;  ///< with the pages that the kernel's block table has
  std::vector<ItemTrace> items;   ///< a step each
  /// The item whose addresses were recorded: the first request's first, or the one with the stale page.
  int traced_item = 0;
  std::vector<GatherTrace> gathers;  ///< in the order of its tokens
  BrokenResult result;

  int engine_steps() const { return static_cast<int>(serving.size()); }
  /// The picture's steps.
  int length() const { return engine_steps() + static_cast<int>(items.size()); }
  /// The step from which on an item is read.
  int step_of(int item) const { return engine_steps() + item + 1; }
  bool operator==(const Trace&) const = default;
};

/// The trace as tables.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::paged_kv
