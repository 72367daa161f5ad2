// The authoring ladder: residual, RMSNorm and quantization by PyTorch, torch.compile and Triton, which
// assets/peers/fusion.py runs in a process of its own, and by this lesson's kernel.

#include <fmt/format.h>

#include <cmath>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/scripted_rungs.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/systems/fusion/bench/bench.hpp"
#include "kernels/systems/fusion/run/run.hpp"

namespace tilestep::fusion {
namespace {

using lab::real, lab::whole;

constexpr const char* kOurCopy = "the device's own copy";
constexpr const char* kTheirCopy = "PyTorch's copy";

/// A way to write the operator.
struct Way {
  const char* rung;  ///< as the script has it; "": this lesson's kernel
  const char* name;
  const char* limits;
};
constexpr Way kWays[] = {
    {"eager", "PyTorch eager",
     "Each operation is launched before the next is known, so its result goes to memory."},
    {"compile", "torch.compile",
     "It fuses operations as they are written: that dividing by the norm keeps the order of "
     "magnitudes, so that one round over the row is enough, is not written there."},
    {"triton", "Triton",
     "A program has a row. Which thread holds what of it, and where, is the compiler's choice."},
    {"", "CUDA", "Nothing is chosen for it: that is what its lines are for."}};

int lines_of(std::string_view rung) {
  if (rung.empty()) {
    return lab::lines_of_code(lab::asset("kernels/systems/fusion/rows.cu")) +
           lab::lines_of_code(lab::asset("kernels/systems/fusion/packs.hpp"));
  }
  const std::string_view script = lab::asset("assets/peers/fusion.py");
  const std::size_t first = script.find(fmt::format("# [rung: {}]", rung));
  return lab::lines_of_code(script.substr(first, script.find("# [end]", first) - first)) +
         (rung == "compile" ? lines_of("eager") : 0);
}

class Authoring {
 public:
  Authoring(lab::Bench& bench, const BenchSizes& sizes)
      : bench_(bench),
        sizes_(sizes),
        sample_(run_of({.rows = 4, .width = sizes.width, .fuse = "8,9"}, bench.device,
                       bench.progress)) {
    if (!sizes.peers) return;
    nlohmann::json first = request("eager", 1, 1);
    first["settle_ms"] = first["samples"] = 1;
    script_ = std::make_unique<lab::ScriptedRungs>(
        "fusion.py",
        "a Python with PyTorch and Triton, named by TILESTEP_PYTHON, and a GPU that it may use",
        first);
  }

  void run(const OurRung& ours, double share) {
    for (const int rows : sizes_.authored_rows)
      time(rows, ours, share / static_cast<double>(sizes_.authored_rows.size()));
    bench_.add_table(
        "authoring",
        fmt::format("Residual + RMSNorm + quantize on rows of {} numbers, in CUDA graphs, L2 cold",
                    sizes_.width),
        {lab::Column{"rung", "written in"}, whole("rows"), whole("lines", "lines of code"),
         whole("kernels"), real("each", "time", "µs", 2), lab::Column{"bandwidth", "bandwidth"},
         real("p10", "", "GB/s", 0), real("p90", "", "GB/s", 0),
         real("of_copy", "of a copy in the same process", "", 3),
         real("differ", "codes that differ from ours", "%", 3), lab::Column{"version", "version"},
         lab::Column{"limits", "what it cannot know"}},
        rows_);
    lab::Table missing{"authoring_missing", "Rungs that were not measured", {"why"}};
    const std::string why =
        script_ == nullptr ? "PyTorch and Triton were not asked." : script_->missing();
    if (!why.empty()) missing.add({why});
    bench_.report.add(std::move(missing));
  }

