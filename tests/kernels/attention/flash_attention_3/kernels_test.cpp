// FlashAttention 3's three kernels against double, over masks and lengths that no tile divides, whatever the order
// of threads and whenever the hardware beside them does its work; each wait and release that can be left out; and
// what an explained kernel notes.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/flash_attention_3/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention_3;

namespace {

constexpr Rung kRungs[] = {Rung::tma, Rung::ping_pong, Rung::pipelined};
constexpr int kLengths[] = {1, 17, 63, 64, 65, 127, 129, 200, 257};

Problem problem_of(Rung rung, int head_dim, Mask mask, int length, Heads heads = {1, 1},
                   int window = 40) {
  return {{{.mask = mask, .length = length, .window = std::min(window, length)},
           heads.heads,
           heads.kv_heads,
           head_dim},
          rung};
}

}  // namespace

TEST_CASE(
    "flash-3: the tiles of keys that are met, and those that are not masked, are the mask's own",
    "[flash_attention_3]") {
  for (const Mask mask : kMasks) {
    for (const int length : kLengths) {
      for (const int window : {0, 1, 40, 64, 257}) {
        const MaskRule rule{.mask = mask, .length = length, .window = std::min(window, length)};
        for (const int width : {16, 64, 128}) {
          for (int q0 = 0; q0 < length; q0 += 64) {
            const int q1 = std::min(q0 + 63, length - 1);
            const flash_attention_3::KeyTiles seen = tiles_seen(rule, q0, q1, width);
            const flash_attention_3::KeyTiles full = tiles_full(rule, q0, q1, width);
            bool same = seen.first <= seen.last && seen.first >= 0;
            for (int tile = 0; tile * width < length; ++tile) {
              const int end = tile * width + width;
              const TileKind kind =
                  rule.kind(q0, q1, tile * width, std::min(end, length) - 1, NoDocuments{});
              const bool is_seen = tile >= seen.first && tile <= seen.last;
              const bool is_full = tile >= full.first && tile <= full.last;
              same = same && (kind == TileKind::skipped || is_seen);
              same = same && is_full == (kind == TileKind::full && end <= length);
            }
            CHECK(same);
          }
        }
      }
    }
  }
}

TEST_CASE("flash-3: every tile of queries comes once, and heavy ones are shared out",
          "[flash_attention_3]") {
  for (const bool heavy_first : {false, true}) {
    const TileOrder order{13, 6, heavy_first};
    for (const int blocks : {1, 5, 7, 78}) {
      std::vector<int> seen(static_cast<std::size_t>(order.count()), 0);
      std::vector<int> load(static_cast<std::size_t>(blocks), 0);
      for (int block = 0; block < blocks; ++block) {
        for (int turn = 0; turn * blocks < order.count(); ++turn) {
          const int number = order.number_of(block, turn, blocks);
          if (number >= order.count()) continue;
          const QueryTile place = order.place(number);
          ++seen[static_cast<std::size_t>(place.head * order.tiles + place.tile)];
          load[static_cast<std::size_t>(block)] += place.tile + 1;  // tiles of keys, causal
        }
      }
      CHECK(seen == std::vector<int>(seen.size(), 1));
      if (!heavy_first || blocks == 78) continue;
      const auto [least, most] = std::minmax_element(load.begin(), load.end());
      CHECK(*most - *least <= 1);  // always forwards it would be 11 and 12
    }
  }
}

TEST_CASE("flash-3: the timed kernels equal double", "[flash_attention_3]") {
  const auto device = device_of();
  tests::Part part("flash-3 timed", 3);
  int turn = 0;
  for (const Rung rung : kRungs) {
    for (const int length : kLengths) {
      for (int i = 0; i < (length < 200 ? 2 : 1); ++i, ++turn) {
        if (part.skips()) continue;
        const Heads heads = kHeads[length < 128 ? turn % 4 : turn % 2];
        const int window = std::array{40, 0, 100, 1}[static_cast<std::size_t>(turn / 3 % 4)];
        const Problem p =
            problem_of(rung, turn / 2 % 2 == 0 ? 128 : 64, kMasks[turn % 3], length, heads, window);
        INFO("rung " << static_cast<int>(p.rung) << ", " << said_of(p));
        const Given in(p);
        CHECK(timed_outcome(*device, p, in).compared(exact_answer(in, true)) == "");
      }
    }
  }
}

