#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/paged_kv/params.hpp"
#include "kernels/attention/paged_kv/serving.hpp"
#include "kernels/lessons.hpp"

/// \file
/// What a run of the lesson on a paged cache shows: an engine's steps, and then what a launch of the kernel reads of the
/// pages that the engine gave out.
namespace tilestep::paged_kv {

/// What a step of the picture is about.
enum class Act {
  serve,  ///< a step of the engine
  read,   ///< a block has read its pages
};
constexpr auto names_of(Act) {
  return std::to_array<std::string_view>({"serve", "read"});
}

/// What ran, and what of the whole it is.
struct Shape {
  int cached_heads = 1;
  int key = 32;  ///< numbers of a key
  int page_size = 16;
  KvType kv_dtype = KvType::bf16;
  int prefix = 0;
  std::string cut;  ///< what of the whole ran; empty: all of it
  bool operator==(const Shape&) const = default;
};

/// A request that the kernel attends for.
struct RequestTrace {
  int request = 0;  ///< its number
  int tokens = 0;
  std::vector<int> pages;  ///< as the kernel's block table has them
  bool operator==(const RequestTrace&) const = default;
};

/// What one block reads of K/V head 0: pages of one request, or of several that have these in common.
struct ItemTrace {
  int row = 0, rows = 1;          ///< of the requests: the first, and how many
  int first_page = 0, pages = 0;  ///< places in the block table
  int tokens = 0;
  bool operator==(const ItemTrace&) const = default;
};

/// What the traced item gathered of K from a page: the addresses of its copies, as the kernel made them.
struct GatherTrace {
  int page = 0;
  int tokens = 0;
  int bytes = 0;
  int sectors = 0;    ///< of 32 bytes that hold them
  bool owned = true;  ///< the page is in the request's table, as the allocator has it
  bool operator==(const GatherTrace&) const = default;
};

/// What came of a broken run.
struct BrokenResult {
  std::string outcome;                      ///< in words; empty: nothing was broken
  int wrong = 0, elements = 0;              ///< numbers of O
  int stale_request = -1, stale_page = -1;  ///< whose table names a page that it has not
  bool operator==(const BrokenResult&) const = default;
};

struct Trace {
  Shape shape;
  Break broken = Break::none;
  // The engine.
  int pool = 0;   ///< pages
  int limit = 1;  ///< tokens reserved for each request where a cache is one piece
  int stride = 1;
  int coming = 0;  ///< requests in all
  int most_running = 1;
  std::vector<Served> serving;
  // The launch.
  std::vector<RequestTrace> requests;
  std::vector<ItemTrace> items;  ///< a step each
  /// Whose addresses were recorded: the first request's first item, or the one with the stale page.
  int traced_item = 0;
  std::vector<GatherTrace> gathers;  ///< in the order of its tokens
  BrokenResult result;

  int engine_steps() const { return static_cast<int>(serving.size()); }
  /// The picture's steps.
  int length() const { return engine_steps() + static_cast<int>(items.size()); }
  /// From which step on an item has been read.
  int step_of(int item) const { return engine_steps() + item + 1; }
  bool operator==(const Trace&) const = default;
};

/// The tables that say what a trace says.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::paged_kv
