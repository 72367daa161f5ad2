#include "kernels/experts/moe_routing/lesson.hpp"

#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "kernels/experts/moe_routing/kernels.hpp"
#include "kernels/experts/moe_routing/run/report.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::moe_routing;
using namespace tilestep::tests;

namespace {

const Runs run(lesson(), knob_table(), trace_from_json);

/// Whether the kept assignments of the shown tokens have slots of their own, each inside its
/// expert's; where all tokens are shown, as many as `kept` says.
bool is_bijection(const Trace& trace, std::int64_t kept) {
  std::set<int> taken;
  std::int64_t placed = 0;
  for (const TokenTrace& token : trace.token) {
    for (std::size_t choice = 0; choice < token.slot.size(); ++choice) {
      const int slot = token.slot[choice];
      if (slot < 0) continue;
      const ExpertTrace& expert = trace.expert[static_cast<std::size_t>(token.expert[choice])];
      if (slot < expert.first_slot || slot >= expert.first_slot + expert.kept) return false;
      taken.insert(slot);
      ++placed;
    }
  }
  const bool all_shown = trace.tokens <= kShownTokens;
  return static_cast<std::int64_t>(taken.size()) == placed && (!all_shown || placed == kept);
}

/// What must hold for every combination of knobs, counted here anew from the trace and the tables.
void check_invariants(const Params& params, const lab::Report& report) {
  const Trace trace = trace_from_json(report.trace);
  std::int64_t kept = 0, dropped = 0, slots = 0;
  int capacity = params.tokens * params.top_k;
  if (params.capacity > 0) {
    while (capacity > 0 &&
           capacity - 1 >= params.capacity * params.tokens * params.top_k / params.experts - 1e-9) {
      --capacity;
    }
  }
  bool good = static_cast<int>(trace.expert.size()) == params.experts;
  for (const ExpertTrace& expert : trace.expert) {
    kept += expert.kept;
    dropped += expert.wanted - expert.kept;
    slots += expert.tiles * params.tile();
    good = good && expert.padded == expert.tiles * params.tile() - expert.kept;
    good = good && expert.padded >= 0 && expert.kept <= expert.wanted;
    good = good && (params.capacity <= 0 ? expert.kept == expert.wanted : expert.kept <= capacity);
  }
  CHECK(good);
  CHECK(is_bijection(trace, kept));
  CHECK(kept + dropped == static_cast<std::int64_t>(params.tokens) * params.top_k);
  CHECK(slots == trace.slots());
  CHECK(failed_checks(report).empty());
}

Params random_params(std::mt19937& generator, int most_tokens, int most_experts) {
  const auto below = [&](int count) {
    return static_cast<int>(generator() % static_cast<unsigned>(count));
  };
  Params params;
  params.tokens = 1 + below(most_tokens);
  params.experts = 2 + below(most_experts - 1);
  params.top_k = 1 + below(std::min(8, params.experts));
  params.routing = static_cast<Routing>(below(kRoutings));
  params.skew = below(31) * 0.1;
  params.tile_choice = below(5);
  params.capacity = below(2) == 0 ? 0 : 0.5 + below(36) * 0.1;
  params.capacity = std::min(params.capacity, 4.0);
  params.scheme = static_cast<Scheme>(below(kSchemes));
  params.seed = below(1000000);
  for (int i = below(4); i > 0; --i) {
    params.custom += (params.custom.empty() ? "" : ",") + std::to_string(below(params.tokens)) +
                     ":" + std::to_string(below(params.experts));
  }
  return params;
}

/// What the router's kernels make of `logits`.
Placement route(const RouteShape& shape, const std::vector<float>& logits,
                std::vector<float>& gates) {
  const auto device = test_device();
  Router router(*device, shape, logits);
  router.run();
  Placement placed;
  std::vector<float> probabilities;
  router.download(placed, probabilities, gates);
  return placed;
}

}  // namespace

TEST_CASE("the default table and summary", "[moe_routing]") {
  const lab::Report report = run();
  const lab::Table& table = table_in(report, "experts");
  CHECK(texts_of(table) == std::vector<std::vector<std::string>>{{"E0", "25", "4", "7", "0"},
                                                                 {"E1", "2", "1", "6", "0"},
                                                                 {"E2", "3", "1", "5", "0"},
                                                                 {"E3", "2", "1", "6", "0"}});
  for (const char* part : {"skewed 2", "top 1", "4 experts", "56 token-slots", "32 real", "57.1%",
                           "E0 is busiest, with 25 tokens."}) {
    CHECK(contains(report.summary, part));
  }
  // On a GPU the blocks do not begin at the same moment.
  if (device_at_hand().can_time()) {
    CHECK(report.measurement("busy_share")->value > 0);
  } else {
    CHECK(report.measurement("busy_share")->value == Approx(87.5));
  }
  CHECK(failed_checks(report).empty());
}