TEST_CASE("flash-3: the explained kernels equal double", "[flash_attention_3]") {
  const auto device = device_of();
  int turn = 0;
  for (const Mask mask : kMasks) {
    for (const int length : {1, 65, 129, 200}) {
      for (int i = 0; i < 2; ++i, ++turn) {
        const Heads heads = kHeads[length < 128 ? turn % 3 : 0];
        const Problem p =
            problem_of(kRungs[turn % 3], turn % 2 == 0 ? 64 : 128, mask, length, heads);
        INFO("rung " << static_cast<int>(p.rung) << ", " << said_of(p));
        const Given in(p);
        const Watch watch{.keys = turn / 3 % 2 == 1 ? 128 : 64};
        CHECK(explained_outcome(*device, p, in, watch).compared(exact_answer(in, false)) == "");
      }
    }
  }
}

TEST_CASE("flash-3: the order of threads and of what the hardware does changes nothing",
          "[flash_attention_3]") {
  tests::Part part("flash-3 in other orders", 3);
  for (const Rung rung : kRungs) {
    for (const int head_dim : {64, 128}) {
      const Problem p = problem_of(rung, head_dim, Mask::causal, 200);
      const Given in(p);
      const Reference exact = exact_answer(in, true);
      for (const Order& order : kOrders) {
        if (part.skips()) continue;
        INFO("rung " << static_cast<int>(p.rung) << ", " << said_of(p) << ", completion "
                     << static_cast<int>(order.completion));
        CHECK(timed_outcome(*device_of(order), p, in).compared(exact) == "");
      }
    }
  }
  // Several blocks go through the tiles, each with a part of them; on one processor after each other.
  Problem p = problem_of(Rung::pipelined, 64, Mask::causal, 257, {2, 2});
  p.blocks = 3;
  const Given in(p);
  const Attended out = timed_outcome(*device_of(), p, in);
  CHECK(out.compared(exact_answer(in, true)) == "");
  CHECK(timed_outcome(*device_of(kOrders[0], 2), p, in).o == out.o);
}

TEST_CASE("flash-3: what it does not take is refused with what it does", "[flash_attention_3]") {
  const auto device = device_of();
  check_refusals(problem_of(Rung::tma, 64, Mask::causal, 4),
                 [&](const Problem& p) { timed_outcome(*device, p, Given(p)); });
}

// ---- faults ---------------------------------------------------------------------------------------

