#include "kernels/attention/shared/matrix_fields.hpp"

namespace tilestep::attention {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;

}  // namespace

lab::Fields<Shape> shape_fields() {
  return lab::Fields<Shape>()
      .whole("length", &Shape::length, 1, kMostLength)
      .whole(TILESTEP_MEMBERS(Shape, heads, kv_heads), 1, kMostHeads)
      .whole("asked_length", &Shape::asked_length, &Shape::length, kMostLength)
      .whole("asked_heads", &Shape::asked_heads, &Shape::heads, kMostHeads)
      .whole("asked_kv_heads", &Shape::asked_kv_heads, &Shape::kv_heads, kMostHeads)
      .whole("head_dim", &Shape::head_dim, 1, kMostColumns)
      .whole("columns", &Shape::columns, &Shape::head_dim, kMostColumns);
}

lab::Fields<Dispatch> plan_fields(const Shape& shape) {
  const auto tiles = [length = shape.length](int block) { return (length - 1) / block + 1; };
  return lab::Fields<Dispatch>()
      .text(TILESTEP_MEMBERS(Dispatch, filled, resized, cut))
      .whole(TILESTEP_MEMBERS(Dispatch, block_q, block_k), 16, 1024)
      .whole(TILESTEP_MEMBERS(Dispatch, q_tiles, k_tiles), 1, kMostLength)
      .whole("threads", &Dispatch::threads, 1, 1024)
      .whole("shared_bytes", &Dispatch::shared_bytes, 0, lab::kMostCount)
      .whole("blocks", &Dispatch::blocks, 1, lab::kMostCount)
      .check([tiles](const Dispatch& c) -> std::string {
        const bool good = c.q_tiles == tiles(c.block_q) && c.k_tiles == tiles(c.block_k);
        return good ? "" : "the numbers of tiles do not follow from the length";
      });
}

lab::Fields<TileVisit> visit_fields() {
  return lab::Fields<TileVisit>()
      .name("kind", &TileVisit::kind)
      .from(lab::kAhead)
      .whole("block", &TileVisit::block, -1, lab::kMostCount)
      .from(lab::kAhead)
      .whole("order", &TileVisit::order, -1, lab::kMostCount)
      .from(lab::kAhead)
      .whole("rescaled", &TileVisit::rescaled, -1, kMostLength)
      .whole(TILESTEP_MEMBERS(TileVisit, o_reads, o_writes), 0, kMostLength)
      .whole(TILESTEP_MEMBERS(TileVisit, begin, end), -1, kMostClock);
}

lab::Fields<BlockLane> block_fields() {
  return lab::Fields<BlockLane>()
      .whole("block", &BlockLane::block, 0, lab::kMostCount)
      .whole("head", &BlockLane::head, 0, kMostHeads - 1)
      .whole("tile", &BlockLane::tile, -1, kMostLength)
      .whole("visits", &BlockLane::visits, 0, lab::kMostCount)
      .whole(TILESTEP_MEMBERS(BlockLane, begin, end), -1, kMostClock);
}

lab::Fields<ChosenPlace> chosen_fields(const Matrix& trace) {
  return lab::Fields<ChosenPlace>()
      .whole("head", &ChosenPlace::head, 0, trace.shape.heads - 1)
      .whole("query", &ChosenPlace::query, 0, trace.shape.length - 1)
      .whole("component", &ChosenPlace::component, 0, trace.shape.head_dim - 1)
      .whole("q_tile", &ChosenPlace::q_tile, 0, trace.plan.q_tiles - 1)
      .whole("block", &ChosenPlace::block, 0, lab::kMostCount);
}

lab::Fields<LedgerRow> ledger_fields() {
  return lab::Fields<LedgerRow>()
      .name("tensor", &LedgerRow::tensor)
      .whole(TILESTEP_MEMBERS(LedgerRow, loaded, stored, formula_loaded, formula_stored,
                              whole_loaded, whole_stored, held),
             0, kMostBytes)
      .whole("kept", &LedgerRow::kept, 0, &LedgerRow::held);
}

lab::Fields<BrokenResult> result_fields(lab::When known) {
  const auto at_the_end = [known](const BrokenResult&) { return known; };
  return lab::Fields<BrokenResult>(lab::Digits::all)
      .text("outcome", &BrokenResult::outcome)
      .whole("wrong", &BrokenResult::wrong, 0, lab::kMostCount)
      .known(at_the_end)
      .whole("elements", &BrokenResult::elements, 0, lab::kMostCount)
      .name("tensor", &BrokenResult::tensor)
      .whole("head", &BrokenResult::head, -1, kMostHeads)
      .whole("query", &BrokenResult::query, -1, kMostLength)
      .whole("component", &BrokenResult::component, -1, kMostColumns)
      .real("got", &BrokenResult::got)
      .known(at_the_end)
      .real("want", &BrokenResult::want)
      .known(at_the_end)
      .real("largest", &BrokenResult::largest)
      .known(at_the_end)
      .whole("more_bytes", &BrokenResult::more_bytes, 0, kMostBytes);
}

}  // namespace tilestep::attention
