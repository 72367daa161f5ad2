#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/attention/paged_kv/pages.hpp"
#include "kernels/attention/paged_kv/params.hpp"

/// \file
/// A small engine with continuous batching (Yu et al., "Orca", 2022): requests arrive, run together, grow, and leave
/// when they finish; their pages pass from one to the next.
namespace tilestep::paged_kv {

enum class Happening {
  admitted,   ///< it has pages for its prompt and runs
  shared,     ///< the same, and it shares the pages of its prefix
  waits,      ///< there are too few free pages for its prompt
  finished,   ///< its pages are free again
  preempted,  ///< there was no page for a token: the last admitted releases its pages and waits
};
constexpr auto names_of(Happening) {
  return std::to_array<std::string_view>({"admitted", "shared", "waits", "finished", "preempted"});
}
struct Happened {
  Happening what{};
  int request = 0;
  int pages = 0;  ///< taken, wanted or released
  bool operator==(const Happened&) const = default;
};

/// A running request.
struct Running {
  int request = 0;
  int tokens = 0;
  std::vector<int> pages;  ///< its block table
  bool operator==(const Running&) const = default;
};

/// The state after a step of the engine.
struct Served {
  std::vector<Happened> events;
  std::vector<Running> running;  ///< in the order of their admission
  std::vector<int>
      owner;  ///< of each page: the request that was admitted first among its holders; −1: free
  std::vector<int> holders;  ///< of each page
  std::vector<int> filled;   ///< tokens in each page
  int waiting = 0, finished = 0;
  bool operator==(const Served&) const = default;

  int free_pages() const;
  /// Tokens in the pages, those of a shared prefix once.
  int tokens() const;
};

/// A timeline, and the needs of the same requests with contiguous caches.
struct Serving {
  int pages = 0, page_size = 1;
  int limit =
      0;  ///< most tokens that a request may reach: reserved for it where its cache is contiguous
  int stride = 1;  ///< tokens that each request makes per step
  std::vector<Served> steps;

  /// Requests that the pool's memory holds with `limit` tokens reserved for each.
  int contiguous_requests() const { return pages * page_size / (limit > 0 ? limit : 1); }
};

/// The least room of the pool in tokens: a batch of average requests and an eighth more, or one request of the longest
/// kind.
std::int64_t pool_tokens(const Params& params, int steps = kServingSteps);

/// Runs a number of steps. Prompts are between half and one and a half times as long as the average; requests
/// still running at the end are unfinished.
Serving serve(const Params& params, int steps = kServingSteps);

}  // namespace tilestep::paged_kv
