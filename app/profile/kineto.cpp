// PyTorch's profiler (Kineto) writes Chrome's trace format: an object with a list traceEvents, of which events "ph": "X"
// have a begin and a length in microseconds, a category, and args. It is read as a stream: of the text nothing stays.
#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/profile/trace.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::profile {
namespace {

using nlohmann::json;

constexpr std::size_t kMostShapes = 16, kMostText = std::size_t{1} << 16, kDeepest = 512;

/// A file, unpacked where it is packed by gzip.
class Unpacked final : public std::streambuf {
 public:
  explicit Unpacked(const std::filesystem::path& file) : name_(lab::shown_value(file.string())) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    file_ = fd < 0 ? nullptr : ::gzdopen(fd, "rb");
    if (file_ == nullptr)
      throw Error(fmt::format("the file '{}' cannot be read", name_), ExitCode::unavailable);
    ::gzbuffer(file_, 1 << 17);
  }
  ~Unpacked() override { ::gzclose(file_); }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  std::size_t bytes() const { return bytes_; }

 private:
  int_type underflow() override {
    const int count = ::gzread(file_, part_, sizeof part_);
    int failed = Z_OK;
    ::gzerror(file_, &failed);
    if (count < 0 || (count == 0 && failed != Z_OK && failed != Z_STREAM_END))
      throw Error(fmt::format("'{}' is damaged or cut off: it cannot be unpacked after {} bytes",
                              name_, bytes_));
    bytes_ += static_cast<std::size_t>(std::max(count, 0));
    if (bytes_ > kMostJsonBytes)
      throw Error(
          fmt::format("'{}' has more than {} bytes of JSON; record fewer steps of the "
                      "program, or use Nsight Systems and its SQLite export",
                      name_, kMostJsonBytes));
    setg(part_, part_, part_ + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(part_[0]);
  }

  std::string name_;
  gzFile file_;
  std::size_t bytes_ = 0;
  char part_[1 << 16];
};

/// Microseconds as written, in whole nanoseconds: a double has too few digits for those since 1970.
std::optional<std::int64_t> ns_of(const std::string& us) {
  const std::size_t point = us.find('.');
  if (us.find_first_of("eE") == us.npos && us.size() < 24) {
    std::int64_t whole = 0;
    const std::size_t end = std::min(point, us.size());
    const auto read = std::from_chars(us.data(), us.data() + end, whole);
    if (read.ec != std::errc() || read.ptr != us.data() + end) return std::nullopt;
    constexpr std::int64_t kMost = std::int64_t{1} << 52;
    if (whole > kMost || whole < -kMost) return std::nullopt;
    std::int64_t parts = 0, unit = 100;
    for (std::size_t i = end + 1; i < us.size() && unit > 0; ++i, unit /= 10)
      parts += unit * (us[i] - '0');
    return whole * 1000 + (us[0] == '-' ? -parts : parts);
  }
  const double value = std::strtod(us.c_str(), nullptr) * 1000;
  if (!(std::abs(value) < 4e18)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::int64_t whole_of(const std::string& text, std::int64_t otherwise) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? value : otherwise;
}

/// A thread's or process' own number; texts, as "stream 7" has one, are numbered by what they are.
std::int64_t number_of(const std::string& text) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  const std::int64_t number = whole_of(text, kNone);
  if (number != kNone) return number;
  return static_cast<std::int64_t>(std::hash<std::string>()(text) & 0xffffff);
}

class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(TraceBuilder& builder) : builder_(builder) {}

