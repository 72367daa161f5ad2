#pragma once

/// \file
/// How ragged requests become work items that keep all blocks busy until the end: the pages of all requests and K/V
/// heads stand in one line, which is cut into pieces of equal length, a block each, wherever the cuts fall (the idea
/// of stream-K: Osama et al., "Stream-K", 2023, arXiv:2301.03598).

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/decode/paged_problem.hpp"

namespace tilestep::decode::paged {

struct WorkPlan {
  std::vector<WorkItem> items;
  std::vector<int> first_item;  ///< [blocks + 1]
  int slots = 0;
};

struct Cut {
  int heads, kv_heads, page_size;
  bool repeat_kv = false;  ///< each query head has items of its own
};

namespace detail {

constexpr int pages_for(int tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}
/// Items of one request and K/V head that follow each other know how many they are.
inline void number_splits(WorkPlan& plan, std::size_t first) {
  const int splits = static_cast<int>(plan.items.size() - first);
  for (std::size_t i = first; i < plan.items.size(); ++i) {
    WorkItem& item = plan.items[i];
    item.split = static_cast<int>(i - first);
    item.splits = splits;
    item.first_slot = splits > 1 ? plan.slots : -1;
  }
  if (splits > 1) plan.slots += splits;
}

}  // namespace detail

/// Items of `blocks` blocks, whose pages differ by one at most.
inline WorkPlan balanced_plan(const Cut& cut, std::span<const int> context, int blocks) {
  assert(blocks > 0 && cut.heads % cut.kv_heads == 0);
  const int lines = cut.repeat_kv ? cut.heads : cut.kv_heads;  // of a request
  const int rows = cut.heads / lines;
  std::int64_t all = 0;
  for (const int tokens : context) all += std::int64_t{detail::pages_for(tokens, cut.page_size)};
  all *= lines;
  WorkPlan plan;
  plan.first_item.push_back(0);
  const auto end_of = [&](int block) { return all * (block + 1) / blocks; };
  std::int64_t at = 0;
  int block = 0;
  for (int request = 0; request < static_cast<int>(context.size()); ++request) {
    const int pages = detail::pages_for(context[static_cast<std::size_t>(request)], cut.page_size);
    for (int line = 0; line < lines; ++line) {
      const std::size_t first = plan.items.size();
      const int kv_head = line * rows * cut.kv_heads / cut.heads;
      int page = 0;
      do {
        while (block + 1 < blocks && at >= end_of(block)) {
          plan.first_item.push_back(static_cast<int>(plan.items.size()));
          ++block;
        }
        const auto here =
            static_cast<int>(std::min<std::int64_t>(pages - page, end_of(block) - at));
        plan.items.push_back({request, kv_head, line * rows, rows, page, here, 0, 1, -1});
        page += here;
        at += here;
      } while (page < pages);
      detail::number_splits(plan, first);
    }
  }
  while (static_cast<int>(plan.first_item.size()) <= blocks) {
    plan.first_item.push_back(static_cast<int>(plan.items.size()));
  }
  return plan;
}

/// Each request and K/V head in `splits` parts, or as many as it has pages, a block each.
inline WorkPlan even_plan(const Cut& cut, std::span<const int> context, int splits) {
  assert(splits > 0 && cut.heads % cut.kv_heads == 0);
  const int lines = cut.repeat_kv ? cut.heads : cut.kv_heads;
  const int rows = cut.heads / lines;
  WorkPlan plan;
  plan.first_item.push_back(0);
  for (int request = 0; request < static_cast<int>(context.size()); ++request) {
    const int pages = detail::pages_for(context[static_cast<std::size_t>(request)], cut.page_size);
    const int parts = std::clamp(splits, 1, std::max(pages, 1));
    for (int line = 0; line < lines; ++line) {
      const std::size_t first = plan.items.size();
      for (int i = 0; i < parts; ++i) {
        const auto begin = static_cast<int>(std::int64_t{pages} * i / parts);
        const auto end = static_cast<int>(std::int64_t{pages} * (i + 1) / parts);
        plan.items.push_back({request, line * rows * cut.kv_heads / cut.heads, line * rows, rows,
                              begin, end - begin, 0, 1, -1});
        plan.first_item.push_back(static_cast<int>(plan.items.size()));
      }
      detail::number_splits(plan, first);
    }
  }
  return plan;
}

}  // namespace tilestep::decode::paged
