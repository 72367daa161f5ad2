#include "kernels/systems/triage/run/reading.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "kernels/base/lab/timing.hpp"
#include "kernels/base/simt/stream.hpp"

namespace tilestep::triage {
namespace {

constexpr int kSectorBytes = 32;

/// Requests of a warp: the n-th load of each lane is one, since all lanes go through the same loop.
void add_requests(KernelReading& to, const std::vector<simt::TraceRecord>& records) {
  std::map<std::uint32_t, std::size_t> loads;  // of each lane so far
  std::vector<std::set<std::uint64_t>> sectors;
  std::vector<double> bytes;
  for (const simt::TraceRecord& one : records) {
    const std::size_t at = loads[one.thread]++;
    if (at == sectors.size()) {
      sectors.emplace_back();
      bytes.push_back(0);
    }
    for (std::uint64_t sector = one.byte_offset / kSectorBytes;
         sector <= (one.byte_offset + one.bytes - 1) / kSectorBytes; ++sector) {
      sectors[at].insert(sector);
    }
    bytes[at] += one.bytes;
  }
  for (std::size_t i = 0; i < sectors.size(); ++i) {
    to.sectors += static_cast<double>(sectors[i].size());
    to.needed += std::ceil(bytes[i] / kSectorBytes);
  }
  to.requests += static_cast<double>(sectors.size());
}

/// The place of a launch's kernel among those so far.
std::size_t entry(std::vector<KernelReading>& all, const Work& work, const Launched& launched) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const KernelReading& one) {
    return one.op == work.op && one.kernel == launched.kernel;
  });
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  KernelReading made;
  made.op = work.op;
  made.kernel = launched.kernel;
  made.dtype = work.dtype;
  made.shape = work.shape;
  made.layout = work.layout;
  made.load_bytes = work.load_bytes;
  made.blocks = launched.blocks;
  made.threads = launched.threads;
  made.shared_bytes = launched.shared_bytes + launched.takes.static_shared_bytes;
  made.registers = launched.takes.registers;
  made.occupancy = launched.takes.occupancy();
  all.push_back(std::move(made));
  return all.size() - 1;
}

double host_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

struct Stamps {
  Stamps(simt::Device& device, std::size_t count) : begins(device, count), ends(device, count) {}
  void clear(simt::Device& device) {
    begins.fill(0xFF);
    ends.fill(0);
    device.synchronize();
  }
  Watch watch(std::size_t slot) {
    Watch made;
    made.begins = begins.span();
    made.ends = ends.span();
    made.slot = static_cast<int>(slot);
    return made;
  }
  simt::Buffer<unsigned long long> begins, ends;
};

/// The device's clock less the host's, and how far off that may be: of many stamps between two looks at the host's clock, the
/// one with the nearest looks.
std::pair<double, double> clock_offset(const Work& work, simt::Device& device, Stamps& stamps) {
  double best = 0, within = 1e18;
  for (int round = 0; round < 20; ++round) {
    stamps.clear(device);
    const double before = host_ns();
    work.launch(stamps.watch(0));
    device.synchronize();
    const double after = host_ns();
    if ((after - before) / 2 >= within) continue;
    within = (after - before) / 2;
    best = static_cast<double>(stamps.begins.download(1).front()) - (before + after) / 2;
  }
  return {best, within};
}

/// The loop in streams, with its launches stamped.
class StampedLoop {
 public:
  StampedLoop(Program& program, int step)
      : program_(program),
        device_(program.arrays().device()),
        works_{program.step(kUsualStep), program.step(kLoop)},
        step_(step),
        stamps_(device_, std::max(works_[0].size(), works_[1].size())),
        offset_(clock_offset(works_[0].front(), device_, stamps_)),
        streams_(device_.make_streams({})) {
    if (streams_ == nullptr)
      throw Error("triage: " + device_.info().name + " has no streams", ExitCode::unavailable);
    stream_ = streams_->make_stream();
  }

  const std::vector<Work>& works() const { return works_[step_ % kLoop == 0 ? 1 : 0]; }
  double clocks_us() const { return offset_.second * 1e-3; }

  /// A step before the one that is looked at, for what happens once alone.
  void warm() {
    submit(kUsualStep);
    streams_->synchronize(stream_);
  }
  /// The step that is looked at.
  void round() {
    streams_->synchronize(stream_);
    stamps_.clear(device_);
    first_call_ = streams_->log().calls.size();
    submit(step_);
    last_call_ = streams_->log().calls.size();
    streams_->synchronize(stream_);
    begins_ = stamps_.begins.download();
    ends_ = stamps_.ends.download();
  }
  double us_of(std::size_t work) const {
    return (static_cast<double>(ends_[work]) - static_cast<double>(begins_[work])) * 1e-3;
  }
  std::vector<Span> spans() const {
    std::vector<Span> all;
    const simt::StreamLog& log = streams_->log();
    const double start_ms = log.calls[first_call_].begin_ms;
    for (std::size_t i = first_call_; i < last_call_; ++i) {
      const simt::StreamLog::Call& call = log.calls[i];
      Span span{.host = true, .what = std::string(name_of(call.kind)), .beat = call.tick};
      span.begin = 1e3 * (call.begin_ms - start_ms);
      span.end = 1e3 * (call.end_ms - start_ms);
      if (call.kind == simt::CallKind::launch) {
        span.what = call.captured ? "capture" : call.label;
        if (!call.captured) span.op = op_of(call.label);
      }
      all.push_back(std::move(span));
    }
    const double start_ns = 1e6 * (log.start_ms + start_ms);
    const auto us = [&](unsigned long long stamp) {
      return 1e-3 * (static_cast<double>(stamp) - offset_.first - start_ns);
    };
    const std::size_t done = log.works.size() - works().size();
    for (std::size_t i = 0; i < works().size(); ++i) {
      all.push_back({false, works()[i].label(), static_cast<int>(works()[i].op), us(begins_[i]),
                     us(ends_[i]), log.works[done + i].tick});
    }
    // Ticks as beats from 0 on.
    std::set<int> ticks;
    for (const Span& span : all) ticks.insert(span.beat);
    for (Span& span : all) {
      span.beat = static_cast<int>(std::distance(ticks.begin(), ticks.find(span.beat)));
    }
    return all;
  }

