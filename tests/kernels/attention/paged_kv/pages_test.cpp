// The page allocator: what it promises in single cases, and over many operations what no order of them may break.

#include "kernels/attention/paged_kv/pages.hpp"

#include <map>
#include <random>

#include "tests/catch.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::paged_kv;
using tests::contains;
using tests::error_of;

namespace {

/// The cache as memory: what was written to which slot, as the tables say where. A request's tokens are numbers that
/// no other request writes, but for those of a shared prefix.
class Memory {
 public:
  explicit Memory(const BlockTables& tables)
      : tables_(tables),
        slots_(static_cast<std::size_t>(tables.pool().pages() * tables.page_size()), -1) {}

  void admitted(const Admitted& admitted, const std::vector<int>& prefix) {
    std::vector<int>& tokens = wanted_[admitted.request];
    tokens = prefix;
    copy(admitted.copied_from, admitted.copied_to, admitted.copied_tokens);
    const int in_place = admitted.shared_pages * tables_.page_size() + admitted.copied_tokens;
    const int all = tables_.table(admitted.request).tokens;
    tokens.resize(static_cast<std::size_t>(all));
    for (int t = static_cast<int>(prefix.size()); t < all; ++t) {
      tokens[static_cast<std::size_t>(t)] = next_++;
    }
    for (int t = in_place; t < all; ++t)
      slot_of(admitted.request, t) = tokens[static_cast<std::size_t>(t)];
  }
  void appended(int request, const Appended& appended) {
    copy(appended.copied_from, appended.page, appended.copied_tokens);
    wanted_[request].push_back(next_);
    slots_[static_cast<std::size_t>(appended.page * tables_.page_size() + appended.slot)] = next_++;
  }
  void finished(int request) { wanted_.erase(request); }
  std::vector<int> prefix(int request, int tokens) const {
    const std::vector<int>& all = wanted_.at(request);
    return {all.begin(), all.begin() + tokens};
  }
  /// Tokens of the request that are not where its table says.
  int wrong(int request) {
    int count = 0;
    const std::vector<int>& tokens = wanted_.at(request);
    for (int t = 0; t < static_cast<int>(tokens.size()); ++t) {
      count += slot_of(request, t) != tokens[static_cast<std::size_t>(t)] ? 1 : 0;
    }
    return count;
  }

 private:
  int& slot_of(int request, int token) {
    const int size = tables_.page_size();
    const int page = tables_.table(request).pages[static_cast<std::size_t>(token / size)];
    return slots_[static_cast<std::size_t>(page * size + token % size)];
  }
  void copy(int from, int to, int tokens) {
    if (from < 0) return;
    for (int t = 0; t < tokens; ++t) {
      slots_[static_cast<std::size_t>(to * tables_.page_size() + t)] =
          slots_[static_cast<std::size_t>(from * tables_.page_size() + t)];
    }
  }

  const BlockTables& tables_;
  std::vector<int> slots_;
  std::map<int, std::vector<int>> wanted_;
  int next_ = 0;
};

/// What a random walk came across.
struct Walked {
  int refused = 0, copied = 0, shared = 0, most_held = 0;
};

Walked walk(int pages, int page_size, int operations, unsigned seed) {
  BlockTables tables(pages, page_size);
  Memory memory(tables);
  std::mt19937 random(seed);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  Walked walked;
  for (int i = 0; i < operations; ++i) {
    const std::vector<int> live = tables.requests();
    const int kind = below(16);
    int touched = -1;
    if (live.empty() || kind < 2) {
      const auto admitted = tables.admit(below(4 * page_size + 1));
      walked.refused += admitted ? 0 : 1;
      if (admitted) memory.admitted(*admitted, {}), touched = admitted->request;
    } else if (kind < 4) {
      const int of = live[static_cast<std::size_t>(below(static_cast<int>(live.size())))];
      const int shared = below(tables.table(of).tokens + 1);
      const std::vector<int> prefix = memory.prefix(of, shared);
      const auto admitted = tables.admit_after(of, shared, shared + below(2 * page_size));
      walked.refused += admitted ? 0 : 1;
      if (admitted) {
        memory.admitted(*admitted, prefix), touched = admitted->request;
        walked.shared += admitted->shared_pages;
        walked.copied += admitted->copied_from >= 0 ? 1 : 0;
      }
    } else if (kind < 5) {
      touched = live[static_cast<std::size_t>(below(static_cast<int>(live.size())))];
      tables.finish(touched), memory.finished(touched);
      touched = -1;
    } else {
      const int request = live[static_cast<std::size_t>(below(static_cast<int>(live.size())))];
      const auto appended = tables.append(request);
      if (appended) {
        memory.appended(request, *appended), touched = request;
        walked.copied += appended->copied_from >= 0 ? 1 : 0;
      } else {
        // Full: the engine preempts somebody, the last that came.
        ++walked.refused;
        tables.finish(live.back()), memory.finished(live.back());
      }
    }
    if (const std::string broken = tables.broken(); !broken.empty()) {
      FAIL("operation " << i << ": " << broken);
    }
    if (touched >= 0 && memory.wrong(touched) != 0) FAIL("operation " << i << ": lost tokens");
    // All tables now and then: a token of one may have been overwritten by another.
    for (const int request : i % 16 == 0 ? tables.requests() : std::vector<int>()) {
      if (memory.wrong(request) != 0) FAIL("operation " << i << ": request " << request);
    }
    walked.most_held = std::max(walked.most_held, pages - tables.pool().free_pages());
  }
  for (const int request : tables.requests()) tables.finish(request);
  CHECK(tables.pool().free_pages() == pages);
  return walked;
}

}  // namespace

