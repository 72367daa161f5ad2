// What the lesson times: rows of all widths beside a copy, fusions beside the launches that they replace, kernels that
// hold too much, and cross entropy.

#include "kernels/systems/fusion/bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/counters.hpp"
#include "kernels/systems/fusion/run/run.hpp"

namespace tilestep::fusion {
namespace {

using lab::real, lab::whole;

constexpr std::size_t kPeriod = 1000003;  // a prime: rows of all widths differ

std::vector<std::uint16_t> bf16_bits(std::size_t count, std::int64_t seed, float scale,
                                     float offset) {
  std::mt19937 generator = lab::generator_of(seed);
  std::vector<std::uint16_t> bits;
  for (const float one : lab::uniform_floats(generator, count)) {
    bits.push_back(numeric::Bf16::bits(offset + scale * one));
  }
  return bits;
}

/// One launch of a fusion, or of what it replaces.
struct Launched {
  Parts parts;
  const char* name;
};
/// Launches, and one that does the same.
struct Fusion {
  const char* name;
  std::vector<Launched> apart;
  Launched together;
};
const std::vector<Fusion>& fusions() {
  static const std::vector<Fusion> kFusions = {
      {"residual + RMSNorm", {{kAdd, "residual"}, {kNorm, "RMSNorm"}}, {kAddNorm, "both"}},
      {"RMSNorm + quantize",
       {{kNorm, "RMSNorm"}, {kQuantize, "quantize"}},
       {kNormQuantize, "both"}},
      {"residual + RMSNorm + quantize",
       {{kAdd, "residual"}, {kNorm, "RMSNorm"}, {kQuantize, "quantize"}},
       {kAddNormQuantize, "all three"}},
      {"SwiGLU + quantize",
       {{kSwiglu, "SwiGLU"}, {kQuantize, "quantize"}},
       {kSwigluQuantize, "both"}}};
  return kFusions;
}
/// Bytes per number that a launch reads and writes.
lab::Work work_of(const Parts& parts, double numbers) {
  return {.bytes_read = (parts.first == First::load ? 2 : 4) * numbers,
          .bytes_written = (parts.first == First::add ? 2 : 0) * numbers +
                           (parts.quantize                               ? 1
                            : parts.norm || parts.first == First::swiglu ? 2
                                                                         : 0) *
                               numbers};
}

lab::Counter dram_counter() {
  return {"dram", "MB", {{simt::metric::kDramBytesRead, simt::metric::kDramBytesWritten}}, 1e-6};
}

class Bench : public lab::Bench {
 public:
  Bench(const lab::Bench& start, const BenchSizes& sizes)
      : lab::Bench(start),
        sizes_(sizes),
        inputs_(device, 2 * sizes.numbers, bf16_bits(kPeriod, 3, 4, 0)),
        gain_(device, static_cast<std::size_t>(kMostWidth), bf16_bits(kMostWidth, 5, 0.25f, 1)),
        sums_(device, 4 * sizes.numbers),
        codes_(device, sizes.numbers),
        scales_(device, sizes.numbers),
        loss_(device, sizes.logits),
        turns_(device, kTurns) {
    turns_.fill(0);
  }

  void run() {
    if (sizes_.quick)
      lab::leave_out(report, {"other widths", "other numbers of rows", "kernels that hold too much",
                              "other rules of sampling", "other epilogues", "PyTorch and Triton"});
    time_launches();
    time_widths();
    time_fusions();
    if (!sizes_.quick) time_held();
    time_losses();
    time_sampling(*this, sizes_, 0.15);
    add_epilogues(*this, sizes_, 0.1);
    if (!sizes_.quick) time_authoring();
    const lab::Measurement* fused = report.measurement("chain_bandwidth", "add-norm-quantize");
    report.summary = fmt::format(
        "Residual, RMSNorm and quantization in one kernel reach {} on {}; a copy reaches {}.",
        lab::headline(fused, 0), device.info().name, headline("copy_bandwidth", "", 0));
  }