 private:
  int op_of(std::string_view label) const {
    for (const Work& work : works()) {
      if (work.label() == label) return static_cast<int>(work.op);
    }
    return -1;
  }
  void in(const Work& work, std::size_t slot) {
    streams_->in(stream_, work.label(), [&] { work.launch(stamps_.watch(slot)); });
  }
  void submit(int step) {
    const std::vector<Work>& works = works_[step % kLoop == 0 ? 1 : 0];
    const Submission submission = submission_of(program_.plan());
    const bool graph = submission == Submission::graph || submission == Submission::anew;
    if (graph && (submission == Submission::anew || !made_)) {
      streams_->begin_capture(stream_);
      for (std::size_t i = 0; i < works.size(); ++i) {
        if (!works[i].outside) in(works[i], i);
      }
      exec_ = streams_->instantiate(streams_->end_capture(stream_));
      made_ = true;
    }
    if (graph) streams_->replay(exec_, stream_);
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (graph && !works[i].outside) continue;
      in(works[i], i);
      if (!works[i].waits) continue;
      streams_->synchronize(stream_);
      program_.wait_and_read();
    }
    streams_->synchronize(stream_);  // for the tokens
  }

  Program& program_;
  simt::Device& device_;
  std::array<std::vector<Work>, 2> works_;  ///< of a usual step, and of the fourth
  const int step_;
  Stamps stamps_;
  std::pair<double, double> offset_;
  std::shared_ptr<simt::Streams> streams_;
  simt::Stream stream_;
  simt::GraphExec exec_;
  bool made_ = false;
  std::size_t first_call_ = 0, last_call_ = 0;
  std::vector<unsigned long long> begins_, ends_;
};

}  // namespace

Readings counted(const Program& program, int step, std::size_t room) {
  simt::Device& device = program.arrays().device();
  const std::vector<Work> works = program.step(step);
  simt::Buffer<unsigned long long> bytes(device, works.size());
  bytes.fill(0);
  simt::Trace tape(device, room);
  std::vector<Launched> launched(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    Watch watch;
    watch.bytes = bytes.span();
    watch.slot = static_cast<int>(i);
    watch.tape = tape.tape();
    watch.launched = &launched[i];
    works[i].launch(watch);
  }
  std::vector<std::vector<simt::TraceRecord>> records(works.size());
  for (const simt::TraceRecord& one : tape.download().records) records[one.site].push_back(one);
  const std::vector<unsigned long long> asked = bytes.download();
  Readings all;
  for (std::size_t i = 0; i < works.size(); ++i) {
    all.of_work.push_back(entry(all.kernels, works[i], launched[i]));
    KernelReading& to = all.kernels[all.of_work.back()];
    ++to.launches;
    to.bytes += static_cast<double>(asked[i]);
    to.flops += works[i].flops;
    add_requests(to, records[i]);
  }
  return all;
}

void find_gaps(Timeline& timeline) {
  std::vector<const Span*> works;
  for (const Span& span : timeline.spans) {
    if (!span.host) works.push_back(&span);
  }
  std::stable_sort(works.begin(), works.end(),
                   [](const Span* a, const Span* b) { return a->begin < b->begin; });
  timeline.idle_us = timeline.longest_us = 0;
  timeline.before_longest.clear();
  double busy_until = works.empty() ? 0 : works.front()->end;
  for (const Span* work : works) {
    const double gap = work->begin - busy_until;
    busy_until = std::max(busy_until, work->end);
    if (gap <= 0) continue;
    timeline.idle_us += gap;
    if (gap <= timeline.longest_us) continue;
    timeline.longest_us = gap;
    timeline.before_longest = work->what;
  }
}

Timeline timed(Program& program, int step, Readings& readings, lab::Progress& progress,
               int rounds) {
  StampedLoop loop(program, step);
  std::vector<std::vector<double>> us(loop.works().size());
  loop.warm();
  for (int round = 0; round < rounds; ++round) {
    progress.check();
    loop.round();
    for (std::size_t i = 0; i < us.size(); ++i) us[i].push_back(loop.us_of(i));
  }
  for (KernelReading& kernel : readings.kernels) kernel.us = 0;
  for (std::size_t i = 0; i < us.size(); ++i) {
    readings.kernels[readings.of_work[i]].us += lab::spread_of(us[i]).median;
  }
  Timeline made{.spans = loop.spans(), .clocks_us = loop.clocks_us(), .before_longest = {}};
  find_gaps(made);
  return made;
}

}  // namespace tilestep::triage