TEST_CASE("many operations conserve the pages, and no request loses a token", "[paged_kv]") {
  const int operations = tests::all_is_wanted() ? 100000 : 8000;
  for (const auto& [page_size, pages] : {std::pair(1, 64), std::pair(4, 40), std::pair(16, 24)}) {
    const Walked walked = walk(pages, page_size, operations, 7);
    CHECK(walked.most_held == pages);
    CHECK(walked.refused > 100);
    CHECK(walked.shared > 100);
    if (page_size > 1) CHECK(walked.copied > 100);
  }
}

TEST_CASE("A request has the pages that its tokens need, and gives them back", "[paged_kv]") {
  BlockTables tables(6, 16);
  CHECK(tables.admit(0)->request == 0);
  const int request = tables.admit(17)->request;
  CHECK(tables.table(request).pages == std::vector<int>{0, 1});
  for (int t = 17; t < 32; ++t) CHECK_FALSE(tables.append(request)->taken);
  CHECK(tables.append(request)->taken);
  CHECK(tables.pool().free_pages() == 3);
  CHECK_FALSE(tables.admit(49));  // four pages
  CHECK(tables.pool().free_pages() == 3);
  CHECK(tables.admit(48));
  CHECK(tables.append(0) == std::nullopt);  // full
  tables.finish(request);
  CHECK_FALSE(tables.has(request));
  CHECK(tables.append(0)->page == 2);  // the page that was given back last
  CHECK(tables.broken().empty());
}

TEST_CASE("A prefix is stored once until one of its users writes", "[paged_kv]") {
  BlockTables tables(8, 4);
  const int first = tables.admit(6)->request;
  const auto second = tables.admit_after(first, 6, 6);
  CHECK(second->shared_pages == 2);
  CHECK(tables.pool().holders(1) == 2);
  const auto written = tables.append(first);
  CHECK(written->copied_from == 1);
  CHECK(written->copied_tokens == 2);
  CHECK(tables.pool().holders(1) == 1);
  CHECK(tables.append(second->request)->copied_from == -1);  // it has page 1 to itself now
  // With a token of its own in the page, it is copied at once.
  const auto third = tables.admit_after(first, 6, 7);
  CHECK(third->shared_pages == 1);
  CHECK(third->copied_tokens == 2);
  tables.finish(first);
  CHECK(tables.pool().holders(0) == 2);
  CHECK(tables.broken().empty());
}

TEST_CASE("The allocator refuses what cannot be", "[paged_kv]") {
  CHECK(contains(error_of([] { PagePool(-1); }), "0 or more"));
  CHECK(contains(error_of([] { BlockTables(4, 0); }), "1 or more"));
  BlockTables tables(4, 4);
  CHECK(contains(error_of([&] { tables.finish(0); }), "no request 0"));
  const int request = tables.admit(3)->request;
  CHECK(contains(error_of([&] { tables.admit_after(request, 4, 8); }), "has 3 tokens"));
  CHECK(contains(error_of([&] { tables.admit_after(request, 3, 2); }), "3 of 2"));
  PagePool pool(1);
  CHECK(contains(error_of([&] { pool.give_back(0); }), "is free"));
  CHECK(contains(error_of([&] { pool.share(0); }), "is free"));
  CHECK(pool.take() == 0);
  CHECK(pool.take() == std::nullopt);
  CHECK(pool.broken().empty());
}
