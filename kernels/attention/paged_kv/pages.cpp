#include "kernels/attention/paged_kv/pages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/simt/error.hpp"

namespace tilestep::paged_kv {

PagePool::PagePool(int pages) {
  if (pages < 0) throw Error(fmt::format("a pool of {} pages: there must be 0 or more", pages));
  holders_.assign(static_cast<std::size_t>(pages), 0);
  // The stack's top is page 0, so that a fresh pool fills from the left.
  for (int page = pages - 1; page >= 0; --page) free_.push_back(page);
}

std::optional<int> PagePool::take() {
  if (free_.empty()) return std::nullopt;
  const int page = free_.back();
  free_.pop_back();
  holders_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void PagePool::share(int page) {
  if (holders(page) == 0) throw Error(fmt::format("page {} is free and cannot be shared", page));
  ++holders_[static_cast<std::size_t>(page)];
}

void PagePool::give_back(int page) {
  if (holders(page) == 0) throw Error(fmt::format("page {} is free and is not held", page));
  if (--holders_[static_cast<std::size_t>(page)] == 0) free_.push_back(page);
}

std::string PagePool::broken() const {
  std::vector<bool> seen(holders_.size());
  for (const int page : free_) {
    if (page < 0 || page >= pages()) return fmt::format("page {} is not of the pool", page);
    const auto i = static_cast<std::size_t>(page);
    if (seen[i]) return fmt::format("page {} is free twice", page);
    if (holders_[i] != 0) return fmt::format("page {} is free and held", page);
    seen[i] = true;
  }
  const auto held =
      std::count_if(holders_.begin(), holders_.end(), [](int holders) { return holders > 0; });
  if (held + free_pages() != pages()) {
    return fmt::format("{} pages are held and {} free, of {}", held, free_pages(), pages());
  }
  return {};
}

BlockTables::BlockTables(int pages, int page_size) : page_size_(page_size), pool_(pages) {
  if (page_size < 1) throw Error(fmt::format("a page of {} tokens: 1 or more", page_size));
}

bool BlockTables::has(int request) const {
  return request >= 0 && request < static_cast<int>(tables_.size()) &&
         tables_[static_cast<std::size_t>(request)].has_value();
}

const BlockTable& BlockTables::table(int request) const {
  if (!has(request)) throw Error(fmt::format("there is no request {}", request));
  return *tables_[static_cast<std::size_t>(request)];
}

std::optional<Admitted> BlockTables::admit(int tokens) {
  if (tokens < 0) throw Error(fmt::format("a request of {} tokens: 0 or more", tokens));
  if (pages_for(tokens) > pool_.free_pages()) return std::nullopt;
  BlockTable table{tokens, {}};
  while (static_cast<int>(table.pages.size()) < pages_for(tokens)) {
    table.pages.push_back(*pool_.take());
  }
  tables_.emplace_back(std::move(table));
  Admitted admitted;
  admitted.request = static_cast<int>(tables_.size()) - 1;
  return admitted;
}

std::optional<Admitted> BlockTables::admit_after(int of, int shared, int tokens) {
  const BlockTable& other = table(of);
  if (shared < 0 || shared > other.tokens || shared > tokens) {
    throw Error(fmt::format("request {} has {} tokens, and {} of {} are to be shared", of,
                            other.tokens, shared, tokens));
  }
  // A page in which the prefix ends is shared as it is while nothing of the request's own follows in it.
  const bool ends_inside = shared % page_size_ != 0;
  const int whole = shared / page_size_ + (ends_inside && tokens == shared ? 1 : 0);
  if (pages_for(tokens) - whole > pool_.free_pages()) return std::nullopt;
  Admitted admitted;
  BlockTable table{tokens, {}};
  for (int i = 0; i < whole; ++i) {
    table.pages.push_back(other.pages[static_cast<std::size_t>(i)]);
    pool_.share(table.pages.back());
  }
  admitted.shared_pages = whole;
  if (ends_inside && tokens > shared) {
    admitted.copied_from = other.pages[static_cast<std::size_t>(whole)];
    admitted.copied_tokens = shared % page_size_;
  }
  while (static_cast<int>(table.pages.size()) < pages_for(tokens)) {
    table.pages.push_back(*pool_.take());
  }
  if (admitted.copied_from >= 0) {
    admitted.copied_to = table.pages[static_cast<std::size_t>(whole)];
  }
  tables_.emplace_back(std::move(table));
  admitted.request = static_cast<int>(tables_.size()) - 1;
  return admitted;
}

std::optional<Appended> BlockTables::append(int request) {
  table(request);
  BlockTable& mine = *tables_[static_cast<std::size_t>(request)];
  Appended appended;
  appended.slot = mine.tokens % page_size_;
  if (appended.slot == 0) {
    const auto page = pool_.take();
    if (!page) return std::nullopt;
    mine.pages.push_back(*page);
    appended.taken = true;
  } else if (const int last = mine.pages.back(); pool_.holders(last) > 1) {
    const auto page = pool_.take();
    if (!page) return std::nullopt;
    appended.taken = true;
    appended.copied_from = last;
    appended.copied_tokens = appended.slot;
    pool_.give_back(last);
    mine.pages.back() = *page;
  }
  appended.page = mine.pages.back();
  ++mine.tokens;
  return appended;
}

void BlockTables::finish(int request) {
  for (const int page : table(request).pages) pool_.give_back(page);
  tables_[static_cast<std::size_t>(request)].reset();
}

std::vector<int> BlockTables::requests() const {
  std::vector<int> all;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i]) all.push_back(static_cast<int>(i));
  }
  return all;
}

std::string BlockTables::broken() const {
  if (std::string pool = pool_.broken(); !pool.empty()) return pool;
  std::vector<int> named(static_cast<std::size_t>(pool_.pages()));
  std::vector<int> last(named.size(), -1);
  for (const int request : requests()) {
    const BlockTable& one = table(request);
    if (static_cast<int>(one.pages.size()) != pages_for(one.tokens)) {
      return fmt::format("request {} has {} pages for {} tokens", request, one.pages.size(),
                         one.tokens);
    }
    for (const int page : one.pages) {
      if (page < 0 || page >= pool_.pages()) {
        return fmt::format("request {} names page {}, which is not of the pool", request, page);
      }
      const auto i = static_cast<std::size_t>(page);
      if (last[i] == request) return fmt::format("request {} names page {} twice", request, page);
      last[i] = request;
      ++named[i];
    }
  }
  for (int page = 0; page < pool_.pages(); ++page) {
    const int tables = named[static_cast<std::size_t>(page)];
    if (tables != pool_.holders(page)) {
      return fmt::format("page {} is in {} tables and has {} holders", page, tables,
                         pool_.holders(page));
    }
  }
  return {};
}

}  // namespace tilestep::paged_kv