 private:
  simt::Span<const unsigned char> input(std::size_t first, std::size_t numbers) const {
    return {reinterpret_cast<const unsigned char*>(inputs_.span().data + first), 2 * numbers};
  }
  simt::Span<const unsigned char> gain(int width) const {
    return {reinterpret_cast<const unsigned char*>(gain_.span().data),
            2 * static_cast<std::size_t>(width)};
  }
  simt::Span<unsigned char> output(std::size_t first, std::size_t numbers) {
    return {sums_.span().data + 2 * first, 2 * numbers};
  }

  /// The arrays of a launch over `rows` rows from number `first` on. What a launch reads is what the one before has
  /// written, if `later`: sums in the first half of the outputs, norms in the second.
  RowArrays arrays(const Parts& parts, const RowShape& shape, std::size_t first, bool later) {
    const std::size_t count = numeric::elements_of(shape.rows, shape.width);
    const std::size_t half = sizes_.numbers;
    RowArrays all;
    all.turns = turns_.span();
    if (parts.first == First::swiglu) {
      all.first = input(2 * first, 2 * count);
    } else if (!later) {
      all.first = input(first, count);
    } else {
      const auto from = output(parts.norm ? first : half + first, count);
      all.first = {from.data, from.count};
    }
    if (parts.first == First::add) all.second = input(half + first, count);
    if (parts.first == First::add) all.sum = output(first, count);
    if (parts.norm) all.gain = gain(shape.width);
    if (parts.quantize) {
      all.codes = {codes_.span().data + first, count};
      all.scale = {scales_.span().data + first / static_cast<std::size_t>(shape.width),
                   static_cast<std::size_t>(shape.rows)};
    } else if (parts.norm || parts.first == First::swiglu) {
      all.out = output(half + first, count);
    }
    return all;
  }

  std::vector<float> numbers(std::size_t first, std::size_t count) const {
    std::vector<float> some;
    for (const std::uint16_t bits : inputs_.values(first, count))
      some.push_back(numeric::Bf16::value(bits));
    return some;
  }

  /// Some rows of a launch's results, or of several that do the same, against double.
  lab::Closest compared(const Parts& parts, const RowShape& shape, std::size_t first) {
    lab::Closest closest;
    const auto width = static_cast<std::size_t>(shape.width);
    for (const int row : {0, shape.rows / 2, shape.rows - 1}) {
      const std::size_t at = first + static_cast<std::size_t>(row) * width;
      compare_row(parts, shape, at, closest);
    }
    return closest;
  }
  void compare_row(const Parts& parts, const RowShape& shape, std::size_t at,
                   lab::Closest& closest) {
    const auto width = static_cast<std::size_t>(shape.width);
    std::vector<float> h = numbers(parts.first == First::swiglu ? 2 * at : at, width);
    if (parts.first != First::load) {
      const std::vector<float> other =
          numbers(parts.first == First::swiglu ? 2 * at + width : sizes_.numbers + at, width);
      for (std::size_t i = 0; i < width; ++i) {
        h[i] = parts.first == First::add
                   ? rounded_to(Dtype::bf16, h[i] + other[i])
                   : rounded_to(
                         Dtype::bf16,
                         static_cast<float>(reference_swiglu(Dtype::bf16, h[i], other[i]).value));
      }
    }
    std::vector<float> g(width, 1.0f);
    const std::vector<std::uint16_t> bits = gain_.values(0, width);
    for (std::size_t i = 0; parts.norm && i < width; ++i) g[i] = numeric::Bf16::value(bits[i]);
    double squares = 0, largest = 0;
    for (const float one : h) squares += static_cast<double>(one) * static_cast<double>(one);
    const double norm =
        parts.norm ? std::sqrt(squares / static_cast<double>(width) + static_cast<double>(kEpsilon))
                   : 1;
    std::vector<double> n(width);
    for (std::size_t i = 0; i < width; ++i) {
      n[i] = static_cast<double>(h[i]) * static_cast<double>(g[i]) / norm;
      largest = std::max(largest, std::abs(n[i]));
    }
    // silu may be rounded the other way than here: a spacing more.
    const double slack = parts.first == First::swiglu ? 0x1p-8 : 0x1p-17;
    if (parts.quantize) {
      const std::vector<std::uint8_t> codes = codes_.download(at, width);
      const float scale = scales_.download(at / width, 1).front();
      for (std::size_t i = 0; i < width; ++i) {
        closest.add(decoded(codes[i], scale), n[i],
                    code_bound(n[i], std::abs(n[i]) * slack,
                               largest / static_cast<double>(kLargestCode), Dtype::bf16) *
                        (parts.first == First::swiglu ? 1.1 : 1));
      }
      return;
    }
    const bool is_sum = parts.first == First::add && !parts.norm;
    const std::vector<unsigned char> bytes =
        sums_.download(2 * ((is_sum ? 0 : sizes_.numbers) + at), 2 * width);
    const std::vector<float> got = unpacked(Dtype::bf16, bytes);
    for (std::size_t i = 0; i < width; ++i) {
      closest.add(got[i], n[i],
                  std::abs(n[i]) * slack + half_spacing(Dtype::bf16, std::abs(n[i]) * 1.01));
    }
  }
  /// Launches with their comparison: of the last one's results, which are those of `parts`.
  lab::Runnable runnable(const RowShape& shape, const Parts& parts, std::function<void()> launch) {
    const auto verify = [this, shape, parts, launch] {
      codes_.fill(0xFF);
      scales_.fill(0xFF);
      sums_.fill(0xFF);
      launch();
      device.synchronize();
      return compared(parts, shape, 0);
    };
    return {std::move(launch), verify};
  }