 private:
  nlohmann::json request(const char* rung, int rows, int slices) const {
    return {{"rung", rung}, {"rows", rows}, {"width", sizes_.width}, {"slices", slices}};
  }
  static std::vector<int> words(const std::vector<unsigned char>& bytes) {
    std::vector<int> all(bytes.size() / 2);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
    return all;
  }
  /// A rung that is asked for the sample's rows first.
  lab::Rung by_script(const Way& way, int rows, int slices) {
    const Inputs& in = sample_.inputs;
    const nlohmann::json check = {
        {"x", words(in.x)}, {"residual", words(in.residual)}, {"gain", words(in.gain)}};
    return script_->rung(
        way.name, request(way.rung, rows, slices),
        {{"rung", way.rung}, {"width", sizes_.width}, {"check", check}},
        [this, &way](const nlohmann::json& answer) { return compared(way.name, answer); });
  }
  /// Sums exactly, codes within their bound of double.
  lab::Closest compared(const char* name, const nlohmann::json& answer) {
    const std::vector<int> right = words(sample_.fused.sum);
    Results got;
    for (const double code : lab::numbers_of(answer, "codes", right.size()))
      got.codes.push_back(static_cast<std::uint8_t>(std::lround(code)));
    for (const double scale : lab::numbers_of(answer, "scale", sample_.fused.scale.size()))
      got.scale.push_back(static_cast<float>(scale));
    lab::Closest closest = compared_codes(sample_.shape, sample_.exact, got);
    const std::vector<double> sums = lab::numbers_of(answer, "sum", right.size());
    double differ = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      closest.add(sums[i], right[i], 0);
      differ += got.codes[i] != sample_.fused.codes[i] ? 1 : 0;
    }
    script_->cells(name)["differ"] = 100 * differ / static_cast<double>(right.size());
    return closest;
  }

  void time(int rows, const OurRung& ours, double share) {
    const auto slices =
        static_cast<int>(std::min(static_cast<std::size_t>(sizes_.launches),
                                  sizes_.numbers / numeric::elements_of(rows, sizes_.width)));
    const double numbers = static_cast<double>(rows) * sizes_.width * slices;
    lab::LadderPlan plan;
    plan.work = {.bytes_read = 4 * numbers, .bytes_written = 3 * numbers};
    plan.turn = {150, 14, 7, 20};
    plan.flush_l2 = true;
    plan.rate_id = "authoring_bandwidth";
    plan.shape = fmt::format("{} x {} BF16", rows, sizes_.width);
    plan.note = fmt::format("one of {} in a CUDA graph", slices);
    plan.cells = {{"rows", rows}};
    plan.rungs = {ours.chain(rows, slices)};
    plan.rungs[0].variant = fmt::format("CUDA {}", rows);
    plan.peers = {ours.copy(kOurCopy, static_cast<std::size_t>(plan.work.bytes() / 2))};
    if (script_ != nullptr && script_->available()) {
      plan.peers.push_back(script_->rung(kTheirCopy, request("copy", rows, slices)));
      for (const Way& way : kWays) {
        if (*way.rung != '\0') plan.peers.push_back(by_script(way, rows, slices));
      }
    }
    for (lab::Rung& peer : plan.peers) {
      peer.variant = fmt::format("{} {}", peer.name, rows);
      peer.rate_id = "authoring_bandwidth";
      peer.check = "authoring";
      peer.check_detail = "Four rows against double: sums exactly, codes as those of our kernel.";
    }
    const lab::Climb climb = bench_.climb(plan, share);
    const auto find = [&](std::string_view name) -> const lab::Timed* {
      for (const auto* some : {&climb.rungs, &climb.peers}) {
        for (const lab::Timed& one : *some) {
          if (one.name == name && one.timed()) return &one;
        }
      }
      return nullptr;
    };
    for (const Way& way : kWays) {
      const bool is_ours = *way.rung == '\0';
      const lab::Timed *one = find(way.name), *copy = find(is_ours ? kOurCopy : kTheirCopy);
      if (one == nullptr) continue;
      lab::Timed& row = rows_.emplace_back(*one);
      row.cells["lines"] = lines_of(way.rung);
      row.cells["limits"] = std::string(way.limits);
      row.cells["each"] = 1e3 * row.time_ms.median / slices;
      if (copy != nullptr) row.cells["of_copy"] = row.rate.median / copy->rate.median;
      if (is_ours) {
        row.cells["kernels"] = 1;
      } else {
        for (const auto& [id, cell] : script_->cells(way.name)) row.cells[id] = cell;
      }
    }
  }

  lab::Bench& bench_;
  const BenchSizes& sizes_;
  const Run sample_;
  std::unique_ptr<lab::ScriptedRungs> script_;
  std::vector<lab::Timed> rows_;
};

}  // namespace

void add_authoring(lab::Bench& bench, const BenchSizes& sizes, const OurRung& ours, double share) {
  Authoring(bench, sizes).run(ours, share);
}

}  // namespace tilestep::fusion
