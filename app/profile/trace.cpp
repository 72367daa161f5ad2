#include "app/profile/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::profile {
namespace {

constexpr std::size_t kMostName = 1000;
constexpr std::int64_t kMostTime = std::int64_t{1} << 62;
/// Nothing else is so far from the middle of the work: a clock that began at zero.
constexpr std::int64_t kFar_ns = std::int64_t{7} * 24 * 3600 * 1'000'000'000;

/// The part of a name that says what it is: without namespaces, also in what is between < and >.
std::string without_namespaces(std::string_view name) {
  std::string kept;
  std::size_t word = 0;  // where the current word began in `kept`
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with("::")) {
      kept.resize(word);
      ++i;
      continue;
    }
    kept += name[i];
    if (std::strchr("<,> (&*", name[i]) != nullptr) word = kept.size();
  }
  return kept;
}

/// The words of a mangled name: _ZN7cutlass6KernelI… as "Kernel".
std::string word_of_mangled(std::string_view name) {
  std::size_t at = 2;
  while (at < name.size() && std::strchr("NKLrV", name[at]) != nullptr) ++at;
  std::string last;
  while (at < name.size() && name[at] >= '0' && name[at] <= '9') {
    std::size_t length = 0;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9' && length < kMostName)
      length = 10 * length + static_cast<std::size_t>(name[at++] - '0');
    if (length == 0 || length > name.size() - at) break;
    last = std::string(name.substr(at, length));
    at += length;
  }
  return last.empty() ? std::string(name) : last;
}

}  // namespace

std::string short_name(std::string_view name) {
  if (name.starts_with("_Z")) return word_of_mangled(name);
  for (const std::string_view before : {"void ", "std::enable_if<"}) {
    if (name.starts_with(before)) name.remove_prefix(before.size());
  }
  std::string plain(name);
  for (std::string_view each : {"(anonymous namespace)::", "<unnamed>::"}) {
    for (std::size_t at; (at = plain.find(each)) != plain.npos;) plain.erase(at, each.size());
  }
  // The arguments: from the last bracket that opens outside of < and >.
  int depth = 0;
  std::size_t arguments = plain.npos;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '<') ++depth;
    if (plain[i] == '>') --depth;
    if (plain[i] == '(' && depth == 0 && i > 0) {
      arguments = i;
      break;
    }
  }
  if (arguments != plain.npos) plain.resize(arguments);
  const std::string shorter = without_namespaces(plain);
  return shorter.empty() ? std::string(name) : shorter;
}

std::string short_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kTypeNames = {
      {{"c10::BFloat16", "bf16"},
       {"c10::Half", "fp16"},
       {"float", "fp32"},
       {"double", "fp64"},
       {"c10::Float8_e4m3fn", "fp8 e4m3"},
       {"c10::Float8_e5m2", "fp8 e5m2"},
       {"signed char", "int8"},
       {"unsigned char", "uint8"},
       {"short int", "int16"},
       {"int", "int32"},
       {"long int", "int64"},
       {"long", "int64"},
       {"bool", "bool"},
       {"c10::complex<float>", "complex64"}}};
  for (const auto& [long_name, name] : kTypeNames) {
    if (type == long_name) return std::string(name);
  }
  const bool of_tensor = type.starts_with("c10::") || type.starts_with("at::");
  return of_tensor ? std::string(type.substr(type.rfind(':') + 1)) : std::string();
}

std::string day_of(std::int64_t epoch_ns) {
  const std::time_t seconds = epoch_ns / 1'000'000'000;
  std::tm utc{};
  if (epoch_ns <= 0 || ::gmtime_r(&seconds, &utc) == nullptr) return {};
  const int year = utc.tm_year + 1900;
  if (year < 2010 || year > 2100) return {};
  return fmt::format("{:04}-{:02}-{:02}", year, utc.tm_mon + 1, utc.tm_mday);
}

std::string Trace::origin() const {
  std::string on;
  for (const auto& [number, device] : devices) {
    if (!device.name.empty() && on.find(device.name) == on.npos)
      on += (on.empty() ? " on " : ", ") + device.name;
  }
  const std::string by = !recorder.empty()          ? recorder
                         : format == Format::kineto ? "PyTorch's profiler"
                                                    : "Nsight Systems";
  return fmt::format("recorded by {}{}{}", by, on, recorded_at.empty() ? "" : ", " + recorded_at);
}