  static constexpr const char* kTolerance =
      "Some rows against double: half a spacing of the format and of E4M3, and what sums and roots "
      "round.";

  // ---- launches -----------------------------------------------------------------------------------

  void time_launches() {
    constexpr int kLaunches = 256;
    const RowShape shape{Dtype::bf16, 1, sizes_.width, 256, 4};
    const auto many = [this, shape] {
      for (int i = 0; i < kLaunches; ++i) {
        kernels_of(device).rows(device, shape, kNorm, arrays(kNorm, shape, 0, false));
      }
    };
    lab::LadderPlan plan;
    plan.work = work_of(kNorm, static_cast<double>(sizes_.width) * kLaunches);
    plan.turn = kPoint;
    plan.flush_l2 = false;
    plan.rungs = {
        {.name = "one by one", .why = "each launch is a call of the driver", .configurations = {}},
        {.name = "in a graph", .why = "the driver is called once for all", .configurations = {}}};
    plan.rungs[0].configurations = {{.name = "256 launches", .make = [many]() -> lab::Runnable {
                                       return {many, {}};
                                     }}};
    plan.rungs[1].configurations = {
        {.name = "256 launches", .make = [this, many]() -> lab::Runnable {
           return {device.graph_of(many), {}};
         }}};
    std::vector<lab::Timed> rows = climb(plan, 0.05).rungs;
    for (lab::Timed& timed : rows) {
      if (!timed.timed()) continue;
      const double each = timed.time_ms.median * 1e3 / kLaunches;
      timed.cells["each"] = each;
      report.add(lab::derived("launch_cost", timed.variant, each, "µs",
                              "time of 256 launches of one row / 256"));
      if (timed.name == "in a graph") launch_us_ = each;
    }
    add_table("launches", fmt::format("A launch that norms one row of {} numbers", sizes_.width),
              {"rung", real("each", "per launch", "µs", 2), lab::Column{"why", "why"}}, rows);
  }

  // ---- widths ---------------------------------------------------------------------------------------

