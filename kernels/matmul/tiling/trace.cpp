#include <algorithm>
#include <string>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/source.hpp"
#include "kernels/matmul/tiling/lesson.hpp"

namespace tilestep::tiling {
namespace {

constexpr int kNone = -1;
constexpr int kMostEdge = 1 << 15;
constexpr int kMultiply = static_cast<int>(Phase::multiply);

lab::Fields<KTile> k_tile_fields(const Trace& trace, Variant variant) {
  const int elements = trace.tile * trace.tile;
  // What only a kernel with tiles in shared memory has.
  const int shared = variant == Variant::shared_tile ? elements : 0;
  const int slots = trace.tile * (trace.tile + trace.padding);
  const lab::When multiplied{0, variant == Variant::shared_tile ? kMultiply : 0};
  const auto operand = [&](const std::string& name) {
    using Operand = KTile::Operand;
    return lab::Fields<Operand>()
        .wholes(name + "_loads", &Operand::loads, elements, 0, lab::kMostCount)
        .wholes(name + "_loader", &Operand::loader, shared, kNone, elements - 1)
        .wholes(name + "_slot", &Operand::slot, shared, kNone, slots - 1)
        .wholes(name + "_reads", &Operand::reads, shared, 0, lab::kMostCount)
        .from(multiplied);
  };
  return lab::Fields<KTile>(lab::Digits::all)
      .reals("sums", &KTile::sums, elements)
      .from(multiplied)
      .whole("loads_so_far", &KTile::loads_so_far, 0)
      .inlined(&KTile::a, operand("a"))
      .inlined(&KTile::b, operand("b"))
      .whole("along_k", &KTile::along_k, -1, 1)
      .left_out_for(1)
      .from(multiplied);
}

lab::Fields<BlockTrace> block_fields(const Trace& trace) {
  const auto k_tiles = [&trace](const BlockTrace& block) {
    return k_tile_fields(trace, block.variant);
  };
  const int tiles = has_picture(trace.variant) ? (trace.k - 1) / trace.tile + 1 : 0;
  return lab::Fields<BlockTrace>()
      .name("variant", &BlockTrace::variant)
      .lines("lines", &BlockTrace::lines,
             [](const BlockTrace& block) { return phase_lines(block.variant); })
      .list("k_tiles", &BlockTrace::k_tiles, k_tiles, tiles)
      .known_each(lab::kOneAStep);
}

lab::Fields<BankWays> ways_fields() {
  return lab::Fields<BankWays>().whole(TILESTEP_MEMBERS(BankWays, store_a, store_b, read_a, read_b),
                                       1, 32);
}

lab::Fields<Races> race_fields(const Trace& trace) {
  return lab::Fields<Races>(lab::Digits::all)
      .whole("orders", &Races::orders, 0, lab::kMostCount)
      .whole("wrong_orders", &Races::wrong_orders, 0, &Races::orders)
      .text("where", &Races::where)
      .whole("order", &Races::order, kNone, lab::kMostCount)
      .whole("row", &Races::row, kNone, trace.m - 1)
      .whole("column", &Races::column, kNone, trace.n - 1)
      .real(TILESTEP_MEMBERS(Races, got, want))
      .wholes("wrong_elements", &Races::wrong_elements, lab::kAnyCount, 0,
              trace.tile * trace.tile - 1);
}

/// What the shown rung did is known when its picture says it, what those below it did from the start.
lab::Fields<Rung> rung_fields(const Trace& trace) {
  const auto when = [shown = trace.variant](Share share) {
    return [shown, share](const Rung& rung) {
      return rung.variant == shown ? lab::When{1, static_cast<int>(share)} : lab::When{};
    };
  };
  const auto units = [shown = trace.variant](const Rung& r) {
    return r.variant == shown ? r.rows / r.unit_rows * (r.columns / r.unit_columns) : 0;
  };
  constexpr int kMostOfBlock = 256;
  return lab::Fields<Rung>()
      .name("variant", &Rung::variant)
      .whole(TILESTEP_MEMBERS(Rung, rows, columns, depth), 1, kMostOfBlock)
      .whole("threads", &Rung::threads, 1, 1024)
      .whole("owned", &Rung::owned, 0, lab::kMostCount)
      .known(when(Share::thread))
      .whole("reads", &Rung::reads, 0, lab::kMostCount)
      .known(when(Share::reads))
      .whole("requests", &Rung::requests, 0, lab::kMostCount)
      .known(when(Share::reads))
      .whole("unit_rows", &Rung::unit_rows, 1, &Rung::rows)
      .whole("unit_columns", &Rung::unit_columns, 1, &Rung::columns)
      .check([](const Rung& r) {
        const bool whole = r.rows % r.unit_rows == 0 && r.columns % r.unit_columns == 0;
        return std::string(whole ? "" : "the tile is no whole number of units");
      })
      .wholes("owners", &Rung::owners, units, kNone, [](const Rung& r) { return r.threads - 1; })
      .known(when(Share::warps));
}

std::string wrong_rungs(const Trace& trace) {
  const int first = static_cast<int>(Variant::shared_tile);
  const int last = has_picture(trace.variant) ? first - 1 : static_cast<int>(trace.variant);
  bool right = static_cast<int>(trace.rungs.size()) == last - first + 1;
  for (int i = first; right && i <= last; ++i) {
    right = trace.rungs[static_cast<std::size_t>(i - first)].variant == static_cast<Variant>(i);
  }
  return right ? "" : "'rungs' are not those from shared-tile to the variant";
}

lab::When at_end(const Trace& trace) {
  if (!has_picture(trace.variant)) return {1, kShares - 1};
  return {trace.k_tiles(), trace.block.variant == Variant::shared_tile ? kMultiply : 0};
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>(lab::Digits::all)
      .name("variant", &Trace::variant)
      .whole("tile", &Trace::tile, 1, 32)
      .whole(TILESTEP_MEMBERS(Trace, m, n, k), 1, kMostEdge)
      .whole("padding", &Trace::padding, 0, 32)
      .constant("source", kSourcePath)
      .whole("block_row", &Trace::block_row, 0, [](auto& t) { return (t.m - 1) / t.tile; })
      .whole("block_col", &Trace::block_col, 0, [](auto& t) { return (t.n - 1) / t.tile; })
      .reals("a_band", &Trace::a_band, [](auto& t) { return t.rows() * t.k; })
      .reals("b_band", &Trace::b_band, [](auto& t) { return t.k * t.columns(); })
      .reals("c_block", &Trace::c_block, [](auto& t) { return t.rows() * t.columns(); })
      .known(at_end)
      .reals("exact", &Trace::exact, [](auto& t) { return t.rows() * t.columns(); })
      .known(at_end)
      .object("block", &Trace::block, block_fields)
      .object("naive", &Trace::naive, block_fields)
      .object("bank_ways", &Trace::bank_ways, ways_fields())
      .whole(TILESTEP_MEMBERS(Trace, global_loads, naive_global_loads), 0)
      .object("races", &Trace::races, race_fields)
      .list("rungs", &Trace::rungs, rung_fields)
      .left_out_for(nlohmann::json::array())
      .check(wrong_rungs);
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
        marks.line(std::string(name_of(variant)) + " multiply");
  }
  return lines;
}

TILESTEP_TRACE_JSON("tiling trace", trace_fields())

}  // namespace tilestep::tiling