TEST_CASE("invariants hold for 2000 random combinations of knobs", "[moe_routing]") {
  std::mt19937 generator(42);
  const int cases = kFewShapes ? 200 : 2000;
  for (int i = 0; i < cases; ++i) {
    const Params params = random_params(generator, i % 20 == 0 ? 300 : 40, i % 20 == 0 ? 64 : 12);
    CAPTURE(i, params.tokens, params.experts, params.top_k, name_of(params.routing),
            params.capacity, name_of(params.scheme), params.tile(), params.custom);
    check_invariants(params, run(params));
  }
}

TEST_CASE("extremes", "[moe_routing]") {
  const auto check = [&](const Params& params) {
    CAPTURE(params.tokens, params.experts, params.top_k, name_of(params.scheme));
    check_invariants(params, run(params));
  };
  for (const Scheme scheme : all_of<Scheme>()) {
    check({.tokens = 1, .experts = 2, .scheme = scheme});
    check({.tokens = 1, .experts = 2, .top_k = 2, .tile_choice = 4, .scheme = scheme});
    for (const Routing routing : {Routing::skewed, Routing::one_hot}) {
      check({.tokens = 1031,
             .experts = 256,
             .top_k = 8,
             .routing = routing,
             .skew = 3,
             .tile_choice = 4,
             .capacity = 0.5,
             .scheme = scheme});
    }
  }
  check({.tokens = 20011, .experts = 61, .top_k = 2, .routing = Routing::random});
}

TEST_CASE("nothing depends on the order of the threads", "[moe_routing]") {
  Params params{.tokens = 300, .experts = 7, .top_k = 3, .routing = Routing::skewed, .capacity = 1};
  for (const Scheme scheme : all_of<Scheme>()) {
    params.scheme = scheme;
    const Trace first = run.trace(params);
    in_other_orders(3, [&](simt::Device& device) {
      const lab::Report report = run(params, device);
      CHECK(failed_checks(report).empty());
      const Trace trace = trace_from_json(report.trace);
      CHECK(trace.token == first.token);
      CHECK(trace.expert == first.expert);
    });
  }
}

TEST_CASE("equal logits go to the lower number, and the kernels take any logits", "[moe_routing]") {
  const RouteShape shape{3, 4, 2, -1, 8, Scheme::packed};
  std::vector<float> gates;
  // All equal; two pairs of equals; so far apart that exp underflows.
  const Placement routed = route(shape, {1, 1, 1, 1, 0, 2, 0, 2, -3e38f, 0, 3e38f, 0}, gates);
  CHECK(routed.expert == std::vector<int>{0, 1, 1, 3, 2, 1});
  CHECK(gates == std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f, 1, 0});
  CHECK(routed.wanted == std::vector<int>{1, 3, 1, 1});
  CHECK(routed.first_slot == std::vector<int>{0, 1, 4, 5, 6});
  CHECK(routed.first_tile == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(routed.slot == std::vector<int>{0, 1, 2, 5, 4, 3});
}

TEST_CASE("logits that are no numbers choose nobody outside the experts", "[moe_routing]") {
  std::vector<float> gates;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const RouteShape shape{4, 3, 3, -1, 8, Scheme::packed};
  const Placement routed =
      route(shape, {nan, nan, nan, nan, 1, 0, -inf, inf, 0, -inf, -inf, -inf}, gates);
  CHECK(routed.expert == std::vector<int>{0, 1, 2, 1, 2, 0, 1, 2, 0, 0, 1, 2});
  for (const float gate : gates) CHECK((gate >= 0 && gate <= 1));
  CHECK(gates[0] == Approx(1.0 / 3));
  CHECK(gates[6] == 1);
  CHECK(routed.wanted == std::vector<int>{4, 4, 4});
}