  bool has_events() const { return has_events_; }
  std::int64_t base_ns() const { return base_ns_; }
  std::size_t failed_at() const { return failed_at_; }
  bool too_deep() const { return too_deep_; }
  std::optional<std::int64_t> first_ns() const { return first_ns_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return take(std::to_string(value), true); }
  bool number_unsigned(number_unsigned_t value) override {
    return take(std::to_string(value), true);
  }
  bool number_float(number_float_t, const string_t& text) override { return take(text, true); }
  bool string(string_t& text) override { return take(text, false); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& text) override {
    if (!where_.empty() && where_.back() != Where::other) key_ = text.substr(0, 64);
    if (!where_.empty() && where_.back() == Where::args) list_ = key_;
    return true;
  }
  bool start_object(std::size_t) override {
    Where next = Where::other;
    if (where_.empty())
      next = Where::root;
    else if (where_.back() == Where::events)
      next = Where::event;
    else if (where_.back() == Where::event && key_ == "args")
      next = Where::args;
    else if (where_.back() == Where::devices)
      next = Where::device;
    if (next == Where::event) now_ = {};
    if (next == Where::device) device_ = {-1, {}};
    return push(next);
  }
  bool end_object() override {
    const Where ended = where_.back();
    where_.pop_back();
    if (ended == Where::event) finish();
    if (ended == Where::device && device_.first >= 0)
      builder_.trace().devices[device_.first] = device_.second;
    return true;
  }
  bool start_array(std::size_t) override {
    Where next = Where::other;
    if (where_.empty() || (where_.back() == Where::root && key_ == "traceEvents"))
      next = Where::events;
    else if (where_.back() == Where::root && key_ == "deviceProperties")
      next = Where::devices;
    else if (where_.back() == Where::args || where_.back() == Where::list)
      next = Where::list;
    has_events_ = has_events_ || next == Where::events;
    numbers_.clear();
    return push(next);
  }
  bool end_array() override {
    if (where_.back() == Where::list) end_list();
    where_.pop_back();
    return true;
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    failed_at_ = std::max<std::size_t>(at, 1);
    return false;
  }

 private:
  enum class Where : std::uint8_t { root, events, event, args, list, devices, device, other };
  struct Now {
    std::string phase, category, name, pid, tid, begin, length;
    std::string device, stream, correlation, external, bytes, node, called;
    Launch launch;
    std::string dims, types;
    std::size_t shapes = 0;
    bool has_launch = false;
  };

  bool push(Where next) {
    too_deep_ = where_.size() >= kDeepest;
    where_.push_back(next);
    return !too_deep_;
  }

  bool take(const std::string& text, bool number) {
    if (where_.empty()) return true;
    switch (where_.back()) {
      case Where::root:
        if (key_ == "baseTimeNanoseconds") base_ns_ = whole_of(text, 0);
        if (key_ == "recordedBy") builder_.trace().recorder = lab::shown_value(text);
        break;
      case Where::event:
        if (std::string* field = field_of(key_)) *field = text.substr(0, kMostText);
        break;
      case Where::args:
        take_argument(text);
        break;
      case Where::list:
        if (number)
          numbers_.push_back(whole_of(text, -1));
        else if (list_ == "Input type")
          add_type(text);
        break;
      case Where::device:
        if (key_ == "id")
          device_.first =
              static_cast<int>(std::clamp<std::int64_t>(whole_of(text, -1), -1, 1 << 20));
        if (key_ == "name") device_.second.name = lab::shown_value(text);
        if (key_ == "numSms") device_.second.multiprocessors = whole_of(text, -1);
        break;
      default:
        break;
    }
    return true;
  }

  std::string* field_of(const std::string& key) {
    if (key == "ph") return &now_.phase;
    if (key == "cat") return &now_.category;
    if (key == "name") return &now_.name;
    if (key == "pid") return &now_.pid;
    if (key == "tid") return &now_.tid;
    if (key == "ts") return &now_.begin;
    return key == "dur" ? &now_.length : nullptr;
  }

  void take_argument(const std::string& text) {
    if (key_ == "device")
      now_.device = text;
    else if (key_ == "stream")
      now_.stream = text;
    else if (key_ == "correlation")
      now_.correlation = text;
    else if (key_ == "External id" || key_ == "external id")
      now_.external = text;
    else if (key_ == "bytes" || key_ == "Bytes")
      now_.bytes = text;
    else if (key_ == "graph node id")
      now_.node = text;
    else if (key_ == "name")
      now_.called = text.substr(0, 200);
    else if (key_ == "registers per thread")
      now_.launch.registers = whole_of(text, -1);
    else if (key_ == "shared memory")
      now_.launch.shared_bytes = whole_of(text, -1);
    else if (key_ == "est. achieved occupancy %") {
      const double percent = std::strtod(text.c_str(), nullptr);
      if (percent >= 0 && percent <= 100) now_.launch.occupancy_percent = percent;
    }
  }

  /// A list of numbers is a shape, or the grid, or the block.
  void end_list() {
    if (list_ == "grid" || list_ == "block") {
      auto& three = list_ == "grid" ? now_.launch.grid : now_.launch.block;
      for (std::size_t i = 0; i < 3 && i < numbers_.size(); ++i) three[i] = numbers_[i];
      now_.has_launch = true;
    } else if (list_ == "Input Dims" && !numbers_.empty() && now_.shapes++ < kMostShapes) {
      std::string shape;
      for (std::size_t i = 0; i < numbers_.size() && i < kMostShapes; ++i)
        shape += fmt::format("{}{}", i == 0 ? "" : "×", numbers_[i]);
      now_.dims += (now_.dims.empty() ? "" : ", ") + shape;
    }
    numbers_.clear();
  }

