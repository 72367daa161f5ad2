// What each instrument shows of a program: counted at the size that is run, timed at the size that fills a GPU.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/base/lab/occupancy.hpp"
#include "kernels/systems/triage/run/run.hpp"

namespace tilestep::triage {
namespace {

constexpr std::size_t kTapeEntries = std::size_t{1} << 17;

/// Another reading of the same kernel.
const KernelReading* same(const std::optional<std::vector<KernelReading>>& all,
                          const KernelReading& one) {
  if (!all) return nullptr;
  for (const KernelReading& other : *all) {
    if (other.op == one.op && other.kernel == one.kernel) return &other;
  }
  return nullptr;
}

/// Whether it reads weights or the cache: what a decode step's time goes to.
bool has_weights(const KernelReading& kernel) {
  return kernel.load_bytes > 0 && kernel.op != Op::embed && kernel.op != Op::sample;
}

Row row_of(int look, const KernelReading& kernel) {
  Row row{.look = look, .what = kernel.kernel, .note = std::string(name_of(kernel.op))};
  row.op = static_cast<int>(kernel.op);
  row.count = kernel.launches;
  return row;
}

class Looking {
 public:
  Looking(const Probe& probe, int look, Program& program, Times& times, lab::Progress& progress)
      : probe_(probe), look_(look), program_(program), times_(times), progress_(progress) {}

  std::vector<Row> rows() {
    switch (probe_.instrument) {
      case Instrument::timeline:
        return timeline();
      case Instrument::kernels:
        return kernels();
      case Instrument::shapes:
        return shapes();
      case Instrument::counters:
        return counters();
      case Instrument::roofline:
        return roofline();
      case Instrument::sectors:
        return sectors();
      case Instrument::gaps:
        return gaps();
      case Instrument::queue:
        break;
    }
    return queue();
  }

 private:
  const Readings& readings() {
    if (readings_.kernels.empty()) readings_ = counted(program_, probe_.step, kTapeEntries);
    return readings_;
  }
  std::optional<std::vector<KernelReading>> measured() {
    return times_.kernels(program_.plan(), probe_.step);
  }
  /// The calls and launches of the program as it runs here; its times count only on a GPU.
  Timeline here() {
    Readings its = readings();
    return timed(program_, probe_.step, its, progress_, 1);
  }

  std::vector<Row> timeline() {
    const std::optional<Timeline> measured = times_.timeline(program_.plan(), probe_.step);
    std::vector<Row> rows;
    const Timeline shown = measured ? *measured : here();
    for (const Span& span : shown.spans) {
      Row row{.look = look_, .what = span.what, .note = span.host ? "host" : "device"};
      row.op = span.op;
      row.lane = span.host ? 0 : 1;
      row.value = measured ? std::max(span.begin, 0.0) : span.beat;
      row.second = measured ? std::max(span.end, row.value) : span.beat + 1;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> kernels() {
    const auto its = measured();
    double all = 0;
    std::vector<Row> rows;
    for (const KernelReading& kernel : readings().kernels) {
      Row row = row_of(look_, kernel);
      if (const KernelReading* const other = same(its, kernel)) {
        row.count = other->launches;
        row.value = other->us;
      }
      all += row.value;
      rows.push_back(std::move(row));
    }
    for (Row& row : rows) row.second = all > 0 ? 100 * row.value / all : 0;
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.value != b.value ? a.value > b.value : a.count > b.count;
    });
    return rows;
  }