TEST_CASE("one expert for all: a straggler, and what capacity does to it", "[moe_routing]") {
  Trace trace = run.trace({.routing = Routing::one_hot});
  CHECK(trace.expert[0].kept == 32);
  CHECK(trace.expert[1].tiles == 0);
  CHECK(trace.useful() == 1);
  trace = run.trace({.routing = Routing::one_hot, .capacity = 1});
  CHECK(trace.expert[0].kept == 8);
  CHECK(trace.dropped() == 24);
  // By token: the first eight stay.
  CHECK(trace.token[7].slot[0] == 7);
  CHECK(trace.token[8].slot[0] == -1);
  CHECK(trace.token[8].output == 0);
}

TEST_CASE("a capacity that is a whole number stays one, whatever binary makes of 1.1",
          "[moe_routing]") {
  Params params;
  params.tokens = 50;
  params.experts = 5;
  params.top_k = 1;
  params.capacity = 1.1;  // 11.000000000000002 slots
  CHECK(capacity_of(params) == 11);
  params.capacity = 1.11;
  CHECK(capacity_of(params) == 12);
}

TEST_CASE("all schemes run the same tokens on as many multiprocessors", "[moe_routing]") {
  const auto ends = [](const Trace& trace) {
    std::vector<int> all;
    for (const SchemeTrace& each : trace.schemes) {
      int end = 0;
      for (const QueuedTile& tile : queued(each)) end = std::max(end, tile.end);
      all.push_back(end);
    }
    return all;
  };
  for (const Scheme scheme : all_of<Scheme>()) {
    const Trace trace = run.trace({.scheme = scheme});
    REQUIRE(trace.schemes.size() == kSchemes);
    const auto tiles = [&](int s) { return trace.schemes[static_cast<std::size_t>(s)].tiles(); };
    CHECK(std::vector{tiles(0), tiles(1), tiles(2)} == std::vector<std::size_t>{16, 7, 7});
    CHECK(trace.schemes[1].blocks == 16);
    CHECK(trace.schemes[2].blocks == kProcessors);
    CHECK(ends(trace) == std::vector<int>{4, 2, 2});
    for (const SchemeTrace& each : trace.schemes) {
      CHECK(std::accumulate(each.kept.begin(), each.kept.end(), 0) == 32);
    }
    const SchemeTrace& own = trace.schemes[static_cast<std::size_t>(scheme)];
    for (const TileTrace& tile : trace.tiles) {
      const auto first = std::find(own.expert.begin(), own.expert.end(), tile.expert);
      const auto i = static_cast<std::size_t>(first - own.expert.begin() + tile.number);
      CHECK(own.kept[i] == tile.kept);
      CHECK(own.block[i] == tile.block);
    }
  }
  CHECK(ends(run.trace({.routing = Routing::balanced})) == std::vector<int>{1, 1, 1});
  // A tile of 32 takes four instructions.
  CHECK(ends(run.trace({.tile_choice = 2})) == std::vector<int>{4, 4, 4});
  CHECK(run.trace({.tokens = 4096}).schemes.size() == 1);
}

TEST_CASE("custom routing moves tokens", "[moe_routing]") {
  const Trace trace = run.trace({.routing = Routing::custom, .custom = "0:3,5:3"});
  CHECK(trace.token[0].expert[0] == 3);
  CHECK(trace.token[5].expert[0] == 3);
  CHECK(trace.token[1].expert[0] == 1);
  CHECK(trace.expert[3].kept == 10);
  CHECK(trace.expert[3].tiles == 2);
  CHECK(trace.expert[3].padded == 6);
}

TEST_CASE("of two moves of a token the later one holds", "[moe_routing]") {
  const Trace trace = run.trace({.top_k = 2, .routing = Routing::custom, .custom = "0:2,0:3"});
  CHECK(trace.token[0].expert == std::vector<int>{3, 0});
}

TEST_CASE("the recorded lines are the statements of the steps", "[moe_routing]") {
  // Also where the first block of the product has no tile, because E0 has no token.
  const Params none_for_e0{
      .tokens = 1, .routing = Routing::custom, .scheme = Scheme::tile_padded, .custom = "0:3"};
  for (const Params& params : {Params{}, none_for_e0}) {
    check_lines(kSourcePath, run.trace(params).lines,
                {"sum += expf(", "logit > best_logit", "atomicAdd(&counts[",
                 "exclusive_scan(values, slots)", "x[to * hidden + i] = tokens[",
                 "multiply_columns(operands", "sum += gate["});
  }
}