  /// The ways to hold a row of this width that are worth a try.
  std::vector<RowShape> ways(int width, int rows) const {
    std::vector<RowShape> all;
    for (const int packs : {1, 2, 4, 8}) {
      for (int threads = 32; threads <= kMostThreads; threads *= 2) {
        const RowShape shape{Dtype::bf16, rows, width, threads, packs};
        const int cluster = cluster_of(shape);
        RowShape half = shape;
        half.threads /= 2;
        const bool wasteful = threads > 32 && cluster_of(half) == cluster;
        if (cluster == 0 || wasteful || (cluster > 1 && (width <= 8192 || threads < 256))) continue;
        if (packs == 8 && (threads > 512 || width < 65536)) continue;
        for (const bool stream : {false, true}) {
          if (packs == 8 && !stream) continue;
          all.push_back(shape);
          all.back().stream = stream;
        }
      }
    }
    for (const int threads : {256, 512, 1024}) {
      if (width < 8192) continue;
      RowShape shape{Dtype::bf16, rows, width, threads, 0};
      for (shape.least_cluster = cluster_of(shape); shape.least_cluster <= kMostCluster;
           shape.least_cluster *= 2) {
        if (width / shape.least_cluster >= 4096 &&
            shape.least_cluster <= 2 * cluster_of({Dtype::bf16, rows, width, threads, 0}))
          all.push_back(shape);
      }
    }
    return all;
  }
  static std::string said(const RowShape& shape) {
    const int cluster = cluster_of(shape);
    const std::string where = shape.packs == 0 ? "in shared memory"
                                               : fmt::format("up to {} packs each{}", shape.packs,
                                                             shape.stream ? ", in a stream" : "");
    return cluster == 1 ? fmt::format("{} threads, {}", shape.threads, where)
                        : fmt::format("{} blocks of {} threads, {}", cluster, shape.threads, where);
  }

  lab::Rung rung(std::string name, std::string variant, const Parts& parts, int width, int rows) {
    lab::Rung rung{.name = std::move(name), .why = "", .configurations = {}};
    rung.variant = std::move(variant);
    rung.check = "rows";
    rung.check_detail = kTolerance;
    for (const RowShape& shape : ways(width, rows)) {
      rung.configurations.push_back(
          {.name = said(shape),
           .make =
               [this, shape, parts] {
                 return runnable(shape, parts, [this, shape, parts] {
                   kernels_of(device).rows(device, shape, parts, arrays(parts, shape, 0, false));
                 });
               },
           .cells = {{"blocks", cluster_of(shape)},
                     {"threads", shape.threads},
                     {"held", shape.packs == 0 ? "shared memory"
                              : shape.stream   ? "registers, the next row in shared memory"
                                               : "registers"}}});
    }
    return rung;
  }

  void time_widths() {
    std::vector<lab::Timed> all;
    const double share = 0.35 / static_cast<double>(2 * sizes_.widths.size());
    for (const Launched& kernel : {Launched{kNorm, "RMSNorm"},
                                   Launched{kAddNormQuantize, "residual + RMSNorm + quantize"}}) {
      for (const int width : sizes_.widths) {
        const auto rows = static_cast<int>(sizes_.numbers / static_cast<std::size_t>(width));
        const bool main = kernel.parts == kAddNormQuantize && width == sizes_.width;
        lab::LadderPlan plan;
        plan.work = work_of(kernel.parts, static_cast<double>(sizes_.numbers));
        plan.turn = kPoint;
        plan.shape = fmt::format("{} x {} BF16", rows, width);
        plan.note = "each number counted once each way";
        plan.cells = {{"width", width}};
        const auto half = static_cast<std::size_t>(plan.work.bytes() / 2);
        plan.peers = {lab::device_copy(device, "the device's own copy", sums_.span().data,
                                       input(0, 2 * sizes_.numbers).data, half)};
        plan.peers[0].rate_id = main ? "copy_bandwidth" : "";
        plan.rate_id = main ? "chain_bandwidth" : "";
        plan.rungs = {
            rung(kernel.name, main ? "add-norm-quantize" : "", kernel.parts, width, rows)};
        lab::append(all, climb(plan, share).rungs);
      }
    }
    add_table("widths", fmt::format("{} numbers in rows of all widths", sizes_.numbers),
              {lab::Column{"rung", "kernel"}, whole("width"), whole("blocks", "blocks per row"),
               whole("threads"), lab::Column{"held", "held in"}, lab::Column{"time", "time"},
               lab::Column{"bandwidth", "bandwidth"}, real("p10", "", "GB/s", 0),
               real("p90", "", "GB/s", 0), real("fraction", "of copy", "", 3)},
              all);
  }

