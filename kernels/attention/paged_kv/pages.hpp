#pragma once

#include <optional>
#include <string>
#include <vector>

/// \file
/// The owners of the KV cache's pages. A pool of pages of equal size; a request's tokens are in the pages of its
/// block table, in any order of page numbers. Kwon et al., "Efficient Memory Management for Large Language Model
/// Serving with PagedAttention", 2023 (arXiv:2309.06180).
namespace tilestep::paged_kv {

/// Pages, numbered from 0, each free or held by one or more requests.
class PagePool {
 public:
  /// Throws Error for a negative number.
  explicit PagePool(int pages);

  int pages() const { return static_cast<int>(holders_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }
  /// The number of block tables that name the page; 0: it is free.
  int holders(int page) const { return holders_.at(static_cast<std::size_t>(page)); }
  /// The page that was released last, now held once; nothing: none is free.
  std::optional<int> take();
  /// One more table names the page. Throws Error for a free one.
  void share(int page);
  /// One table fewer names it; the last one frees it. Throws Error for a free one.
  void give_back(int page);
  /// The pool's inconsistency, in a sentence; empty: none.
  std::string broken() const;

 private:
  std::vector<int> holders_;  ///< of each page
  std::vector<int> free_;     ///< a stack
};

/// A request's part of the cache.
struct BlockTable {
  int tokens = 0;
  std::vector<int> pages;  ///< ⌈tokens / page size⌉
};

/// An append's effect on the pages.
struct Appended {
  int page = 0, slot = 0;  ///< of the token
  bool taken = false;      ///< the page is new to the request
  int copied_from = -1;    ///< the tokens before it in the page were another page's: copy on write
  int copied_tokens = 0;   ///< their number
};

/// An admission's effect: pages that were shared, and the part of one that was copied.
struct Admitted {
  int request = 0;
  int shared_pages = 0;
  int copied_from = -1, copied_to = -1;  ///< −1: no page was copied
  int copied_tokens = 0;
};

/// The block tables of all requests over one pool. A request is a number that is never used again.
///
/// A prefix that two requests share is stored once: its full pages are in both tables. The page in which it ends is
/// shared too, until one of them writes a token of its own there; it is then copied.
class BlockTables {
 public:
  /// Throws Error for a page without tokens.
  BlockTables(int pages, int page_size);

  int page_size() const { return page_size_; }
  const PagePool& pool() const { return pool_; }
  /// Pages that hold a number of tokens.
  int pages_for(int tokens) const { return (tokens + page_size_ - 1) / page_size_; }

  /// A new request of `tokens` tokens, numbered from 0. Nothing, without any change, where the pool has too few pages.
  std::optional<Admitted> admit(int tokens);
  /// The same; its first `shared` tokens are those of the request `of`. Throws Error if `of` is unknown or has
  /// fewer, or `tokens` are fewer.
  std::optional<Admitted> admit_after(int of, int shared, int tokens);
  /// One more token. Nothing, without any change, where that needs a page and none is free. Throws Error for an
  /// unknown request.
  std::optional<Appended> append(int request);
  /// The request leaves; its pages that no other holds are free again. Throws Error for an unknown one.
  void finish(int request);

  bool has(int request) const;
  /// Throws Error for an unknown request.
  const BlockTable& table(int request) const;
  /// The present requests, in the order of their admission.
  std::vector<int> requests() const;
  /// The mismatch of tables and pool, in a sentence; empty: none. Every page is free or held by as many tables as the
  /// pool counts, no table names a page twice, and each has exactly the pages that its tokens need.
  std::string broken() const;

 private:
  int page_size_;
  PagePool pool_;
  std::vector<std::optional<BlockTable>> tables_;  ///< by request; nothing: it left
};

}  // namespace tilestep::paged_kv