  std::vector<Row> shapes() {
    std::vector<Row> rows;
    for (const KernelReading& kernel : readings().kernels) {
      if (!has_weights(kernel)) continue;
      Row row = row_of(look_, kernel);
      row.note = fmt::format("{}: {} {}; {}", name_of(kernel.op), kernel.dtype, kernel.shape,
                             kernel.layout);
      row.value = kernel.load_bytes;
      row.second = kernel.threads;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// Blocks of a multiprocessor, by the registers that a compiler says, or without them where none does.
  static lab::Occupancy occupancy(const KernelReading& kernel, int registers) {
    return lab::occupancy_of({.threads = static_cast<int>(kernel.threads),
                              .registers = registers,
                              .static_shared_bytes = 0,
                              .dynamic_shared_bytes = static_cast<int>(kernel.shared_bytes)});
  }
  std::vector<Row> counters() {
    const auto its = measured();
    std::vector<Row> rows;
    for (const KernelReading& kernel : readings().kernels) {
      if (!has_weights(kernel)) continue;
      Row row = row_of(look_, kernel);
      const KernelReading* const other = same(its, kernel);
      const int registers = other != nullptr ? other->registers : kernel.registers;
      const lab::Occupancy held = occupancy(kernel, registers);
      row.note =
          fmt::format("{}: {} threads, {}{:.1f} KB of shared memory", name_of(kernel.op),
                      kernel.threads, registers > 0 ? fmt::format("{} registers, ", registers) : "",
                      static_cast<double>(kernel.shared_bytes) / 1024);
      row.count = held.resident;
      row.value = other != nullptr && other->us > 0 ? other->bytes / other->us * 1e-3 : 0;
      row.second = 100 * held.share();
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> roofline() {
    const auto its = measured();
    std::vector<Row> rows;
    for (const KernelReading& kernel : readings().kernels) {
      const KernelReading* const other = same(its, kernel);
      const KernelReading& of = other != nullptr ? *other : kernel;
      if (of.bytes <= 0 || of.flops <= 0 || !has_weights(kernel)) continue;
      Row row = row_of(look_, kernel);
      row.count = of.bytes * 1e-6;
      row.value = of.flops / of.bytes;
      row.second = of.us > 0 ? of.flops / of.us * 1e-3 : 0;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> sectors() {
    std::vector<Row> rows;
    for (const KernelReading& kernel : readings().kernels) {
      if (kernel.requests <= 0 || !has_weights(kernel)) continue;
      Row row = row_of(look_, kernel);
      row.count = kernel.requests;
      row.value = kernel.sectors / kernel.requests;
      row.second = kernel.needed / kernel.requests;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> gaps() {
    const Timeline run = here();
    std::vector<std::pair<std::string, int>> calls;  // in the order of their first
    int launches = 0;
    for (const Span& span : run.spans) {
      if (!span.host) {
        ++launches;
        continue;
      }
      const std::string what = span.op >= 0 ? "launch" : span.what;
      auto found = std::find_if(calls.begin(), calls.end(),
                                [&](const auto& each) { return each.first == what; });
      if (found == calls.end()) found = calls.insert(calls.end(), {what, 0});
      ++found->second;
    }
    const std::optional<Timeline> measured = times_.timeline(program_.plan(), probe_.step);
    std::vector<Row> rows;
    for (const auto& [what, count] : calls) {
      Row row{.look = look_, .what = what, .note = "calls of the host"};
      row.count = count;
      for (const Span& span : measured ? measured->spans : std::vector<Span>()) {
        if (!span.host || (span.op >= 0 ? "launch" : span.what) != what) continue;
        row.value += span.end - span.begin;
        row.second = std::max(row.second, span.end - span.begin);
      }
      rows.push_back(std::move(row));
    }
    Row kernels{.look = look_, .what = "kernels", .note = "on the device", .lane = 1};
    kernels.count = launches;
    Row idle{.look = look_, .what = "idle", .note = "between kernels", .lane = 1};
    if (measured) {
      for (const Span& span : measured->spans) {
        if (span.host) continue;
        kernels.value += span.end - span.begin;
        kernels.second = std::max(kernels.second, span.end - span.begin);
      }
      idle.value = measured->idle_us;
      idle.second = measured->longest_us;
      if (!measured->before_longest.empty()) {
        idle.note = "the longest before " + measured->before_longest;
      }
    }
    idle.count = std::max(launches - 1, 0);
    rows.push_back(std::move(kernels));
    rows.push_back(std::move(idle));
    return rows;
  }

  std::vector<Row> queue() {
    const std::optional<StepTimes> its = times_.steps(program_.plan());
    std::vector<Row> rows;
    for (int step = 1; step <= kLoop; ++step) {
      Row row{.look = look_, .what = fmt::format("step {}", step), .note = "rows computed"};
      row.count = program_.shape().rows;
      row.value = its ? (step == kLoop ? its->fourth : its->usual) : 0;
      row.second = program_.arrays().shape().rows;
      rows.push_back(std::move(row));
    }
    program_.run(probe_.step);
    program_.arrays().device().synchronize();
    const std::vector<int> chosen = result_of(program_).chosen;
    for (int expert = 0; expert < kExperts; ++expert) {
      Row row{.look = look_,
              .what = fmt::format("expert {}", expert + 1),
              .note = "rows of the last layer"};
      row.op = static_cast<int>(Op::route);
      row.count = static_cast<double>(std::count(chosen.begin(), chosen.end(), expert));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const Probe probe_;
  const int look_;
  Program& program_;
  Times& times_;
  lab::Progress& progress_;
  Readings readings_;
};

}  // namespace

std::vector<Row> rows_of(const Probe& probe, int look, Program& program, Times& times,
                         lab::Progress& progress) {
  return Looking(probe, look, program, times, progress).rows();
}

std::array<NumberOfRow, 3> columns_of(Instrument instrument) {
  switch (instrument) {
    case Instrument::timeline:
      return {{{"", ""}, {"begin", "µs", true}, {"end", "µs", true}}};
    case Instrument::kernels:
      return {{{"launches", ""}, {"time", "µs", true}, {"share", "%", true}}};
    case Instrument::shapes:
      return {{{"launches", ""}, {"load", "B"}, {"threads", ""}}};
    case Instrument::counters:
      return {{{"blocks at once", ""}, {"asked for", "GB/s", true}, {"occupancy", "%"}}};
    case Instrument::roofline:
      return {{{"asked for", "MB"}, {"FLOP per byte", ""}, {"rate", "GFLOP/s", true}}};
    case Instrument::sectors:
      return {{{"requests", ""}, {"sectors per request", ""}, {"sectors needed", ""}}};
    case Instrument::gaps:
      return {{{"count", ""}, {"time", "µs", true}, {"longest", "µs", true}}};
    case Instrument::queue:
      break;
  }
  return {{{"rows", ""}, {"time", "µs", true}, {"wanted", ""}}};
}

}  // namespace tilestep::triage
