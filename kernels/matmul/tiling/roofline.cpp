// The roofline: attainable FLOP/s = min(compute roof, FLOP per byte · memory roof).

#include <fmt/format.h>

#include <algorithm>

#include "kernels/matmul/tiling/report.hpp"

namespace tilestep::tiling {

std::vector<RooflinePoint> attention_points(double roof_tb_s, double roof_tflops) {
  constexpr double kKeys = 8192;      // L, of queries as well
  constexpr double kHead = 128;       // d
  constexpr double kQueryTile = 128;  // queries that share what is read of K and V
  constexpr double kBytes = 2;        // of a BF16 element
  const double flops = 4 * kKeys * kKeys * kHead;
  const double naive_bytes = kBytes * (4 * kKeys * kHead + 4 * kKeys * kKeys);
  const double tiled_bytes =
      kBytes * (2 * kKeys * kHead + 2 * kKeys * kHead * (kKeys / kQueryTile));
  const auto point = [&](const char* label, double bytes, std::string formula) {
    const double intensity = flops / bytes;
    return RooflinePoint{label, intensity, std::min(roof_tflops, intensity * roof_tb_s),
                         lab::Provenance::derived, std::move(formula)};
  };
  const std::string size = fmt::format("one head, L = {}, d = {}, BF16", kKeys, kHead);
  return {
      point("naive attention", naive_bytes,
            fmt::format("{}: 4·L²·d FLOP / 2·(4·L·d + 4·L²) B; Q, K, V and the output once, the "
                        "L × L scores and weights written and read each; height: the roof there",
                        size)),
      point(
          "tiled attention", tiled_bytes,
          fmt::format("{}: 4·L²·d FLOP / 2·(2·L·d + 2·L·d·L/{}) B; Q and the output once, K and V "
                      "once for every tile of {} queries, no L × L matrix; height: the roof there",
                      size, kQueryTile, kQueryTile)),
  };
}

lab::Table roofline_table(const std::vector<RooflinePoint>& points) {
  lab::Table table{"roofline",
                   "The rungs on the roofline",
                   {{"label", "label", "", -1},
                    {"flop_per_byte", "FLOP per byte", "FLOP/B", 2},
                    {"tflops", "rate", "TFLOP/s", 3},
                    {"provenance", "rate is", "", -1},
                    {"formula", "bytes", "", -1}},
                   {}};
  for (const RooflinePoint& point : points) {
    table.rows.push_back({point.label, point.flop_per_byte, point.tflops,
                          std::string(to_text(point.provenance)), point.formula});
  }
  return table;
}

}  // namespace tilestep::tiling
