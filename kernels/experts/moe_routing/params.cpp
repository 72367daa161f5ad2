#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/lab/source.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"
#include "kernels/experts/moe_routing/report.hpp"

namespace tilestep::moe_routing {
namespace {

constexpr int kMostTokens = 65536;
constexpr int kMostExperts = 256;

const std::vector<std::string>& routing_names() {
  static const std::vector<std::string> names = {"balanced", "skewed", "random", "one-hot",
                                                 "custom"};
  return names;
}
const std::vector<std::string>& scheme_names() {
  static const std::vector<std::string> names = {"padded-to-capacity", "tile-padded", "packed"};
  return names;
}
const std::vector<std::string>& tile_names() {
  static const std::vector<std::string> names = {"8", "16", "32", "64", "128"};
  return names;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "5:2,7:0" taken apart; nothing if it is not of that form.
std::optional<std::vector<Move>> parsed_moves(std::string_view text) {
  std::vector<Move> moves;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const std::size_t colon = one.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto token = whole_number(one.substr(0, colon));
    const auto expert = whole_number(one.substr(colon + 1));
    if (!token || !expert) return std::nullopt;
    moves.push_back({*token, *expert});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;  // a comma with nothing behind it
  }
  return moves;
}

bool is_list_of_moves(std::string_view text) {
  return parsed_moves(text).has_value();
}

[[noreturn]] void refuse(std::string_view knob, const std::string& value,
                         const std::string& allowed) {
  throw Error(fmt::format("knob '{}' cannot be '{}'; allowed: {}", knob, value, allowed));
}

}  // namespace

std::string_view to_text(Routing routing) {
  return routing_names().at(static_cast<std::size_t>(routing));
}
std::string_view to_text(Scheme scheme) {
  return scheme_names().at(static_cast<std::size_t>(scheme));
}
std::array<int, kSteps> step_lines() {
  return lab::source_marks(kSourcePath)
      .lines({"score", "top-k", "count", "offset", "permute", "multiply", "combine"});
}

std::string_view to_text(Step step) {
  static constexpr std::string_view kNames[] = {"score",   "top-k",    "count",  "offset",
                                                "permute", "multiply", "combine"};
  return kNames[static_cast<std::size_t>(step)];
}

std::string_view what_it_does(Scheme scheme) {
  switch (scheme) {
    case Scheme::padded_to_capacity:
      return "Every expert has as many slots as the fullest may have, so that one batched product "
             "does them all; slots that stay empty are multiplied too.";
    case Scheme::tile_padded:
      return "Each expert's slots are rounded up to whole tiles: padding costs less than a tile an "
             "expert, but the launch has room for the longest expert and blocks beyond the others "
             "leave at once.";
    case Scheme::packed:
      return "Kept tokens lie side by side and one list of tiles over all experts is shared out "
             "among blocks that stay, so that an uneven routing still fills the machine.";
  }
  return "";
}

const lab::KnobTable<Params>& knob_table() {
  static const lab::KnobTable<Params> table = [] {
    lab::KnobTable<Params> t;
    t.integer(&Params::tokens, {"tokens", "Tokens", "", "How many tokens the layer gets."}, 1,
              kMostTokens, true)
        .integer(&Params::experts,
                 {"experts", "Experts", "", "How many experts the router chooses among."}, 2,
                 kMostExperts, true)
        .integer(
            &Params::top_k,
            {"top_k", "Top-k", "", "To how many experts each token goes; at most all of them."}, 1,
            8)
        .choice(
            &Params::routing,
            {"routing", "Routing", "",
             "Whom the router prefers; custom is balanced with the changes of the knob custom."},
            routing_names())
        .real(
            &Params::skew,
            {"skew", "Skew", "", "For skewed: expert e is wanted in proportion to (e + 1)^-skew."},
            0, 3)
        .choice(&Params::tile_choice,
                {"tile", "Tile", "tokens", "Token slots that the tensor cores run together."},
                tile_names())
        .real(&Params::capacity,
              {"capacity", "Capacity factor", "",
               "An expert takes at most the factor times its even share of the tokens; what "
               "comes later is dropped."},
              0.5, 4, false, "off")
        .choice(&Params::scheme,
                {"scheme", "Scheme", "", "How the experts' products are laid out."}, scheme_names())
        .text(&Params::custom, {"custom", "Custom", "", "Who goes where, for the routing custom."},
              "pairs token:expert with commas between, such as 5:2,7:0, or nothing",
              is_list_of_moves)
        .integer(&Params::seed, {"seed", "Seed", "", "Chooses the random numbers."}, 0, 2147483647);
    return t;
  }();
  return table;
}

std::vector<Move> moves_of(const Params& params) {
  if (params.routing != Routing::custom) return {};
  return parsed_moves(params.custom).value_or(std::vector<Move>{});
}

Params params_from(const lab::Settings& settings) {
  const Params params = knob_table().params(settings);
  if (params.top_k > params.experts) {
    refuse("top_k", std::to_string(params.top_k),
           fmt::format("1–{} with {} experts", params.experts, params.experts));
  }
  const auto moves = parsed_moves(params.custom);
  for (const Move& move : moves.value_or(std::vector<Move>{})) {
    if (move.token >= params.tokens || move.expert >= params.experts) {
      refuse("custom", params.custom,
             fmt::format("tokens 0–{} and experts 0–{}", params.tokens - 1, params.experts - 1));
    }
  }
  return params;
}

int capacity_of(const Params& params) {
  if (params.capacity <= 0) return -1;
  const double share =
      params.capacity * params.tokens * params.top_k / static_cast<double>(params.experts);
  return static_cast<int>(std::ceil(share - 1e-9));
}

}  // namespace tilestep::moe_routing
