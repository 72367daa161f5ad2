#pragma once

/// \file
/// How ragged requests become work items that keep all blocks busy until the end: the pages of all requests and K/V
/// heads form one line, which is cut into pieces of equal length, one per block, wherever the cuts fall (the idea of
/// stream-K: Osama et al., "Stream-K", 2023, arXiv:2301.03598). Pages that several requests share can appear in the
/// line once for all of them (Juravsky et al., "Hydragen", 2024, arXiv:2402.05099).

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/kv_cache/paged/problem.hpp"

namespace tilestep::kv_cache::paged {

struct WorkPlan {
  std::vector<WorkItem> items;
  std::vector<int> first_item;  ///< [blocks + 1]
  int slots = 0;
  std::vector<int> parts;  ///< [slots]: at a row's first slot, its number of parts
};

struct Cut {
  int heads, kv_heads, page_size;
  bool repeat_kv = false;  ///< each query head has its own items

  /// Of a request: what shares no bytes.
  int lines() const { return repeat_kv ? heads : kv_heads; }
  int rows() const { return heads / lines(); }
};

/// Successive requests whose tables begin with the same `pages` pages, all of them full.
struct Sharing {
  int request, requests;
  int pages;
};

constexpr int pages_for(int tokens, int page_size) {
  return (tokens + page_size - 1) / page_size;
}

/// Requests that share pages with the previous one, in groups of at most `most`: an item of shared pages has all their
/// queries. Groups of one are omitted. `table`: [requests × pitch].
inline std::vector<Sharing> sharing_of(std::span<const int> table, int pitch,
                                       std::span<const int> context, int page_size, int most) {
  std::vector<Sharing> groups;
  const auto requests = static_cast<int>(context.size());
  const auto common = [&](int a, int b) {
    const auto at = [&](int request, int page) {
      return table[static_cast<std::size_t>(request) * static_cast<std::size_t>(pitch) +
                   static_cast<std::size_t>(page)];
    };
    const int full =
        std::min(context[static_cast<std::size_t>(a)], context[static_cast<std::size_t>(b)]) /
        page_size;
    int pages = 0;
    while (pages < full && at(a, pages) == at(b, pages)) ++pages;
    return pages;
  };
  for (int first = 0, next; first < requests; first = next) {
    Sharing group{first, 1, 0};
    for (next = first + 1; next < requests && next - first < most; ++next) {
      const int pages = common(first, next);
      if (pages == 0) break;
      group.pages = group.requests == 1 ? pages : std::min(group.pages, pages);
      ++group.requests;
    }
    if (group.requests > 1) groups.push_back(group);
  }
  return groups;
}

namespace detail {

/// Pages not yet divided by a cut, for the query heads of one line of some requests.
struct Stretch {
  int request, requests, line;
  int first_page, pages;
};

/// The requests' pages in order; shared ones before those of each request alone. `shared` and `own`: which of them.
inline std::vector<Stretch> stretches_of(const Cut& cut, std::span<const int> context,
                                         std::span<const Sharing> sharing, bool shared, bool own) {
  std::vector<Stretch> stretches;
  auto group = sharing.begin();
  const auto requests = static_cast<int>(context.size());
  for (int first = 0; first < requests;) {
    const bool shares = group != sharing.end() && group->request == first;
    const Sharing now = shares ? *group++ : Sharing{first, 1, 0};
    for (int line = 0; shares && shared && line < cut.lines(); ++line) {
      stretches.push_back({first, now.requests, line, 0, now.pages});
    }
    first += now.requests;
    for (int request = now.request; own && request < first; ++request) {
      const int pages = pages_for(context[static_cast<std::size_t>(request)], cut.page_size);
      for (int line = 0; line < cut.lines(); ++line) {
        stretches.push_back({request, 1, line, now.pages, pages - now.pages});
      }
    }
  }
  return stretches;
}

inline WorkItem item_of(const Cut& cut, const Stretch& of, int first_page, int pages) {
  WorkItem item{};
  item.request = of.request;
  item.requests = of.requests;
  item.kv_head = of.line * cut.rows() * cut.kv_heads / cut.heads;
  item.first_head = of.line * cut.rows();
  item.heads = cut.rows();
  item.first_page = of.first_page + first_page;
  item.pages = pages;
  return item;
}

/// Equal pieces, one per block: their pages differ by at most one.
inline WorkPlan equal_pieces(const Cut& cut, std::span<const Stretch> stretches, int blocks) {
  assert(blocks > 0);
  std::int64_t all = 0;
  for (const Stretch& one : stretches) all += one.pages;
  const auto end_of = [&](int block) { return all * (block + 1) / blocks; };
  WorkPlan plan;
  plan.first_item.push_back(0);
  std::int64_t at = 0;
  int block = 0;
  for (const Stretch& one : stretches) {
    int page = 0;
    do {
      while (block + 1 < blocks && at >= end_of(block)) {
        plan.first_item.push_back(static_cast<int>(plan.items.size()));
        ++block;
      }
      const auto here =
          static_cast<int>(std::min<std::int64_t>(one.pages - page, end_of(block) - at));
      plan.items.push_back(item_of(cut, one, page, here));
      page += here;
      at += here;
    } while (page < one.pages);
  }
  while (static_cast<int>(plan.first_item.size()) <= blocks) {
    plan.first_item.push_back(static_cast<int>(plan.items.size()));
  }
  return plan;
}

/// Each stretch in `splits` parts, or as many as it has pages, one per block.
inline WorkPlan even_parts(const Cut& cut, std::span<const Stretch> stretches, int splits) {
  assert(splits > 0);
  WorkPlan plan;
  plan.first_item.push_back(0);
  for (const Stretch& one : stretches) {
    const int parts = std::clamp(splits, 1, std::max(one.pages, 1));
    for (int i = 0; i < parts; ++i) {
      const auto begin = static_cast<int>(std::int64_t{one.pages} * i / parts);
      const auto end = static_cast<int>(std::int64_t{one.pages} * (i + 1) / parts);
      plan.items.push_back(item_of(cut, one, begin, end - begin));
      plan.first_item.push_back(static_cast<int>(plan.items.size()));
    }
  }
  return plan;
}

/// Numbers each item among the parts of its rows, and assigns slots to rows of several parts: those of requests that
/// share pages equally far apart. All items of a row are in `plans`, in order; the slots are those of all of them.
inline void number_parts(const Cut& cut, int requests, std::span<WorkPlan* const> plans) {
  const auto count = static_cast<std::size_t>(requests) * static_cast<std::size_t>(cut.lines());
  std::vector<int> parts(count, 0), next(count, 0), first(count, -1), stride(count, 0);
  const auto line_of = [&](const WorkItem& item, int request) {
    return static_cast<std::size_t>(request) * static_cast<std::size_t>(cut.lines()) +
           static_cast<std::size_t>(item.first_head / item.heads);
  };
  const auto for_all = [&](auto visit) {
    for (WorkPlan* plan : plans) {
      for (WorkItem& item : plan->items) visit(item);
    }
  };
  for_all([&](const WorkItem& item) {
    for (int j = 0; j < item.requests; ++j) ++parts[line_of(item, item.request + j)];
  });
  std::vector<int> parts_of_slot;
  for_all([&](WorkItem& item) {
    const std::size_t line = line_of(item, item.request);
    if (first[line] < 0 && parts[line] > 1) {
      int most = 0;
      for (int j = 0; j < item.requests; ++j) {
        most = std::max(most, parts[line_of(item, item.request + j)]);
      }
      for (int j = 0; j < item.requests; ++j) {
        const std::size_t of = line_of(item, item.request + j);
        first[of] = static_cast<int>(parts_of_slot.size());
        stride[of] = most;
        parts_of_slot.resize(parts_of_slot.size() + static_cast<std::size_t>(most), 0);
        parts_of_slot[static_cast<std::size_t>(first[of])] = parts[of];
      }
    }
    item.split = next[line];
    item.splits = parts[line];
    item.first_slot = first[line];
    item.slot_stride = stride[line];
    for (int j = 0; j < item.requests; ++j) ++next[line_of(item, item.request + j)];
  });
  for (WorkPlan* plan : plans) {
    plan->slots = static_cast<int>(parts_of_slot.size());
    plan->parts = parts_of_slot;
  }
}

inline WorkPlan numbered(WorkPlan plan, const Cut& cut, std::size_t requests) {
  WorkPlan* const only[] = {&plan};
  number_parts(cut, static_cast<int>(requests), only);
  return plan;
}

}  // namespace detail

/// Items of `blocks` blocks, whose pages differ by at most one.
inline WorkPlan balanced_plan(const Cut& cut, std::span<const int> context, int blocks,
                              std::span<const Sharing> sharing = {}) {
  assert(cut.heads % cut.kv_heads == 0);
  const auto stretches = detail::stretches_of(cut, context, sharing, true, true);
  return detail::numbered(detail::equal_pieces(cut, stretches, blocks), cut, context.size());
}

/// Each request and K/V head in `splits` parts, or as many as it has pages, one per block; shared pages are split
/// separately from a request's own.
inline WorkPlan even_plan(const Cut& cut, std::span<const int> context, int splits,
                          std::span<const Sharing> sharing = {}) {
  assert(cut.heads % cut.kv_heads == 0);
  const auto stretches = detail::stretches_of(cut, context, sharing, true, true);
  return detail::numbered(detail::even_parts(cut, stretches, splits), cut, context.size());
}

/// Two launches over the same slots, each in equal pieces: shared pages with the queries of many requests, then each
/// request's own. An item of the first kind has up to 64 rows of queries, of the second a group's: each launch uses the
/// kernel that suits it.
struct TwoPlans {
  WorkPlan shared, own;
};
inline TwoPlans balanced_plans(const Cut& cut, std::span<const int> context, int shared_blocks,
                               int own_blocks, std::span<const Sharing> sharing) {
  assert(cut.heads % cut.kv_heads == 0);
  TwoPlans plans;
  plans.shared = detail::equal_pieces(cut, detail::stretches_of(cut, context, sharing, true, false),
                                      shared_blocks);
  plans.own = detail::equal_pieces(cut, detail::stretches_of(cut, context, sharing, false, true),
                                   own_blocks);
  WorkPlan* const both[] = {&plans.shared, &plans.own};
  detail::number_parts(cut, static_cast<int>(context.size()), both);
  return plans;
}

}  // namespace tilestep::kv_cache::paged
