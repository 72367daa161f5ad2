#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/matmul/tiling/lesson.hpp"

namespace tilestep::tiling {
namespace {

using nlohmann::json;

constexpr std::string_view kWhere = "tiling trace";

template <class T>
json numbers(const std::vector<T>& values) {
  json array = json::array();
  array.get_ref<json::array_t&>().reserve(values.size());
  for (const T value : values) {
    if constexpr (std::is_integral_v<T>) {
      array.push_back(value);
    } else {
      array.push_back(lab::number_to_json(static_cast<double>(value)));
    }
  }
  return array;
}

constexpr std::size_t kAnyCount = static_cast<std::size_t>(-1);

/// The array `name`, of `count` numbers; with `or_none` an empty one will do.
template <class T>
std::vector<T> read_numbers(const json& from, std::string_view name, std::size_t count = kAnyCount,
                            bool or_none = false) {
  const json& array = lab::array_of(from, name, kWhere);
  const bool good = count == kAnyCount || array.size() == count || (or_none && array.empty());
  if (!good) {
    throw Error(fmt::format("{}: '{}' must have {} numbers, but has {}", kWhere, name, count,
                            array.size()));
  }
  std::vector<T> values;
  values.reserve(array.size());
  for (const json& item : array) {
    try {
      values.push_back(static_cast<T>(lab::number_from_json(item)));
    } catch (const Error&) {
      throw Error(fmt::format("{}: '{}' holds something that is no number", kWhere, name));
    }
  }
  return values;
}

double read_number(const json& from, std::string_view name) {
  return lab::number_from_json(lab::member<json>(from, name, kWhere));
}

Variant variant_from(const json& from, std::string_view name) {
  const auto text = lab::member<std::string>(from, name, kWhere);
  for (int i = 0; i < kVariants; ++i) {
    if (to_text(static_cast<Variant>(i)) == text) return static_cast<Variant>(i);
  }
  throw Error(fmt::format("{}: there is no variant '{}'", kWhere, text));
}

struct IntColumn {
  const char* name;
  std::vector<int> KTile::*member;
  bool shared_tile_alone;
};
constexpr IntColumn kIntColumns[] = {
    {"a_loads", &KTile::a_loads, false},  {"b_loads", &KTile::b_loads, false},
    {"a_loader", &KTile::a_loader, true}, {"b_loader", &KTile::b_loader, true},
    {"a_slot", &KTile::a_slot, true},     {"b_slot", &KTile::b_slot, true},
    {"a_reads", &KTile::a_reads, true},   {"b_reads", &KTile::b_reads, true}};

json to_json(const BlockTrace& block) {
  json tiles = json::array();
  for (const KTile& tile : block.k_tiles) {
    json one = {{"sums", numbers(tile.sums)}, {"loads_so_far", tile.loads_so_far}};
    for (const IntColumn& column : kIntColumns) one[column.name] = numbers(tile.*column.member);
    tiles.push_back(std::move(one));
  }
  return {{"variant", std::string(to_text(block.variant))},
          {"lines", block.lines},
          {"k_tiles", std::move(tiles)}};
}

BlockTrace block_from_json(const json& from, std::size_t elements, std::size_t k_tiles) {
  BlockTrace block;
  block.variant = variant_from(from, "variant");
  block.lines = phase_lines(block.variant);
  const json& tiles = lab::array_of(from, "k_tiles", kWhere);
  if (tiles.size() != k_tiles) {
    throw Error(fmt::format("{}: 'k_tiles' must have {} entries, but has {}", kWhere, k_tiles,
                            tiles.size()));
  }
  for (const json& one : tiles) {
    KTile tile;
    tile.sums = read_numbers<float>(one, "sums", elements);
    tile.loads_so_far = lab::member<std::int64_t>(one, "loads_so_far", kWhere);
    for (const IntColumn& column : kIntColumns) {
      tile.*column.member = read_numbers<int>(one, column.name, elements, column.shared_tile_alone);
    }
    block.k_tiles.push_back(std::move(tile));
  }
  return block;
}

json to_json(const Races& races) {
  return {{"orders", races.orders},
          {"wrong_orders", races.wrong_orders},
          {"where", races.where},
          {"order", races.order},
          {"row", races.row},
          {"column", races.column},
          {"got", lab::number_to_json(static_cast<double>(races.got))},
          {"want", lab::number_to_json(races.want)},
          {"wrong_elements", races.wrong_elements}};
}

Races races_from_json(const json& from) {
  Races races;
  races.orders = lab::member<int>(from, "orders", kWhere);
  races.wrong_orders = lab::member<int>(from, "wrong_orders", kWhere);
  races.where = lab::member<std::string>(from, "where", kWhere);
  races.order = lab::member<int>(from, "order", kWhere);
  races.row = lab::member<int>(from, "row", kWhere);
  races.column = lab::member<int>(from, "column", kWhere);
  races.got = static_cast<float>(read_number(from, "got"));
  races.want = read_number(from, "want");
  races.wrong_elements = read_numbers<int>(from, "wrong_elements");
  return races;
}

}  // namespace

int BankWays::worst() const {
  return std::max({store_a, store_b, read_a, read_b});
}

std::array<int, kPhases> phase_lines(Variant variant) {
  const lab::SourceMarks marks = lab::source_marks(kSourcePath);
  if (variant == Variant::shared_tile) {
    return marks.lines({"load", "barrier after load", "multiply", "barrier after multiply"});
  }
  std::array<int, kPhases> lines{};
  if (has_picture(variant)) {
    lines[static_cast<std::size_t>(Phase::multiply)] =
        marks.line(fmt::format("{} multiply", to_text(variant)));
  }
  return lines;
}

json to_json(const Trace& trace) {
  const BankWays& ways = trace.bank_ways;
  return {{"variant", std::string(to_text(trace.variant))},
          {"tile", trace.tile},
          {"m", trace.m},
          {"n", trace.n},
          {"k", trace.k},
          {"padding", trace.padding},
          {"source", std::string(kSourcePath)},
          {"block_row", trace.block_row},
          {"block_col", trace.block_col},
          {"a_band", numbers(trace.a_band)},
          {"b_band", numbers(trace.b_band)},
          {"c_block", numbers(trace.c_block)},
          {"exact", numbers(trace.exact)},
          {"block", to_json(trace.block)},
          {"naive", to_json(trace.naive)},
          {"bank_ways",
           {{"store_a", ways.store_a},
            {"store_b", ways.store_b},
            {"read_a", ways.read_a},
            {"read_b", ways.read_b}}},
          {"global_loads", trace.global_loads},
          {"naive_global_loads", trace.naive_global_loads},
          {"races", to_json(trace.races)}};
}

Trace trace_from_json(const json& from) {
  Trace trace;
  trace.variant = variant_from(from, "variant");
  const auto size = [&](const char* name, int least, int most) {
    const int value = lab::member<int>(from, name, kWhere);
    if (value >= least && value <= most) return value;
    throw Error(fmt::format("{}: '{}' is {}; allowed: {}–{}", kWhere, name, value, least, most));
  };
  trace.tile = size("tile", 1, 32);
  trace.m = size("m", 1, 1 << 15);
  trace.n = size("n", 1, 1 << 15);
  trace.k = size("k", 1, 1 << 15);
  trace.padding = size("padding", 0, 32);
  trace.block_row = size("block_row", 0, (trace.m - 1) / trace.tile);
  trace.block_col = size("block_col", 0, (trace.n - 1) / trace.tile);
  const auto rows = static_cast<std::size_t>(trace.rows());
  const auto columns = static_cast<std::size_t>(trace.columns());
  const auto k = static_cast<std::size_t>(trace.k);
  const auto tile = static_cast<std::size_t>(trace.tile);
  trace.a_band = read_numbers<float>(from, "a_band", rows * k);
  trace.b_band = read_numbers<float>(from, "b_band", k * columns);
  trace.c_block = read_numbers<float>(from, "c_block", rows * columns);
  trace.exact = read_numbers<double>(from, "exact", rows * columns);
  const std::size_t k_tiles = (k + tile - 1) / tile;
  trace.block = block_from_json(lab::member<json>(from, "block", kWhere), tile * tile, k_tiles);
  trace.naive = block_from_json(lab::member<json>(from, "naive", kWhere), tile * tile, k_tiles);
  const json ways = lab::member<json>(from, "bank_ways", kWhere);
  trace.bank_ways.store_a = lab::member<int>(ways, "store_a", kWhere);
  trace.bank_ways.store_b = lab::member<int>(ways, "store_b", kWhere);
  trace.bank_ways.read_a = lab::member<int>(ways, "read_a", kWhere);
  trace.bank_ways.read_b = lab::member<int>(ways, "read_b", kWhere);
  trace.global_loads = lab::member<std::int64_t>(from, "global_loads", kWhere);
  trace.naive_global_loads = lab::member<std::int64_t>(from, "naive_global_loads", kWhere);
  trace.races = races_from_json(lab::member<json>(from, "races", kWhere));
  return trace;
}

}  // namespace tilestep::tiling