bool names_trace(std::string_view file) {
  const auto ends = [&](std::string_view ending) { return file.ends_with(ending); };
  return (ends(".json") && !ends(".tilestep.json")) || ends(".json.gz") || ends(".sqlite") ||
         ends(".nsys-rep");
}

Trace read_trace(const std::filesystem::path& file) {
  const std::string name = lab::shown_value(file.string());
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("the file '{}' cannot be read: {}", name, why), ExitCode::unavailable);
  };
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would wait
  if (fd < 0) refuse(std::strerror(errno));
  struct ::stat about {};
  char head[16] = {};
  const bool known = ::fstat(fd, &about) == 0;
  const ssize_t count = known && S_ISREG(about.st_mode) ? ::read(fd, head, sizeof head) : 0;
  ::close(fd);
  if (known && S_ISDIR(about.st_mode)) refuse("it is a folder");
  if (known && !S_ISREG(about.st_mode)) refuse("it is a device or a pipe, not a file");
  if (count < 0) refuse(std::strerror(errno));
  if (count == 0) throw Error(fmt::format("the file '{}' is empty: it is no trace", name));
  const std::string_view begin(head, static_cast<std::size_t>(count));
  if (begin == std::string_view("SQLite format 3\0", 16)) return read_nsight(file);
  const auto text = begin.find_first_not_of(" \t\r\n");
  const bool json = text != begin.npos && (begin[text] == '{' || begin[text] == '[');
  if (json || begin.starts_with("\x1f\x8b")) return read_kineto(file);
  if (file.extension() == ".nsys-rep")
    throw Error(
        fmt::format("'{}' is Nsight Systems' own report; export it first: nsys export "
                    "--type sqlite REPORT.nsys-rep",
                    name));
  throw Error(
      fmt::format("'{}' is no trace; allowed: the JSON of PyTorch's profiler (.json, .json.gz), "
                  "or an SQLite export of Nsight Systems (.sqlite)",
                  name));
}

TraceBuilder::TraceBuilder(const std::filesystem::path& file, Format format) {
  trace_.file = lab::shown_value(file.filename().string());
  trace_.format = format;
}

void TraceBuilder::add(Raw raw) {
  const Event& event = raw.event;
  if (event.begin_ns > kMostTime || event.begin_ns < -kMostTime || event.end_ns > kMostTime ||
      event.end_ns < event.begin_ns) {
    return leave_out();
  }
  if (raw_.size() >= kMostEvents) {
    throw Error(fmt::format("'{}' has more than {} events; record fewer steps of the program",
                            trace_.file, kMostEvents));
  }
  raw_.push_back(raw);
}

int TraceBuilder::name(std::string_view text) {
  text = text.substr(0, kMostName);
  const auto [found, fresh] =
      names_.try_emplace(std::string(text), static_cast<int>(trace_.names.size()));
  if (fresh) trace_.names.push_back(text.empty() ? "(no name)" : lab::printable(text));
  return found->second;
}

int TraceBuilder::track(bool of_device, std::int64_t owner, std::int64_t id) {
  const auto [found, fresh] =
      tracks_.try_emplace({of_device, owner, id}, static_cast<int>(trace_.tracks.size()));
  if (fresh) {
    const int device =
        of_device ? static_cast<int>(std::clamp<std::int64_t>(owner, 0, 1 << 20)) : -1;
    trace_.tracks.push_back({of_device, device, id, {}});
  }
  return found->second;
}

void TraceBuilder::call_thread(std::int64_t owner, std::int64_t id, std::string name) {
  threads_[{owner, id}] = lab::shown_value(name);
}

int TraceBuilder::launch(const Launch& launch) {
  const auto [found, fresh] =
      launches_.try_emplace(launch, static_cast<int>(trace_.launches.size()));
  if (fresh) trace_.launches.push_back(launch);
  return found->second;
}

int TraceBuilder::shape(const Shape& shape) {
  if (shape.dims.empty() && shape.types.empty()) return -1;
  const auto [found, fresh] = shapes_.try_emplace(shape, static_cast<int>(trace_.shapes.size()));
  if (fresh) {
    trace_.shapes.push_back({lab::shown_value(shape.dims), lab::shown_value(shape.types)});
  }
  return found->second;
}

