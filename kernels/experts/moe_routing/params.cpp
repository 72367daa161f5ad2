#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "kernels/base/lab/pairs.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"
#include "kernels/experts/moe_routing/run/report.hpp"

namespace tilestep::moe_routing {
namespace {

constexpr int kMostTokens = 65536;
constexpr int kMostExperts = 256;

/// "5:2,7:0" parsed; nothing if it is not of that form.
std::optional<std::vector<Move>> parsed_moves(std::string_view text) {
  const auto pairs = lab::pairs_of(text);
  if (!pairs) return std::nullopt;
  std::vector<Move> moves;
  for (const auto& [token, expert] : *pairs) moves.push_back({token, expert});
  return moves;
}

bool is_list_of_moves(std::string_view text) {
  return parsed_moves(text).has_value();
}

void check_together(const Params& params) {
  if (params.top_k > params.experts) {
    lab::refuse_with("top_k", params.top_k, fmt::format("experts = {}", params.experts),
                     fmt::format("1–{}", params.experts), std::int64_t{params.experts});
  }
  std::string fits;
  bool all_fit = true;
  for (const Move& move : parsed_moves(params.custom).value_or(std::vector<Move>{})) {
    if (move.token < params.tokens && move.expert < params.experts) {
      fits += fmt::format("{}{}:{}", fits.empty() ? "" : ",", move.token, move.expert);
    } else {
      all_fit = false;
    }
  }
  if (all_fit) return;
  lab::refuse_with(
      "custom", params.custom,
      fmt::format("tokens = {} and experts = {}", params.tokens, params.experts),
      fmt::format("tokens 0–{} and experts 0–{}", params.tokens - 1, params.experts - 1), fits);
}

}  // namespace

std::array<int, kSteps> step_lines() {
  return lab::source_marks(kSourcePath)
      .lines({"score", "top-k", "count", "offset", "permute", "multiply", "combine"});
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .integer(&Params::tokens, {"tokens", "Tokens in the batch."}, 1, kMostTokens, true)
          .integer(&Params::experts, {"experts", "Experts that the router chooses from."}, 2,
                   kMostExperts, true)
          .integer(&Params::top_k,
                   {"top_k", "Top-k", "", "Experts per token, at most all of them."}, 1, 8)
          .group("run")
          .choice(&Params::routing, {"routing",
                                     "Distribution of the router's choices; custom is balanced "
                                     "with the changes listed in the knob custom."})
          .real(&Params::skew,
                {"skew", "Exponent: expert e is chosen in proportion to (e + 1)^-skew."}, 0, 3)
          .with("routing", {"skewed"})
          .group("kernel")
          .choice(&Params::tile_choice,
                  {"tile", "Tile", "tokens", "Token slots per tile of the tensor cores."},
                  {"8", "16", "32", "64", "128"})
          .real(&Params::capacity,
                {"capacity", "Capacity factor", "",
                 "An expert takes at most this factor times its even share of the tokens; the rest "
                 "are dropped."},
                0.5, 4, false, "off")
          .choice(&Params::scheme, {"scheme", "How the experts' products are batched."})
          .group("run")
          .text(&Params::custom, {"custom", "Which token goes to which expert."},
                "pairs token:expert with commas between, such as 5:2,7:0, or nothing",
                is_list_of_moves)
          .with("routing", {"custom"})
          .seed()
          .require(check_together);
  return table;
}

std::vector<Move> moves_of(const Params& params) {
  if (params.routing != Routing::custom) return {};
  return parsed_moves(params.custom).value_or(std::vector<Move>{});
}

int capacity_of(const Params& params) {
  if (params.capacity <= 0) return -1;
  const double share =
      params.capacity * params.tokens * params.top_k / static_cast<double>(params.experts);
  // 1.1 × 50 is 55.00000000000001 in double, but 55 slots are meant: an excess over a whole number of less
  // than a billionth comes from rounding. Knobs are far coarser than that.
  constexpr double kRounding = 1e-9;
  return static_cast<int>(std::ceil(share - kRounding));
}

}  // namespace tilestep::moe_routing