  // ---- fusions ---------------------------------------------------------------------------------------

  /// The chain over so many parts of the inputs one after another, as layers do.
  lab::Rung chain(std::string name, const std::vector<Launched>& launches, const Parts& parts,
                  int rows, int slices) {
    lab::Rung rung{.name = std::move(name), .why = "", .configurations = {}};
    rung.check = "fusions";
    rung.check_detail = kTolerance;
    for (const int way : {1, 2, 4, -1, -2, -4}) {  // packs; below 0, in a stream
      RowShape shape{Dtype::bf16, rows, sizes_.width, 32, std::abs(way), 1, way < 0};
      while (shape.threads < kMostThreads && cluster_of(shape) != 1) shape.threads *= 2;
      if (cluster_of(shape) != 1) continue;
      const auto start = [this, shape, launches, slices] {
        const std::size_t count = numeric::elements_of(shape.rows, shape.width);
        for (int slice = slices - 1; slice >= 0; --slice) {
          bool later = false;
          for (const Launched& one : launches) {
            kernels_of(device).rows(
                device, shape, one.parts,
                arrays(one.parts, shape, static_cast<std::size_t>(slice) * count, later));
            later = true;
          }
        }
      };
      rung.configurations.push_back({.name = said(shape), .make = [this, shape, parts, start] {
                                       return runnable(shape, parts, device.graph_of(start));
                                     }});
    }
    return rung;
  }

  void time_fusions() {
    std::vector<lab::Timed> all;
    const double share = 0.25 / static_cast<double>(fusions().size() * sizes_.rows.size());
    for (const int rows : sizes_.rows) {
      const std::size_t count = numeric::elements_of(rows, sizes_.width);
      const auto slices = static_cast<int>(
          std::min<std::size_t>(static_cast<std::size_t>(sizes_.launches), sizes_.numbers / count));
      for (const Fusion& fusion : fusions()) {
        const double numbers = static_cast<double>(count) * slices;
        double bytes_apart = 0;
        for (const Launched& one : fusion.apart) bytes_apart += work_of(one.parts, 1).bytes();
        const lab::Work work = work_of(fusion.together.parts, numbers);
        lab::LadderPlan plan;
        plan.work = work;
        plan.turn = kPoint;
        plan.flush_l2 = true;
        plan.shape = fmt::format("{} x {} BF16", rows, sizes_.width);
        plan.note = fmt::format("one of {} in a CUDA graph", slices);
        plan.cells = {{"fusion", fusion.name}, {"rows", rows}};
        if (rows == sizes_.rows.back()) plan.counters = {dram_counter()};
        plan.rungs = {chain("apart", fusion.apart, fusion.together.parts, rows, slices),
                      chain("together", {fusion.together}, fusion.together.parts, rows, slices)};
        std::vector<lab::Timed> pair = climb(plan, share).rungs;
        add_fusion(all, pair, static_cast<double>(count), slices, bytes_apart,
                   work_of(fusion.together.parts, 1).bytes(),
                   static_cast<int>(fusion.apart.size()) - 1);
      }
    }
    add_table(
        "fusions",
        fmt::format("Fusions on rows of {} numbers, in CUDA graphs, L2 cold", sizes_.width),
        {lab::Column{"fusion", "fusion"}, whole("rows"), real("apart", "apart", "µs", 2),
         real("together", "together", "µs", 2), real("saving", "saved", "µs", 2),
         real("predicted", "predicted", "µs", 2), real("times", "times as fast", "", 2),
         real("bytes_apart", "bytes apart", "B", 0), real("bytes", "together", "B", 0),
         real("byte_ratio", "ratio of bytes", "", 2), real("dram_apart", "counted apart", "B", 2),
         real("dram_together", "counted together", "B", 2)},
        all);
  }
  /// A row of a fusion, from its two rungs.
  void add_fusion(std::vector<lab::Timed>& all, std::vector<lab::Timed>& pair, double count,
                  int slices, double bytes_apart, double bytes, int launches_saved) {
    if (pair.size() < 2 || !pair[0].timed() || !pair[1].timed()) return;
    const auto each = [&](const lab::Timed& timed) { return timed.time_ms.median * 1e3 / slices; };
    lab::Timed row = pair[1];
    const double rate = copy_rate();
    row.cells["apart"] = each(pair[0]);
    row.cells["together"] = each(pair[1]);
    row.cells["saving"] = each(pair[0]) - each(pair[1]);
    if (rate > 0) {
      row.cells["predicted"] =
          (bytes_apart - bytes) * count / (rate * 1e3) + launches_saved * launch_us_;
    }
    row.cells["times"] = each(pair[0]) / each(pair[1]);
    row.cells["bytes_apart"] = bytes_apart;
    row.cells["bytes"] = bytes;
    row.cells["byte_ratio"] = bytes_apart / bytes;
    const auto counted = [&](const lab::Timed& timed, const char* id) {
      if (const auto mb = timed.number("dram")) row.cells[id] = *mb * 1e6 / (count * slices);
    };
    counted(pair[0], "dram_apart");
    counted(pair[1], "dram_together");
    all.push_back(std::move(row));
  }
  /// GB/s.
  double copy_rate() const {
    const lab::Measurement* copy = report.measurement("copy_bandwidth", "");
    return copy == nullptr ? 0 : copy->value;
  }

