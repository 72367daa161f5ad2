// The roofline: attainable FLOP/s = min(compute roof, FLOP per byte · memory roof).

#include <fmt/format.h>

#include <algorithm>

#include "kernels/matmul/tiling/run/report.hpp"

namespace tilestep::tiling {

std::vector<RooflinePoint> attention_points(const Roofs& roofs) {
  constexpr double kKeys = 8192;      // L, of queries as well
  constexpr double kHead = 128;       // d
  constexpr double kQueryTile = 128;  // queries that share what is read of K and V
  constexpr double kBytes = 2;        // of a BF16 element
  const double flops = 4 * kKeys * kKeys * kHead;
  const double once = kBytes * 4 * kKeys * kHead;
  const double scores = kBytes * 4 * kKeys * kKeys;
  const double by_tiles = kBytes * 2 * kKeys * kHead * (1 + kKeys / kQueryTile);
  const std::string size = fmt::format("one head, L = {}, d = {}, BF16", kKeys, kHead);
  const auto point = [&](const char* label, double bytes, double tb_s, const char* memory,
                         const std::string& what) {
    const double intensity = flops / bytes;
    const bool by_memory = intensity * tb_s < roofs.tflops;
    return RooflinePoint{label,
                         intensity,
                         std::min(roofs.tflops, intensity * tb_s),
                         lab::Provenance::derived,
                         fmt::format("{}: 4·L²·d FLOP / {}; height: the roof there", size, what),
                         by_memory ? memory : "compute"};
  };
  std::vector<RooflinePoint> points = {
      point("naive attention", once + scores, roofs.dram_tb_s, "DRAM",
            "2·(4·L·d + 4·L²) B; Q, K, V and the output once, the L × L scores and weights written "
            "and read each"),
      // All heads' tiles of queries run through K and V side by side, so that L2 answers them.
      point("tiled attention", once, roofs.dram_tb_s, "DRAM",
            "2·4·L·d B from DRAM; Q, K, V and the output once, no L × L matrix")};
  if (roofs.l2_tb_s > 0) {
    points.push_back(
        point("tiled attention, L2", by_tiles, roofs.l2_tb_s, "L2",
              fmt::format("2·(2·L·d + 2·L·d·L/{0}) B from L2; K and V once for every tile of {0} "
                          "queries",
                          kQueryTile)));
  }
  return points;
}

lab::Table roofline_table(const std::vector<RooflinePoint>& points) {
  lab::Table table{"roofline",
                   "The rungs on the roofline",
                   {"label", lab::real("flop_per_byte", "FLOP per byte", "FLOP/B", 2),
                    lab::real("tflops", "rate", "TFLOP/s", 3), lab::column("provenance", "rate is"),
                    lab::column("formula", "bytes"), lab::column("bound", "bound by")}};
  for (const RooflinePoint& point : points) {
    table.add({point.label, point.flop_per_byte, point.tflops, point.provenance, point.formula,
               point.bound.empty() ? lab::Cell() : lab::Cell(point.bound)});
  }
  return table;
}

}  // namespace tilestep::tiling