namespace {

/// What the emulator says of a fault, in the first order in which it says something.
std::string named(const Problem& p, const Given& in, Fault fault) {
  for (const Order& order : kOrders) {
    try {
      explained_outcome(*device_of(order), p, in, {.fault = fault});
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "";
}

}  // namespace

TEST_CASE("flash-3: each wait, fence and release that is left out is named",
          "[flash_attention_3]") {
  struct Case {
    Fault fault;
    const char* says;
  };
  constexpr Case kCases[] = {{Fault::no_publish, "which TMA was not told of"},
                             {Fault::no_meeting, "__syncthreads() is missing"},
                             {Fault::skip_query_wait, "multiplies Q"},
                             {Fault::skip_key_wait, "multiplies K"},
                             {Fault::skip_value_wait, "multiplies V"},
                             {Fault::skip_empty_query, "Q"},
                             {Fault::skip_empty_key, "K"},
                             {Fault::skip_empty_value, "V"},
                             {Fault::early_query_release, "Q"},
                             {Fault::early_key_release, "starts a copy to K"},
                             {Fault::early_value_release, "starts a copy to V"},
                             {Fault::no_key_release, "empty K"},
                             {Fault::no_score_wait, "wgmma"},
                             {Fault::no_output_wait, "wgmma"},
                             {Fault::missing_fence, "publish_to_async_proxy"},
                             {Fault::no_store_wait, "store_wait"},
                             {Fault::no_store_meeting, "stores tile of O"},
                             {Fault::no_write_meeting, "tile of O"}};
  for (const Rung rung : kRungs) {
    // With flash-3 one block takes all tiles of queries, and so comes back to Q's tile and to O's.
    const Problem p = problem_of(rung, 64, Mask::none, 257, {2, 2});
    const Given in(p);
    CHECK(named(p, in, Fault::none) == "");
    tests::Part part("what flash-3 leaves out, rung " + std::to_string(static_cast<int>(rung)), 8);
    for (const auto& [fault, says] : kCases) {
      if (part.skips()) continue;
      const bool comes_back = fault == Fault::skip_empty_query ||
                              fault == Fault::early_query_release || fault == Fault::no_store_wait;
      // FP32 leaves in two rounds: its tile is written twice by every kernel.
      if (comes_back && rung != Rung::pipelined && fault != Fault::no_store_wait) continue;
      CAPTURE(static_cast<int>(rung), static_cast<int>(fault));
      const std::string said = named(p, in, fault);
      CHECK_THAT(said, Catch::Contains("flash_3: ") && Catch::Contains(says));
    }
  }
}

TEST_CASE("flash-3: a rescale left out and a mask that is one off change numbers",
          "[flash_attention_3]") {
  const auto device = device_of();
  for (const Rung rung : kRungs) {
    const Problem p = problem_of(rung, 64, Mask::causal, 200);
    const Given in(p);
    const Reference exact = exact_answer(in, false);
    for (const Fault fault : {Fault::skip_rescale, Fault::mask_off_by_one}) {
      CHECK(explained_outcome(*device, p, in, {.fault = fault}).compared(exact) != "");
    }
    // A tile that no mask cuts and no other comes after needs neither.
    const Problem one = problem_of(rung, 64, Mask::none, 64);
    const Given of_one(one);
    CHECK(explained_outcome(*device, one, of_one, {.fault = Fault::skip_rescale})
              .compared(exact_answer(of_one, false)) == "");
  }
}

// ---- what is noted --------------------------------------------------------------------------------

namespace {

/// That of each of the first `count` numbers every site of a chain comes after the one before it.
void check_chain(const Attended& out, const std::vector<int>& sites, int count) {
  bool in_order = true;
  for (int number = 0; number < count; ++number) {
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const long long now = out.clock(sites[i], number);
      in_order = in_order && now >= 0 && (i == 0 || now >= out.clock(sites[i - 1], number));
    }
  }
  CHECK(in_order);
}

}  // namespace

TEST_CASE("flash-3: clocks say what happens after what", "[flash_attention_3]") {
  const auto device = device_of();
  for (const Rung rung : kRungs) {
    CAPTURE(static_cast<int>(rung));
    const Problem p = problem_of(rung, 128, Mask::none, 257);
    const Given in(p);
    const Attended out = explained_outcome(*device, p, in);
    // A block has one tile of queries with five of keys; with flash-3 it has all three.
    const int tiles = rung == Rung::pipelined ? 15 : 5;
    for (int consumer = 0; consumer < 2; ++consumer) {
      check_chain(
          out,
          {site_of(What::waits_empty_k), site_of(What::copies_k), site_of(What::issues_s, consumer),
           site_of(What::commits_s, consumer), site_of(What::done_s, consumer),
           site_of(What::begins_softmax, consumer), site_of(What::ends_softmax, consumer),
           site_of(What::issues_o, consumer), site_of(What::commits_o, consumer),
           site_of(What::done_o, consumer), site_of(What::releases_v, consumer)},
          tiles);
      check_chain(out,
                  {site_of(What::copies_k), site_of(What::full_k), site_of(What::done_s, consumer),
                   site_of(What::releases_k, consumer)},
                  tiles);
      check_chain(out,
                  {site_of(What::waits_empty_v), site_of(What::copies_v), site_of(What::full_v),
                   site_of(What::done_o, consumer)},
                  tiles);
      check_chain(out,
                  {site_of(What::waits_empty_q), site_of(What::copies_q),
                   site_of(What::stores, consumer), site_of(What::stored, consumer)},
                  tiles / 5);
      CHECK(out.clock(site_of(What::copies_k), tiles) == -1);
      for (int i = 1; i < 5; ++i) {
        // S of a tile is under way with O += P V of the tile before, but where each is on its own.
        const bool together = out.clock(site_of(What::issues_s, consumer), i) <
                                  out.clock(site_of(What::done_o, consumer), i - 1) &&
                              out.clock(site_of(What::issues_o, consumer), i - 1) <
                                  out.clock(site_of(What::done_s, consumer), i);
        CHECK(together == (rung != Rung::tma));
        // And O is waited for after the softmax, where they overlap.
        const bool under_softmax = out.clock(site_of(What::done_o, consumer), i - 1) >
                                   out.clock(site_of(What::ends_softmax, consumer), i);
        CHECK(under_softmax == (rung == Rung::pipelined));
      }
    }
    if (rung == Rung::tma) {
      CHECK(out.clock(site_of(What::takes_turn), 0) == -1);
      continue;
    }
    // Turns: the first consumer's, the second's, the first's …
    for (int turn = 0; turn < tiles / 5 * 6; ++turn) {
      CHECK(out.clock(site_of(What::takes_turn), turn) <
            out.clock(site_of(What::passes_turn), turn));
      CHECK(out.clock(site_of(What::passes_turn), turn) <
            out.clock(site_of(What::takes_turn, 1), turn));
      if (turn == 0) continue;
      CHECK(out.clock(site_of(What::passes_turn, 1), turn - 1) <
            out.clock(site_of(What::takes_turn), turn));
    }
  }
}

TEST_CASE("flash-3: the chosen row's maximum, sum and rescales are those of its log-sum-exp",
          "[flash_attention_3]") {
  const auto device = device_of();
  for (const Rung rung : kRungs) {
    for (const int row : {0, 77, 127}) {
      CAPTURE(static_cast<int>(rung), row);
      const Problem p = problem_of(rung, 128, Mask::causal, 257);
      const Given in(p);
      // The block that has the second tile of queries; with flash-3 it is the only block's second turn too.
      const int block = rung == Rung::pipelined ? 0 : 1;
      const Attended out = explained_outcome(*device, p, in, {.block = block, .row = row});
      const int first = rung == Rung::pipelined ? 5 : 0;  // the heavy tile came before
      double maximum = -std::numeric_limits<double>::infinity();
      double sum = 0;
      for (int i = 0; i < 4; ++i) {
        const int number = first + i;
        const Step& step = out.steps[static_cast<std::size_t>(number)];
        CHECK(step.k_tile == 3 - i);
        CHECK(step.order == number);
        CHECK(step.m_before == static_cast<float>(maximum));
        const double now = std::max(maximum, static_cast<double>(step.tile_max));
        CHECK(step.m_after == static_cast<float>(now));
        const double rescale = std::isinf(maximum) ? 0 : std::exp(maximum - now);
        CHECK(step.rescale == Approx(rescale).margin(1e-6));
        maximum = now;
        const auto now_sum = static_cast<double>(step.l);
        CHECK(now_sum >= sum * rescale * 0.999);
        sum = now_sum;
      }
      CHECK(
          maximum + std::log(sum) ==
          Approx(static_cast<double>(out.lse[static_cast<std::size_t>(128 + row)])).epsilon(1e-5));
    }
  }
}