  void time_authoring() {
    const auto ours = [this](int rows, int slices) {
      return chain("CUDA", {{kAddNormQuantize, ""}}, kAddNormQuantize, rows, slices);
    };
    const auto copy = [this](const char* name, std::size_t bytes) {
      return lab::device_copy(device, name, sums_.span().data, input(0, 2 * sizes_.numbers).data,
                              bytes);
    };
    add_authoring(*this, sizes_, {ours, copy}, 0.05);
  }

  // ---- holding too much ------------------------------------------------------------------------------

  void time_held() {
    const int width = sizes_.held_width;
    const auto rows = static_cast<int>(std::min(sizes_.held_numbers, sizes_.numbers) /
                                       static_cast<std::size_t>(width));
    if (rows < 1) return;
    lab::LadderPlan plan;
    plan.work = work_of(kAddNormQuantize, static_cast<double>(rows) * width);
    plan.turn = kPoint;
    plan.shape = fmt::format("{} x {} BF16", rows, width);
    for (const int values : kHeldValues) {
      const RowShape shape{Dtype::bf16, rows, width, width / values, 4};
      lab::Rung& rung = plan.rungs.emplace_back();
      rung.name = fmt::format("{} numbers each", values);
      rung.check = "held";
      rung.check_detail = kTolerance;
      rung.cells = {{"values", values}, {"threads", width / values}};
      const simt::Resources resources = kernels_of(device).resources_holding(values, width);
      if (resources.compiled) {
        rung.cells["registers"] = resources.registers;
        rung.cells["local"] = static_cast<std::int64_t>(resources.local_bytes);
        rung.cells["occupancy"] = 100 * resources.occupancy();
      }
      rung.configurations = {
          {.name = fmt::format("{} threads", width / values), .make = [this, shape, values] {
             return runnable(shape, kAddNormQuantize, [this, shape, values] {
               kernels_of(device).rows_holding(device, values, shape,
                                               arrays(kAddNormQuantize, shape, 0, false));
             });
           }}};
    }
    plan.peers = {lab::device_copy(device, "the device's own copy", sums_.span().data,
                                   input(0, 2 * sizes_.numbers).data,
                                   static_cast<std::size_t>(plan.work.bytes() / 2))};
    plan.counters = {dram_counter()};
    add_table(
        "held", fmt::format("Rows of {} numbers, held by ever fewer threads", width),
        {lab::Column{"rung", "held"}, whole("values", "numbers of a thread"), whole("threads"),
         whole("registers"), whole("local", "spilled per thread", "B"),
         real("occupancy", "", "%", 0), real("dram", "DRAM", "MB", 0), lab::Column{"time", "time"},
         lab::Column{"bandwidth", "bandwidth"}, real("p10", "", "GB/s", 0),
         real("p90", "", "GB/s", 0), real("fraction", "of copy", "", 3)},
        climb(plan, 0.1).rungs);
  }

