#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/attention/paged_kv/pages.hpp"
#include "kernels/attention/paged_kv/params.hpp"

/// \file
/// A small engine with continuous batching (Yu et al., "Orca", 2022): requests come, run together, grow, and leave
/// whenever they are through; their pages go from one to the next.
namespace tilestep::paged_kv {

enum class Happening {
  admitted,   ///< it has pages for its prompt and runs
  shared,     ///< the same, and the pages of its prefix are another's too
  waits,      ///< there are too few free pages for its prompt
  finished,   ///< its pages are free again
  preempted,  ///< there was no page for a token: the last that came gives its pages back and waits
};
constexpr auto names_of(Happening) {
  return std::to_array<std::string_view>({"admitted", "shared", "waits", "finished", "preempted"});
}
struct Happened {
  Happening what{};
  int request = 0;
  int pages = 0;  ///< taken, wanted or given back
  bool operator==(const Happened&) const = default;
};

/// A request that runs.
struct Running {
  int request = 0;
  int tokens = 0;
  std::vector<int> pages;  ///< its block table
  bool operator==(const Running&) const = default;
};

/// What is so after a step of the engine.
struct Served {
  std::vector<Happened> events;
  std::vector<Running> running;  ///< in the order of their admission
  std::vector<int>
      owner;  ///< of each page: of the requests that hold it the one that came first; −1: free
  std::vector<int> holders;  ///< of each page
  std::vector<int> filled;   ///< tokens in each page
  int waiting = 0, finished = 0;
  bool operator==(const Served&) const = default;

  int free_pages() const;
  /// Tokens in the pages, those of a shared prefix once.
  int tokens() const;
};

/// A timeline, and what the same requests would need in one piece each.
struct Serving {
  int pages = 0, page_size = 1;
  int limit =
      0;  ///< tokens that a request may come to: what is reserved where its cache is one piece
  int stride = 1;  ///< tokens that each request makes in a step
  std::vector<Served> steps;

  /// Requests that the pool's memory holds with `limit` tokens reserved for each.
  int contiguous_requests() const { return pages * page_size / (limit > 0 ? limit : 1); }
};

/// Tokens that the pool has room for at least: those of a batch of average requests and an eighth more, or one request
/// of the longest kind.
std::int64_t pool_tokens(const Params& params, int steps = kServingSteps);

/// Runs so many steps. Prompts are between half and one and a half times as long as the average; who
/// runs at the end is somewhere on its way.
Serving serve(const Params& params, int steps = kServingSteps);

}  // namespace tilestep::paged_kv