  void add_type(const std::string& text) {
    const std::string type = short_type(text.substr(0, 100));
    if (type.empty() || now_.types.size() > 100) return;
    if ((", " + now_.types + ", ").find(", " + type + ", ") == std::string::npos)
      now_.types += (now_.types.empty() ? "" : ", ") + type;
  }

  static std::optional<Kind> kind_of(const std::string& category) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), category) != names.end();
    };
    // Older versions write the second of each.
    if (is({"kernel", "Kernel"})) return Kind::kernel;
    if (is({"gpu_memcpy", "Memcpy"})) return Kind::copy;
    if (is({"gpu_memset", "Memset"})) return Kind::fill;
    if (is({"cuda_runtime", "Runtime", "cuda_driver"})) return Kind::call;
    if (is({"cpu_op", "Operator"})) return Kind::op;
    if (is({"user_annotation"})) return Kind::range;
    return std::nullopt;
  }

  void finish() {
    if (now_.phase == "M" && (now_.name == "thread_name" || now_.name == "process_name")) {
      builder_.call_thread(number_of(now_.pid),
                           now_.name == "thread_name" ? number_of(now_.tid) : -1, now_.called);
    }
    const auto kind = kind_of(now_.category);
    if (now_.phase != "X" || !kind) return;
    const auto begin = ns_of(now_.begin), length = ns_of(now_.length);
    if (!begin || !length || *length < 0) return builder_.leave_out();
    TraceBuilder::Raw raw;
    raw.event.begin_ns = *begin;
    raw.event.end_ns = *begin + *length;
    raw.event.kind = *kind;
    raw.event.name = builder_.name(now_.name);
    const bool work = is_work(*kind);
    raw.event.track =
        builder_.track(work, number_of(work && !now_.device.empty() ? now_.device : now_.pid),
                       number_of(work && !now_.stream.empty() ? now_.stream : now_.tid));
    // Both count from 1, or 0 where there is none.
    raw.correlation = static_cast<std::uint64_t>(whole_of(now_.correlation, 0));
    raw.external = static_cast<std::uint64_t>(whole_of(now_.external, 0));
    raw.event.of_graph = whole_of(now_.node, 0) != 0;
    if (*kind == Kind::kernel && (now_.has_launch || now_.launch.registers >= 0))
      raw.event.launch = builder_.launch(now_.launch);
    if (*kind == Kind::op) raw.event.shape = builder_.shape({now_.dims, now_.types});
    raw.event.bytes = whole_of(now_.bytes, -1);
    if (!first_ns_) first_ns_ = *begin;
    builder_.add(raw);
  }

  TraceBuilder& builder_;
  std::vector<Where> where_;
  std::string key_, list_;
  Now now_;
  std::vector<std::int64_t> numbers_;
  std::pair<int, Device> device_;
  std::int64_t base_ns_ = 0;
  std::optional<std::int64_t> first_ns_;
  std::size_t failed_at_ = 0;
  bool has_events_ = false, too_deep_ = false;
};

}  // namespace

Trace read_kineto(const std::filesystem::path& file) {
  Unpacked bytes(file);
  std::istream stream(&bytes);
  TraceBuilder builder(file, Format::kineto);
  Reader reader(builder);
  const std::string name = lab::shown_value(file.string());
  const bool whole = json::sax_parse(stream, &reader);
  if (reader.too_deep()) throw Error(fmt::format("'{}' nests deeper than {}", name, kDeepest));
  if (!whole && reader.failed_at() > bytes.bytes())
    throw Error(fmt::format("'{}' is cut off: its JSON ends in the middle, after {} bytes", name,
                            bytes.bytes()));
  if (!whole)
    throw Error(fmt::format("'{}' is no JSON: byte {} does not fit", name, reader.failed_at()));
  if (!reader.has_events())
    throw Error(
        fmt::format("'{}' is no trace: it has no list traceEvents, as PyTorch's "
                    "profiler writes (export_chrome_trace)",
                    name));
  if (reader.first_ns()) {
    // Both parts are within what `ns_of` and the format allow, but a file may say anything.
    std::int64_t epoch_ns = 0;
    if (!__builtin_add_overflow(reader.base_ns(), *reader.first_ns(), &epoch_ns))
      builder.trace().recorded_at = day_of(epoch_ns);
  }
  return builder.made();
}

}  // namespace tilestep::profile