  // ---- cross entropy ---------------------------------------------------------------------------------

  void time_losses() {
    std::vector<lab::Timed> all;
    for (const int vocabulary : sizes_.vocabularies) {
      const std::size_t rows = sizes_.logits / static_cast<std::size_t>(vocabulary);
      std::vector<int> host;
      for (std::size_t row = 0; row < rows; ++row)
        host.push_back(static_cast<int>(row * 7919 % vocabulary));
      const auto targets = std::make_shared<simt::Buffer<int>>(device, host);
      lab::LadderPlan plan;
      plan.work = {.bytes_read = 2.0 * static_cast<double>(rows * vocabulary)};
      plan.turn = kPoint;
      plan.shape = fmt::format("{} x {} BF16", rows, vocabulary);
      plan.cells = {{"vocabulary", vocabulary}};
      plan.peers = {lab::device_copy(device, "the device's own copy", sums_.span().data,
                                     input(0, sizes_.numbers).data,
                                     static_cast<std::size_t>(plan.work.bytes() / 2))};
      lab::Rung& rung = plan.rungs.emplace_back();
      rung.name = "softmax + cross entropy";
      rung.check = "losses";
      rung.check_detail =
          "Losses of some rows against double: 2 ulp of an exponential, and the additions.";
      for (const int threads : {256, 512, 1024}) {
        const LossShape shape{Dtype::bf16, static_cast<int>(rows), vocabulary, threads};
        const auto launch = [this, shape, targets] {
          kernels_of(device).cross_entropy(device, shape, input(0, sizes_.logits), targets->span(),
                                           loss_.span());
        };
        rung.configurations.push_back(
            {.name = fmt::format("{} threads", threads), .make = [this, shape, launch, host] {
               return lab::judged(device, loss_, launch,
                                  [this, shape, host] { return compared_losses(shape, host); });
             }});
      }
      lab::append(all, climb(plan, 0.1 / static_cast<double>(sizes_.vocabularies.size())).rungs);
    }
    add_table("losses", "Softmax and cross entropy, each logit read once",
              {lab::Column{"rung", "kernel"}, whole("vocabulary"), lab::Column{"time", "time"},
               lab::Column{"bandwidth", "bandwidth"}, real("p10", "", "GB/s", 0),
               real("p90", "", "GB/s", 0), real("fraction", "of copy", "", 3)},
              all);
  }
  lab::Closest compared_losses(const LossShape& shape, const std::vector<int>& targets) const {
    lab::Closest closest;
    const auto width = static_cast<std::size_t>(shape.vocabulary);
    for (const int row : {0, shape.rows / 2, shape.rows - 1}) {
      const auto at = static_cast<std::size_t>(row);
      const std::vector<float> logits = numbers(at * width, width);
      closest.add(loss_.download(at, 1).front(), reference_loss(logits, targets[at]),
                  loss_bound(logits, shape.threads));
    }
    return closest;
  }

  const BenchSizes& sizes_;
  lab::Repeated<std::uint16_t> inputs_, gain_;
  simt::Buffer<unsigned char> sums_;
  simt::Buffer<std::uint8_t> codes_;
  simt::Buffer<float> scales_, loss_;
  simt::Buffer<int> turns_;
  double launch_us_ = 0;
};

}  // namespace

lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes) {
  simt::require_capability(device.info(), "fusion", 90);
  progress.report(0, "making rows");
  return lab::run_bench<Bench>(device, progress, sizes);
}

}  // namespace tilestep::fusion