TEST_CASE("every check fails when what it guards is broken", "[moe_routing]") {
  const Outcome good =
      gather({.top_k = 2, .routing = Routing::skewed, .capacity = 1}, device_at_hand(), unwatched);
  REQUIRE(failed_checks(report_of(good)).empty());
  using Break = void (*)(Outcome&);
  const std::pair<const char*, Break> breaks[] = {
      {"result", [](Outcome& o) { o.out[5] += 1e-3f; }},
      {"result", [](Outcome& o) { o.out.back() = std::numeric_limits<float>::quiet_NaN(); }},
      {"gates", [](Outcome& o) { o.gate[3] += 1e-4f; }},
      {"choices", [](Outcome& o) { std::swap(o.device.expert[0], o.device.expert[1]); }},
      {"places", [](Outcome& o) { ++o.device.rank[7]; }},
      {"permutation", [](Outcome& o) { o.device.slot[1] = o.device.slot[0]; }},
      {"totals", [](Outcome& o) { ++o.trace.expert[1].wanted; }},
      {"capacity", [](Outcome& o) { o.trace.expert[0].kept += 1000; }},
      {"tiles", [](Outcome& o) { o.tiles[1].block = -1; }},
      {"tiles", [](Outcome& o) { o.tiles.back().end = o.tiles.back().begin - 1; }},
  };
  for (const auto& [id, broken] : breaks) {
    Outcome outcome = good;
    broken(outcome);
    const std::string failed = "\n" + failed_checks(report_of(outcome));
    CAPTURE(id, failed);
    CHECK(contains(failed, std::string("\n") + id + " off by "));
  }
}

TEST_CASE("the numbers are of all tiles, the picture of the first", "[moe_routing]") {
  const lab::Report report = run({.tokens = 20000, .routing = Routing::balanced});
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.tiles_run == 2500);
  CHECK(static_cast<int>(trace.tiles.size()) == kShownTiles);
  REQUIRE(report.measurement("busy_share") != nullptr);
  if (!device_at_hand().can_time()) CHECK(report.measurement("busy_share")->value == Approx(100));
}

TEST_CASE("bad knobs name what is allowed", "[moe_routing]") {
  const auto complaint = [&](const char* id, const lab::KnobValue& value) {
    return error_of([&] { run_on(device_at_hand(), lesson(), {{id, value}}); });
  };
  CHECK(
      contains(complaint("top_k", std::int64_t{5}), "with experts = 4 the allowed values are 1–4"));
  CHECK(contains(complaint("custom", std::string("5:2,")), "token:expert"));
  CHECK(contains(complaint("custom", std::string("40:2")), "tokens 0–31"));
  CHECK(contains(complaint("custom", std::string("4:9")), "experts 0–3"));
  CHECK(contains(complaint("capacity", 0.3), "off or 0.5–4"));
  CHECK(contains(complaint("tile", std::string("12")), "one of 8, 16"));
  CHECK(lesson().knobs().at("capacity").parsed("off") == lab::KnobValue(0.0));
  CHECK_THROWS_AS(lesson().knobs().at("capacity").parsed("on"), Error);
}

TEST_CASE("who is busiest is said with all who tie", "[moe_routing]") {
  const auto said = [](std::vector<int> kept) {
    Trace trace;
    trace.experts = static_cast<int>(kept.size());
    for (const int each : kept) trace.expert.push_back({.kept = each});
    return busiest_text(trace);
  };
  CHECK(said({3, 20, 8, 1}) == "E1 is busiest, with 20 tokens");
  CHECK(said({1, 0, 0}) == "E0 is busiest, with 1 token");
  CHECK(said({8, 2, 2, 8}) == "E0 and E3 are busiest, with 8 tokens each");
  CHECK(said({1, 5, 5, 5}) == "E1, E2 and E3 are busiest, with 5 tokens each");
  CHECK(said({7, 7, 7, 7, 0, 0}) == "4 of 6 experts are busiest, with 7 tokens each");
  CHECK(said({8, 8, 8, 8}) == "all 4 experts have 8 tokens each");
  CHECK(said({1, 1}) == "both experts have 1 token each");
  const lab::Report tie = run({.tokens = 10, .routing = Routing::balanced});
  CHECK(contains(tie.summary, "E0 and E1 are busiest, with 3 tokens each."));
  CHECK(contains(tie.measurement("busiest_expert")->detail, "kept by E0 and E1 each"));
}
