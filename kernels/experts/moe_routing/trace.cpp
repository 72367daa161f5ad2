#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/experts/moe_routing/lesson.hpp"

namespace tilestep::moe_routing {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "MoE trace";
/// Of the trace's counts and places; −1 says that there is none.
constexpr int kLeastNumber = -1, kLargestNumber = 1 << 30;

json floats(const std::vector<float>& values) {
  json array = json::array();
  for (const float value : values) {
    array.push_back(lab::number_to_json(static_cast<double>(value)));
  }
  return array;
}

template <class T>
std::vector<T> numbers(const json& from, std::string_view name, std::size_t count) {
  const json& array = lab::array_of(from, name, kWhere);
  if (array.size() != count) {
    throw Error(fmt::format("{}: '{}' must have {} numbers, but has {}", kWhere, name, count,
                            array.size()));
  }
  std::vector<T> values;
  for (const json& item : array) {
    if constexpr (std::is_integral_v<T>) {
      // Also keeps out what an int cannot hold: to convert that would be undefined.
      const bool whole = item.is_number_integer() && item.get<double>() >= kLeastNumber &&
                         item.get<double>() <= kLargestNumber;
      if (!whole) {
        throw Error(fmt::format("{}: '{}' holds {}; allowed: whole numbers {}–{}", kWhere, name,
                                item.dump(), kLeastNumber, kLargestNumber));
      }
      values.push_back(item.get<T>());
    } else {
      try {
        values.push_back(static_cast<T>(lab::number_from_json(item)));
      } catch (const Error&) {
        throw Error(fmt::format("{}: '{}' holds something that is no number", kWhere, name));
      }
    }
  }
  return values;
}

template <class Enum>
Enum named(const json& from, std::string_view name, int count) {
  const auto text = lab::member<std::string>(from, name, kWhere);
  for (int i = 0; i < count; ++i) {
    if (to_text(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  throw Error(fmt::format("{}: there is no {} '{}'", kWhere, name, text));
}

/// The column `name` of a table kept by columns: all of one length.
template <class Item, class Value>
void put(json& to, const char* name, const std::vector<Item>& items, Value Item::*member) {
  json column = json::array();
  for (const Item& item : items) column.push_back(item.*member);
  to[name] = std::move(column);
}
template <class Item, class Value>
void take(const json& from, const char* name, std::vector<Item>& items, Value Item::*member) {
  const std::vector<Value> values = numbers<Value>(from, name, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) items[i].*member = values[i];
}

int in_range(int value, int low, int high, std::string_view what) {
  if (value >= low && value <= high) return value;
  throw Error(fmt::format("{}: {} is {}; allowed: {}–{}", kWhere, what, value, low, high));
}

/// Of `all` things the first `most` are kept in a trace, or all if they are fewer.
void require_shown(std::string_view name, std::size_t there, std::int64_t all, int most) {
  const std::int64_t want = std::min<std::int64_t>(all, most);
  if (static_cast<std::int64_t>(there) == want) return;
  throw Error(fmt::format("{}: '{}' must have {} rows, but has {}", kWhere, name, want, there));
}

json token_json(const TokenTrace& token) {
  return {{"logits", floats(token.logits)},
          {"expert", token.expert},
          {"probability", floats(token.probability)},
          {"gate", floats(token.gate)},
          {"rank", token.rank},
          {"slot", token.slot},
          {"output", lab::number_to_json(static_cast<double>(token.output))}};
}

TokenTrace token_from(const json& from, const Trace& trace) {
  const auto top_k = static_cast<std::size_t>(trace.top_k);
  TokenTrace token;
  const auto logits = static_cast<std::size_t>(trace.experts > kMostLogits ? 0 : trace.experts);
  token.logits = numbers<float>(from, "logits", logits);
  token.expert = numbers<int>(from, "expert", top_k);
  for (const int e : token.expert) in_range(e, 0, trace.experts - 1, "an expert's number");
  token.probability = numbers<float>(from, "probability", top_k);
  token.gate = numbers<float>(from, "gate", top_k);
  token.rank = numbers<int>(from, "rank", top_k);
  token.slot = numbers<int>(from, "slot", top_k);
  token.output =
      static_cast<float>(lab::number_from_json(lab::member<json>(from, "output", kWhere)));
  return token;
}

}  // namespace

std::int64_t Trace::kept() const {
  std::int64_t sum = 0;
  for (const ExpertTrace& one : expert) sum += one.kept;
  return sum;
}

std::int64_t Trace::dropped() const {
  std::int64_t sum = 0;
  for (const ExpertTrace& one : expert) sum += one.dropped();
  return sum;
}

double Trace::useful() const {
  return slots() == 0 ? 1 : static_cast<double>(kept()) / static_cast<double>(slots());
}

int Trace::busiest() const {
  const auto most =
      std::max_element(expert.begin(), expert.end(),
                       [](const ExpertTrace& a, const ExpertTrace& b) { return a.kept < b.kept; });
  return static_cast<int>(most - expert.begin());
}

Trace::Assignment Trace::in_slot(int slot) const {
  for (std::size_t t = 0; t < token.size(); ++t) {
    for (std::size_t choice = 0; choice < token[t].slot.size(); ++choice) {
      if (slot >= 0 && token[t].slot[choice] == slot) {
        return {static_cast<int>(t), static_cast<int>(choice)};
      }
    }
  }
  return {};
}

json to_json(const Trace& trace) {
  json to = {{"tokens", trace.tokens},
             {"experts", trace.experts},
             {"top_k", trace.top_k},
             {"tile", trace.tile},
             {"capacity", trace.capacity},
             {"routing", std::string(to_text(trace.routing))},
             {"scheme", std::string(to_text(trace.scheme))},
             {"tiles_run", trace.tiles_run},
             {"blocks", trace.blocks},
             {"clock_unit", trace.clock_unit},
             {"lines", trace.lines}};
  json tokens = json::array();
  for (const TokenTrace& token : trace.token) tokens.push_back(token_json(token));
  to["token"] = std::move(tokens);
  json& expert = to["expert"] = json::object();
  put(expert, "wanted", trace.expert, &ExpertTrace::wanted);
  put(expert, "kept", trace.expert, &ExpertTrace::kept);
  put(expert, "first_slot", trace.expert, &ExpertTrace::first_slot);
  put(expert, "tiles", trace.expert, &ExpertTrace::tiles);
  put(expert, "padded", trace.expert, &ExpertTrace::padded);
  json& tiles = to["tiles"] = json::object();
  put(tiles, "expert", trace.tiles, &TileTrace::expert);
  put(tiles, "number", trace.tiles, &TileTrace::number);
  put(tiles, "kept", trace.tiles, &TileTrace::kept);
  put(tiles, "block", trace.tiles, &TileTrace::block);
  put(tiles, "processor", trace.tiles, &TileTrace::processor);
  put(tiles, "begin", trace.tiles, &TileTrace::begin);
  put(tiles, "end", trace.tiles, &TileTrace::end);
  return to;
}

Trace trace_from_json(const json& from) {
  Trace trace;
  const auto whole = [&](const char* name) { return lab::member<int>(from, name, kWhere); };
  trace.tokens = in_range(whole("tokens"), 1, 1 << 24, "tokens");
  trace.experts = in_range(whole("experts"), 1, 1 << 16, "experts");
  trace.top_k = in_range(whole("top_k"), 1, trace.experts, "top_k");
  trace.tile = in_range(whole("tile"), 1, 1 << 16, "tile");
  trace.capacity = in_range(whole("capacity"), -1, 1 << 30, "capacity");
  trace.routing = named<Routing>(from, "routing", kRoutings);
  trace.scheme = named<Scheme>(from, "scheme", kSchemes);
  trace.tiles_run = lab::member<std::int64_t>(from, "tiles_run", kWhere);
  trace.blocks = in_range(whole("blocks"), 0, kLargestNumber, "blocks");
  trace.clock_unit = lab::member<std::string>(from, "clock_unit", kWhere);
  for (const json& token : lab::array_of(from, "token", kWhere)) {
    trace.token.push_back(token_from(token, trace));
  }
  require_shown("token", trace.token.size(), trace.tokens, kShownTokens);
  const auto expert = lab::member<json>(from, "expert", kWhere);
  trace.expert.resize(static_cast<std::size_t>(trace.experts));
  take(expert, "wanted", trace.expert, &ExpertTrace::wanted);
  take(expert, "kept", trace.expert, &ExpertTrace::kept);
  take(expert, "first_slot", trace.expert, &ExpertTrace::first_slot);
  take(expert, "tiles", trace.expert, &ExpertTrace::tiles);
  take(expert, "padded", trace.expert, &ExpertTrace::padded);
  const auto tiles = lab::member<json>(from, "tiles", kWhere);
  trace.tiles.resize(lab::array_of(tiles, "expert", kWhere).size());
  take(tiles, "expert", trace.tiles, &TileTrace::expert);
  require_shown("tiles", trace.tiles.size(), trace.tiles_run, kShownTiles);
  for (const TileTrace& tile : trace.tiles) {
    in_range(tile.expert, 0, trace.experts - 1, "an expert's number");
  }
  take(tiles, "number", trace.tiles, &TileTrace::number);
  take(tiles, "kept", trace.tiles, &TileTrace::kept);
  take(tiles, "block", trace.tiles, &TileTrace::block);
  for (const TileTrace& tile : trace.tiles) {
    in_range(tile.block, 0, trace.blocks - 1, "a tile's block");
  }
  take(tiles, "processor", trace.tiles, &TileTrace::processor);
  take(tiles, "begin", trace.tiles, &TileTrace::begin);
  take(tiles, "end", trace.tiles, &TileTrace::end);
  return trace;
}

}  // namespace tilestep::moe_routing
