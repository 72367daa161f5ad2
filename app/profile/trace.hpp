#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// \file
/// A trace that another profiler recorded: PyTorch's (Kineto, Chrome trace format) or Nsight Systems' SQLite export.
/// Files are read, never written, and whatever is in them is data from outside.
namespace tilestep::profile {

/// Work of a device: kernel, copy, fill. Of a host's thread: call (of CUDA), op (an operator of the framework), range
/// (an annotation, NVTX).
enum class Kind : std::uint8_t { kernel, copy, fill, call, op, range };
constexpr bool is_work(Kind kind) {
  return kind <= Kind::fill;
}

struct Event {
  std::int64_t begin_ns = 0, end_ns = 0;  ///< since the trace's first event
  Kind kind = Kind::kernel;
  bool of_graph = false;  ///< work: submitted by the launch of a CUDA graph
  int name = 0;           ///< in Trace::names
  int track = 0;          ///< in Trace::tracks
  int call = -1;          ///< work: the call that submitted it; −1: the trace does not say
  int op = -1;      ///< work: the operator, else the range, that it was submitted in; −1: none
  int launch = -1;  ///< kernel: in Trace::launches
  int shape = -1;   ///< op: in Trace::shapes
  std::int64_t bytes = -1;  ///< copy, fill
  std::int64_t ns() const { return end_ns - begin_ns; }
};

/// A stream of a device, or a thread of the host.
struct Track {
  bool of_device = false;
  int device = 0;       ///< its number; −1 of a thread
  std::int64_t id = 0;  ///< stream or thread
  std::string name;     ///< "GPU 0 stream 7", "python, thread 4711"
};

/// How a kernel was launched. Numbers that the trace lacks are −1.
struct Launch {
  std::int64_t grid[3] = {-1, -1, -1}, block[3] = {-1, -1, -1};
  std::int64_t registers = -1, shared_bytes = -1;
  double occupancy_percent = -1;  ///< the profiler's estimate
  auto operator<=>(const Launch&) const = default;
};

/// What an operator was given.
struct Shape {
  std::string dims, types;  ///< "8×4096, 4096×4096", "bf16"
  auto operator<=>(const Shape&) const = default;
};

struct Device {
  std::string name;
  std::int64_t multiprocessors = -1;
};

enum class Format { kineto, nsight };

struct Trace {
  Format format = Format::kineto;
  std::string file;         ///< its name, without folders
  std::string recorder;     ///< what the file says has recorded it; empty: as its format has it
  std::string recorded_at;  ///< "2026-01-31"; empty: the trace does not say
  std::map<int, Device> devices;
  std::vector<std::string> names;
  std::vector<Track> tracks;
  std::vector<Launch> launches;
  std::vector<Shape> shapes;
  std::vector<Event> events;       ///< by their begin
  std::vector<std::string> notes;  ///< what is missing or was left out, a sentence each

  const std::string& name_of(const Event& event) const {
    return names[static_cast<std::size_t>(event.name)];
  }
  const Track& track_of(const Event& event) const {
    return tracks[static_cast<std::size_t>(event.track)];
  }
  /// "recorded by PyTorch's profiler on NVIDIA H200, 2026-01-31"
  std::string origin() const;
};

/// Longer texts of JSON, and more events, are refused: such a trace is best recorded over fewer steps.
inline constexpr std::size_t kMostJsonBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMostEvents = 4'000'000;

/// Reads a file of either format. Throws Error: (unavailable) if it is not there or locked, and for whatever else is no
/// trace with work of a GPU in it.
Trace read_trace(const std::filesystem::path& file);
/// Whether a file is named as traces are: .json, .json.gz, .sqlite, .nsys-rep, but no capsule.
bool names_trace(std::string_view file);

/// "void at::native::foo<float, at::X>(int)" as "foo<float, X>"; a mangled name as its words alone.
std::string short_name(std::string_view name);

// ---- for the readers ----------------------------------------------------------------------------------------------

/// Collects events in any order, and links them at the end.
class TraceBuilder {
 public:
  explicit TraceBuilder(const std::filesystem::path& file, Format format);

  /// An event with times of the file's own clock. `correlation` links a call with the work that it submits, `external`
  /// an operator with its work; 0: none.
  struct Raw {
    Event event;
    std::uint64_t correlation = 0, external = 0;
  };
  void add(Raw raw);
  void leave_out() { ++left_out_; }  ///< an event whose times are missing or wrong
  int name(std::string_view text);
  int track(bool of_device, std::int64_t owner, std::int64_t id);
  /// What a thread is called, or the process, whose `id` is −1.
  void call_thread(std::int64_t owner, std::int64_t id, std::string name);
  int launch(const Launch& launch);
  int shape(const Shape& shape);
  Trace& trace() { return trace_; }
  /// Throws Error where there is no work of a GPU.
  Trace made();

 private:
  void check_times();
  void link();
  void name_tracks();

  Trace trace_;
  std::vector<Raw> raw_;
  std::int64_t left_out_ = 0;
  std::unordered_map<std::string, int> names_;
  std::map<std::tuple<bool, std::int64_t, std::int64_t>, int> tracks_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads_;
  std::map<Launch, int> launches_;
  std::map<Shape, int> shapes_;
};

/// "c10::BFloat16" as "bf16"; empty for what is no type of a tensor.
std::string short_type(std::string_view type);
/// A day of the years 2010 to 2100 since 1970; empty for any other.
std::string day_of(std::int64_t epoch_ns);

Trace read_kineto(const std::filesystem::path& file);
Trace read_nsight(const std::filesystem::path& file);

}  // namespace tilestep::profile
