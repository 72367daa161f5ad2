#include "moe_routing/moe_routing.hpp"

#include <cstdlib>
#include <memory>
#include <random>
#include <string_view>

#include "catch.hpp"
#include "moe_routing/moe_routing_kernels.hpp"
#include "moe_routing/moe_routing_report.hpp"
#include "simt/backends.hpp"

using namespace tilestep;
using namespace tilestep::moe_routing;

namespace {

/// An emulated device that knows this lesson's kernels alone; with TILESTEP_TEST_BACKEND=cuda in
/// the environment the first CUDA device.
std::unique_ptr<simt::Device> device_with(simt::ThreadOrder order = simt::ThreadOrder::ascending,
                                          std::uint64_t seed = 1) {
  const char* backend = std::getenv("TILESTEP_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) == "cuda") return simt::make_cuda_device();
  static const simt::KernelEntry table[] = {{kLessonId, kernels_emulated}};
  simt::EmulationOptions options;
  options.order = order;
  options.seed = seed;
  return simt::make_emulated_device(table, options);
}

lab::Report report_of(simt::Device& device, const lab::Settings& settings) {
  lab::NoProgress progress;
  return lesson().run(settings, device, progress);
}

lab::Settings settings_of(const Params& params) {
  return knob_table().settings(params);
}

std::string failed_checks(const lab::Report& report) {
  std::string names;
  for (const lab::Check& check : report.checks) names += check.ok ? "" : check.id + " ";
  return names;
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

}  // namespace

TEST_CASE("the default table and summary", "[moe_routing]") {
  const auto device = device_with();
  const lab::Report report = report_of(*device, {});
  const lab::Table* table = report.table("experts");
  REQUIRE(table != nullptr);
  REQUIRE(table->rows.size() == 4);
  for (std::size_t e = 0; e < 4; ++e) {
    CHECK(table->text(e, 0) == "E" + std::to_string(e));
    CHECK(table->text(e, 1) == "8");
    CHECK(table->text(e, 2) == "1");
    CHECK(table->text(e, 3) == "0");
    CHECK(table->text(e, 4) == "0");
  }
  for (const char* part :
       {"balanced", "top 1", "4 experts", "32 token-slots", "32 real", "100%", "8 tokens"}) {
    CHECK(report.summary.find(part) != std::string::npos);
  }
  // On a GPU the blocks do not begin at the same moment.
  if (device->can_time()) {
    CHECK(report.measurement("busy_share")->value > 0);
  } else {
    CHECK(report.measurement("busy_share")->value == Approx(100));
  }
  CHECK(failed_checks(report).empty());
}

TEST_CASE("invariants hold for 2000 random combinations of knobs", "[moe_routing]") {
  const auto device = device_with();
  std::mt19937 generator(42);
  for (int i = 0; i < 2000; ++i) {
    const Params params = random_params(generator, i % 20 == 0 ? 300 : 40, i % 20 == 0 ? 64 : 12);
    CAPTURE(i, params.tokens, params.experts, params.top_k, to_text(params.routing),
            params.capacity, to_text(params.scheme), params.tile(), params.custom);
    check_invariants(params, report_of(*device, settings_of(params)));
  }
}

TEST_CASE("extremes", "[moe_routing]") {
  const auto device = device_with();
  const auto run = [&](Params params) {
    CAPTURE(params.tokens, params.experts, params.top_k, to_text(params.scheme));
    check_invariants(params, report_of(*device, settings_of(params)));
  };
  for (int scheme = 0; scheme < kSchemes; ++scheme) {
    Params params;
    params.scheme = static_cast<Scheme>(scheme);
    params.tokens = 1;
    params.experts = 2;
    run(params);
    params.top_k = 2;
    params.tile_choice = 4;
    run(params);
    params.tokens = 1031;
    params.experts = 256;
    params.top_k = 8;
    params.routing = Routing::skewed;
    params.skew = 3;
    params.capacity = 0.5;
    run(params);
    params.routing = Routing::one_hot;
    run(params);
  }
  Params many;
  many.tokens = 20011;
  many.experts = 61;
  many.top_k = 2;
  many.routing = Routing::random;
  run(many);
}

TEST_CASE("nothing depends on the order of the threads", "[moe_routing]") {
  Params params;
  params.tokens = 300;
  params.experts = 7;
  params.top_k = 3;
  params.routing = Routing::skewed;
  params.capacity = 1;
  for (int scheme = 0; scheme < kSchemes; ++scheme) {
    params.scheme = static_cast<Scheme>(scheme);
    const Trace first = trace_from_json(report_of(*device_with(), settings_of(params)).trace);
    for (const auto order : {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const auto device = device_with(order, seed);
        const lab::Report report = report_of(*device, settings_of(params));
        CHECK(failed_checks(report).empty());
        const Trace trace = trace_from_json(report.trace);
        CHECK(trace.token == first.token);
        CHECK(trace.expert == first.expert);
      }
    }
  }
}

TEST_CASE("equal logits go to the lower number, and the kernels take any logits", "[moe_routing]") {
  const auto device = device_with();
  const auto& kernels = static_cast<const Kernels&>(device->kernels(kLessonId));
  const RouteShape shape{3, 4, 2, -1, 8, Scheme::packed};
  // All equal; two pairs of equals; so far apart that exp underflows.
  const std::vector<float> logits = {1, 1, 1, 1, 0, 2, 0, 2, -3e38f, 0, 3e38f, 0};
  const simt::Buffer<float> in(*device, std::span<const float>(logits));
  simt::Buffer<int> expert(*device, 6), rank(*device, 6), slot(*device, 6), wanted(*device, 4),
      kept(*device, 4), first_slot(*device, 5), first_tile(*device, 5),
      chunks(*device, chunks_of(6) * 4);
  simt::Buffer<float> probability(*device, 6), gate(*device, 6);
  kernels.route(*device, shape,
                {in.span(),
                 expert.span(),
                 probability.span(),
                 gate.span(),
                 rank.span(),
                 slot.span(),
                 wanted.span(),
                 kept.span(),
                 first_slot.span(),
                 first_tile.span(),
                 chunks.span(),
                 {}});
  device->synchronize();
  CHECK(expert.download() == std::vector<int>{0, 1, 1, 3, 2, 1});
  CHECK(gate.download() == std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f, 1, 0});
  CHECK(wanted.download() == std::vector<int>{1, 3, 1, 1});
  CHECK(first_slot.download() == std::vector<int>{0, 1, 4, 5, 6});
  CHECK(first_tile.download() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(slot.download() == std::vector<int>{0, 1, 2, 5, 4, 3});
}

TEST_CASE("one expert for all: a straggler, and what capacity does to it", "[moe_routing]") {
  const auto device = device_with();
  Params params;
  params.routing = Routing::one_hot;
  Trace trace = trace_from_json(report_of(*device, settings_of(params)).trace);
  CHECK(trace.expert[0].kept == 32);
  CHECK(trace.expert[1].tiles == 0);
  CHECK(trace.useful() == 1);
  params.capacity = 1;
  trace = trace_from_json(report_of(*device, settings_of(params)).trace);
  CHECK(trace.expert[0].kept == 8);
  CHECK(trace.dropped() == 24);
  // By token: the first eight stay.
  CHECK(trace.token[7].slot[0] == 7);
  CHECK(trace.token[8].slot[0] == -1);
  CHECK(trace.token[8].output == 0);
}

TEST_CASE("custom routing moves tokens", "[moe_routing]") {
  const auto device = device_with();
  const lab::Report report =
      report_of(*device, {{"routing", std::string("custom")}, {"custom", std::string("0:3,5:3")}});
  const Trace trace = trace_from_json(report.trace);
  CHECK(trace.token[0].expert[0] == 3);
  CHECK(trace.token[5].expert[0] == 3);
  CHECK(trace.token[1].expert[0] == 1);
  CHECK(trace.expert[3].kept == 10);
  CHECK(trace.expert[3].tiles == 2);
  CHECK(trace.expert[3].padded == 6);
}

TEST_CASE("bad knobs name what is allowed", "[moe_routing]") {
  const auto device = device_with();
  const auto complaint = [&](lab::Settings settings) -> std::string {
    try {
      report_of(*device, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint({{"top_k", std::int64_t{5}}}).find("1–4 with 4 experts") != std::string::npos);
  CHECK(complaint({{"custom", std::string("5:2,")}}).find("token:expert") != std::string::npos);
  CHECK(complaint({{"custom", std::string("40:2")}}).find("tokens 0–31") != std::string::npos);
  CHECK(complaint({{"custom", std::string("4:9")}}).find("experts 0–3") != std::string::npos);
  CHECK(complaint({{"capacity", 0.3}}).find("off or 0.5–4") != std::string::npos);
  CHECK(complaint({{"tile", std::string("12")}}).find("one of 8, 16") != std::string::npos);
  CHECK(lesson().knobs().at("capacity").parsed("off") == lab::KnobValue(0.0));
  CHECK_THROWS_AS(lesson().knobs().at("capacity").parsed("on"), Error);
}

TEST_CASE("the trace travels as JSON", "[moe_routing]") {
  const auto device = device_with();
  Params params;
  params.routing = Routing::skewed;
  params.top_k = 2;
  params.capacity = 1;
  const lab::Report report = report_of(*device, settings_of(params));
  const Trace trace = trace_from_json(report.trace);
  CHECK(to_json(trace) == report.trace);
  nlohmann::json broken = report.trace;
  broken["expert"]["kept"].erase(0);
  CHECK_THROWS_AS(trace_from_json(broken), Error);
  broken = report.trace;
  broken["tiles"]["expert"][0] = 99;
  CHECK_THROWS_AS(trace_from_json(broken), Error);
  broken = report.trace;
  broken.erase("scheme");
  CHECK_THROWS_AS(trace_from_json(broken), Error);
}