void TraceBuilder::check_times() {
  std::vector<std::int64_t> begins;
  for (const Raw& raw : raw_) {
    if (is_work(raw.event.kind)) begins.push_back(raw.event.begin_ns);
  }
  if (begins.empty()) {
    throw Error(
        fmt::format("'{}' has no kernel, copy or fill of a GPU in it; {}", trace_.file,
                    trace_.format == Format::kineto
                        ? "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
                        : "record with nsys profile --trace=cuda,nvtx"));
  }
  const auto middle = begins.begin() + static_cast<std::ptrdiff_t>(begins.size() / 2);
  std::nth_element(begins.begin(), middle, begins.end());
  const std::int64_t about = *middle;
  left_out_ += static_cast<std::int64_t>(std::erase_if(raw_, [&](const Raw& raw) {
    return raw.event.begin_ns < about - kFar_ns || raw.event.end_ns > about + kFar_ns;
  }));
  std::int64_t first = about;
  for (const Raw& raw : raw_) first = std::min(first, raw.event.begin_ns);
  for (Raw& raw : raw_) {
    raw.event.begin_ns -= first;
    raw.event.end_ns -= first;
  }
  if (left_out_ > 0) {
    trace_.notes.push_back(fmt::format(
        "{} left out: the times are missing, end before they begin, or lie far from all others.",
        left_out_ == 1 ? "1 event was" : fmt::format("{} events were", left_out_)));
  }
}

void TraceBuilder::link() {
  // What encloses comes before what it encloses.
  std::stable_sort(raw_.begin(), raw_.end(), [](const Raw& a, const Raw& b) {
    return a.event.begin_ns != b.event.begin_ns ? a.event.begin_ns < b.event.begin_ns
                                                : a.event.end_ns > b.event.end_ns;
  });
  std::unordered_map<std::uint64_t, int> calls, ops;
  std::vector<int> around(raw_.size(), -1);  // of a call: the innermost operator, else range
  std::vector<std::vector<int>> open(trace_.tracks.size());
  const auto at = [&](int index) -> const Event& {
    return raw_[static_cast<std::size_t>(index)].event;
  };
  for (std::size_t i = 0; i < raw_.size(); ++i) {
    const Raw& raw = raw_[i];
    const int index = static_cast<int>(i);
    if (raw.event.kind == Kind::op && raw.external != 0) ops.emplace(raw.external, index);
    if (raw.event.kind == Kind::call && raw.correlation != 0) calls.emplace(raw.correlation, index);
    if (is_work(raw.event.kind)) continue;
    auto& stack = open[static_cast<std::size_t>(raw.event.track)];
    while (!stack.empty() && at(stack.back()).end_ns <= raw.event.begin_ns) stack.pop_back();
    if (raw.event.kind != Kind::call) {
      stack.push_back(index);
    } else if (!stack.empty()) {
      const auto op = std::find_if(stack.rbegin(), stack.rend(),
                                   [&](int each) { return at(each).kind == Kind::op; });
      around[i] = op == stack.rend() ? stack.back() : *op;
    }
  }
  for (Raw& raw : raw_) {
    if (!is_work(raw.event.kind)) continue;
    const auto found = [](const auto& map, std::uint64_t key) {
      const auto it = key == 0 ? map.end() : map.find(key);
      return it == map.end() ? -1 : it->second;
    };
    raw.event.call = found(calls, raw.correlation);
    raw.event.op = found(ops, raw.external);
    if (raw.event.call < 0) continue;
    if (raw.event.op < 0) raw.event.op = around[static_cast<std::size_t>(raw.event.call)];
    const std::string& call = trace_.name_of(at(raw.event.call));
    if (call.find("GraphLaunch") != call.npos) raw.event.of_graph = true;
  }
  for (const Raw& raw : raw_) trace_.events.push_back(raw.event);
  raw_.clear();
}

void TraceBuilder::name_tracks() {
  for (const auto& [key, index] : tracks_) {
    const auto& [of_device, owner, id] = key;
    Track& track = trace_.tracks[static_cast<std::size_t>(index)];
    if (of_device) {
      track.name = fmt::format("GPU {} stream {}", track.device, id);
      trace_.devices.try_emplace(track.device);
      continue;
    }
    auto named = threads_.find({owner, id});
    if (named == threads_.end()) named = threads_.find({owner, -1});
    track.name = named == threads_.end() || named->second.empty()
                     ? fmt::format("thread {}", id)
                     : fmt::format("{} {}", named->second, id);
  }
  // Those that the trace names, but no work is of.
  std::erase_if(trace_.devices, [&](const auto& each) {
    return std::none_of(trace_.tracks.begin(), trace_.tracks.end(), [&](const Track& track) {
      return track.of_device && track.device == each.first;
    });
  });
}

Trace TraceBuilder::made() {
  check_times();
  link();
  name_tracks();
  return std::move(trace_);
}

}  // namespace tilestep::profile
