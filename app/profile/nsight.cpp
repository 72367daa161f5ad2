// Nsight Systems' SQLite export (nsys export --type sqlite): a table per kind of activity, times in nanoseconds, names in
// StringIds. Tables and columns differ between versions: what is not there is said, and what is there is read.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "app/profile/trace.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::profile {
namespace {

constexpr std::chrono::seconds kLongest{120};
constexpr int kSteps = 100'000;   ///< of SQLite's machine, between two looks at the clock
constexpr int kMostBytes = 4096;  ///< of a text

using Row = std::vector<std::optional<std::int64_t>>;

/// An SQLite file that is read and never written, nor anything beside it.
class Database {
 public:
  explicit Database(const std::filesystem::path& file)
      : name_(lab::shown_value(file.string())),
        until_(std::chrono::steady_clock::now() + kLongest) {
    sqlite3* opened = nullptr;
    const std::string uri = "file:" + escaped(std::filesystem::absolute(file).string()) +
                            (is_write_ahead(file) ? "?immutable=1" : "?mode=ro");
    const int code =
        ::sqlite3_open_v2(uri.c_str(), &opened,
                          SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(opened);
    if (code != SQLITE_OK) fail(code);
    // What is in the file's schema is not ours.
    ::sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    ::sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    ::sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 24);
    ::sqlite3_progress_handler(opened, kSteps, &Database::is_late, this);
    const Statement list = prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table'");
    while (step(list)) {
      // A virtual table could do anything; a view, too.
      if (text(list, 1).starts_with("CREATE TABLE")) tables_.insert(text(list, 0));
    }
  }

  bool has(const std::string& table) const { return tables_.count(table) > 0; }

  /// The columns' whole numbers, row by row: nothing where a column is missing or holds something else.
  template <class Take>
  void read(const std::string& table, const std::vector<std::string>& columns, const Take& take) {
    if (!has(table)) return;
    std::string words;
    for (const std::string& column : columns)
      words += fmt::format("{}{}", words.empty() ? "" : ", ", expression(table, column));
    const Statement rows = prepare(fmt::format("SELECT {} FROM \"{}\"", words, table));
    Row row(columns.size());
    while (step(rows)) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const int at = static_cast<int>(i);
        row[i] = ::sqlite3_column_type(rows.get(), at) == SQLITE_INTEGER
                     ? std::optional<std::int64_t>(::sqlite3_column_int64(rows.get(), at))
                     : std::nullopt;
      }
      take(row, [&](std::size_t column) { return text(rows, static_cast<int>(column)); });
    }
  }

  /// Of StringIds; empty where there is none.
  const std::string& string(std::optional<std::int64_t> id) {
    static const std::string none;
    if (!id || !has("StringIds")) return none;
    const auto [found, fresh] = strings_.try_emplace(*id);
    if (fresh) {
      if (!by_id_) {
        by_id_ =
            prepare(fmt::format("SELECT {} FROM StringIds WHERE {} = ?",
                                expression("StringIds", "value"), expression("StringIds", "id")));
      }
      ::sqlite3_reset(by_id_.get());
      ::sqlite3_bind_int64(by_id_.get(), 1, *id);
      if (step(by_id_)) found->second = text(by_id_, 0);
    }
    return found->second;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { ::sqlite3_close_v2(database); }
    void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  static std::string escaped(const std::string& path) {
    std::string uri;
    for (const char c : path) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' ||
                         c == '-' || c == '_';
      uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri;
  }

  /// Such a file has others beside it, which reading would make. What a crash left in them is not read.
  bool is_write_ahead(const std::filesystem::path& file) const {
    char head[20] = {};
    std::ifstream(file, std::ios::binary).read(head, sizeof head);
    if (head[18] != 2 && head[19] != 2) return false;
    std::error_code error;
    const auto log = std::filesystem::file_size(file.string() + "-wal", error);
    if (!error && log > 0)
      throw Error(
          fmt::format("'{}' is being written: {}-wal lies beside it; close the program that "
                      "writes it, or export the report again",
                      name_, name_),
          ExitCode::unavailable);
    return true;
  }

  static int is_late(void* self) {
    return std::chrono::steady_clock::now() > static_cast<Database*>(self)->until_ ? 1 : 0;
  }

  [[noreturn]] void fail(int code) const {
    const int kind = code & 0xff;
    if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_READONLY ||
        kind == SQLITE_PROTOCOL)
      throw Error(
          fmt::format("'{}' is locked: another program is writing it; try again once it has ended",
                      name_),
          ExitCode::unavailable);
    if (kind == SQLITE_NOMEM) throw std::bad_alloc();
    if (kind == SQLITE_INTERRUPT)
      throw Error(
          fmt::format("'{}' takes longer than {} seconds to read", name_, kLongest.count()));
    if (kind == SQLITE_CANTOPEN || kind == SQLITE_IOERR || kind == SQLITE_PERM ||
        kind == SQLITE_AUTH)
      throw Error(fmt::format("the file '{}' cannot be read: {}", name_, ::sqlite3_errstr(code)),
                  ExitCode::unavailable);
    throw Error(fmt::format("'{}' is damaged: SQLite says '{}'; export the report again", name_,
                            lab::shown_value(::sqlite3_errstr(code))));
  }

  Statement prepare(const std::string& sql) {
    sqlite3_stmt* made = nullptr;
    const int code = ::sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &made, nullptr);
    if (code != SQLITE_OK) fail(::sqlite3_extended_errcode(database_.get()));
    return Statement(made);
  }
  bool step(const Statement& statement) {
    const int code = ::sqlite3_step(statement.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(::sqlite3_extended_errcode(database_.get()));
    return false;
  }
  static std::string text(const Statement& statement, int column) {
    if (::sqlite3_column_type(statement.get(), column) != SQLITE_TEXT) return {};
    const auto* bytes =
        reinterpret_cast<const char*>(::sqlite3_column_text(statement.get(), column));
    const int count = ::sqlite3_column_bytes(statement.get(), column);
    return bytes == nullptr
               ? std::string()
               : std::string(bytes, static_cast<std::size_t>(std::min(count, kMostBytes)));
  }
  /// A column's name, or NULL where the table has none of it.
  std::string expression(const std::string& table, const std::string& column) {
    auto& known = columns_[table];
    if (known.empty()) {
      const Statement info = prepare(fmt::format("PRAGMA table_info(\"{}\")", table));
      while (step(info)) known.insert(text(info, 1));
    }
    return known.count(column) > 0 ? '"' + column + '"' : "NULL";
  }

  std::string name_;
  std::chrono::steady_clock::time_point until_;
  std::unique_ptr<sqlite3, Close> database_;
  Statement by_id_;
  std::set<std::string> tables_;
  std::map<std::string, std::set<std::string>> columns_;
  std::unordered_map<std::int64_t, std::string> strings_;
};

constexpr std::int64_t kProcess = 0xFFFFFF;  ///< bits of a global id above those of the thread

std::int64_t process_of(std::int64_t global) {
  return (global >> 24) & kProcess;
}

/// Correlations count in each process for itself.
std::uint64_t correlation_of(std::optional<std::int64_t> global, std::optional<std::int64_t> id) {
  if (!id || *id == 0) return 0;
  return (static_cast<std::uint64_t>(process_of(global.value_or(0))) << 32) ^
         (static_cast<std::uint64_t>(*id) & 0xFFFFFFFF);
}

const char* copy_name(std::int64_t kind) {
  switch (kind) {
    case 1:
      return "Memcpy HtoD";
    case 2:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 9:
      return "Memcpy HtoH";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

/// "[[8, 64], [64]]" as "8×64, 64".
std::string dims_in(const std::string& lists) {
  std::string all, shape, number;
  for (const char c : lists) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) number += c;
    if (c != ',' && c != ']') continue;
    if (!number.empty()) shape += (shape.empty() ? "" : "×") + std::exchange(number, {});
    if (c == ']' && !shape.empty()) all += (all.empty() ? "" : ", ") + std::exchange(shape, {});
  }
  return all;
}

class Nsight {
 public:
  explicit Nsight(const std::filesystem::path& file)
      : builder_(file, Format::nsight), database_(file) {}

  Trace read() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_KERNEL") &&
        !database_.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE") &&
        !database_.has("CUPTI_ACTIVITY_KIND_MEMCPY"))
      throw Error(fmt::format(
          "'{}' has no table CUPTI_ACTIVITY_KIND_KERNEL: it is no export of Nsight Systems with "
          "CUDA in it; record with nsys profile --trace=cuda,nvtx",
          builder_.trace().file));
    kernels();
    copies();
    calls();
    ranges();
    about();
    return builder_.made();
  }

 private:
  void note(const std::string& sentence) { builder_.trace().notes.push_back(sentence); }

  /// Of the columns start, end, …, which all tables begin with.
  std::optional<TraceBuilder::Raw> begun(const Row& row, Kind kind) {
    TraceBuilder::Raw raw;
    if (!row[0] || !row[1]) {
      builder_.leave_out();
      return std::nullopt;
    }
    raw.event.begin_ns = *row[0];
    raw.event.end_ns = *row[1];
    raw.event.kind = kind;
    return raw;
  }

  void kernels() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_KERNEL")) note("The export has no table of kernels.");
    const std::vector<std::string> columns = {"start",
                                              "end",
                                              "deviceId",
                                              "streamId",
                                              "correlationId",
                                              "globalPid",
                                              "demangledName",
                                              "shortName",
                                              "mangledName",
                                              "graphNodeId",
                                              "registersPerThread",
                                              "staticSharedMemory",
                                              "dynamicSharedMemory",
                                              "gridX",
                                              "gridY",
                                              "gridZ",
                                              "blockX",
                                              "blockY",
                                              "blockZ"};
    database_.read("CUPTI_ACTIVITY_KIND_KERNEL", columns, [&](const Row& row, const auto&) {
      auto raw = begun(row, Kind::kernel);
      if (!raw) return;
      raw->event.track = builder_.track(true, row[2].value_or(0), row[3].value_or(0));
      raw->correlation = correlation_of(row[5], row[4]);
      for (const std::size_t column : {6, 7, 8}) {
        if (const std::string& name = database_.string(row[column]); !name.empty()) {
          raw->event.name = builder_.name(name);
          break;
        }
        raw->event.name = builder_.name("");
      }
      raw->event.of_graph = row[9].value_or(0) != 0;
      Launch launch;
      launch.registers = row[10].value_or(-1);
      const auto bytes = [](const std::optional<std::int64_t>& one) {
        return std::clamp<std::int64_t>(one.value_or(0), 0, std::int64_t{1} << 40);
      };
      if (row[11] || row[12]) launch.shared_bytes = bytes(row[11]) + bytes(row[12]);
      for (std::size_t i = 0; i < 3; ++i) {
        launch.grid[i] = row[13 + i].value_or(-1);
        launch.block[i] = row[16 + i].value_or(-1);
      }
      raw->event.launch = builder_.launch(launch);
      builder_.add(*raw);
    });
    database_.read(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId"},
        [&](const Row& row, const auto&) {
          auto raw = begun(row, Kind::kernel);
          if (!raw) return;
          raw->event.track = builder_.track(true, row[2].value_or(0), row[3].value_or(0));
          raw->correlation = correlation_of(row[5], row[4]);
          raw->event.name = builder_.name(fmt::format("CUDA graph {}", row[6].value_or(0)));
          raw->event.of_graph = true;
          builder_.add(*raw);
          whole_graphs_ = true;
        });
    if (whole_graphs_)
      note(
          "CUDA graphs were recorded as a whole, without their kernels: record with "
          "--cuda-graph-trace=node.");
  }

  void copies() {
    for (const bool fills : {false, true}) {
      database_.read(
          fills ? "CUPTI_ACTIVITY_KIND_MEMSET" : "CUPTI_ACTIVITY_KIND_MEMCPY",
          {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes",
           "copyKind", "graphNodeId"},
          [&](const Row& row, const auto&) {
            auto raw = begun(row, fills ? Kind::fill : Kind::copy);
            if (!raw) return;
            raw->event.track = builder_.track(true, row[2].value_or(0), row[3].value_or(0));
            raw->correlation = correlation_of(row[5], row[4]);
            raw->event.bytes = row[6].value_or(-1);
            raw->event.of_graph = row[8].value_or(0) != 0;
            raw->event.name = builder_.name(fills ? "Memset" : copy_name(row[7].value_or(0)));
            builder_.add(*raw);
          });
    }
  }

  void calls() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_RUNTIME"))
      note(
          "The export has no table CUPTI_ACTIVITY_KIND_RUNTIME, so it does not say when the host "
          "launched what.");
    database_.read("CUPTI_ACTIVITY_KIND_RUNTIME",
                   {"start", "end", "globalTid", "correlationId", "nameId"},
                   [&](const Row& row, const auto&) {
                     auto raw = begun(row, Kind::call);
                     if (!raw) return;
                     raw->event.track = thread(row[2]);
                     raw->correlation = correlation_of(row[2], row[3]);
                     std::string name = database_.string(row[4]);
                     // cudaLaunchKernel_v7000: the version says nothing here.
                     if (const auto version = name.rfind("_v");
                         version != name.npos &&
                         name.find_first_not_of("0123456789", version + 2) == name.npos)
                       name.resize(version);
                     raw->event.name = builder_.name(name);
                     builder_.add(*raw);
                   });
  }

  void ranges() {
    constexpr std::int64_t kPushPop = 59, kStartEnd = 60;
    if (!database_.has("NVTX_EVENTS"))
      note("The export has no table NVTX_EVENTS: no ranges say what a kernel belongs to.");
    database_.read("NVTX_EVENTS", {"start", "end", "globalTid", "eventType", "textId", "text"},
                   [&](const Row& row, const auto& text) {
                     if (row[3] && *row[3] != kPushPop && *row[3] != kStartEnd) return;
                     if (!row[1]) return;  // a mark, or never ended
                     auto raw = begun(row, Kind::range);
                     if (!raw) return;
                     raw->event.track = thread(row[2]);
                     std::string name = text(5);
                     if (name.empty()) name = database_.string(row[4]);
                     // As torch.autograd.profiler.emit_nvtx writes: "aten::mm, seq = 7, sizes = [[8, 64], [64, 64]]".
                     if (const auto sizes = name.find("sizes = ["); sizes != name.npos)
                       raw->event.shape = builder_.shape({dims_in(name.substr(sizes)), {}});
                     if (const auto words = name.find(", seq = "); words != name.npos)
                       name.resize(words);
                     if (name.starts_with("aten::")) raw->event.kind = Kind::op;
                     raw->event.name = builder_.name(name);
                     builder_.add(*raw);
                   });
    database_.read("ThreadNames", {"globalTid", "nameId"}, [&](const Row& row, const auto&) {
      if (row[0])
        builder_.call_thread(process_of(*row[0]), *row[0] & kProcess, database_.string(row[1]));
    });
  }

  /// The GPUs, and the day.
  void about() {
    database_.read("TARGET_INFO_GPU", {"id", "smCount", "name"},
                   [&](const Row& row, const auto& text) {
                     if (!row[0] || *row[0] < 0 || *row[0] > 4096) return;
                     builder_.trace().devices[static_cast<int>(*row[0])] = {
                         lab::shown_value(text(2)), row[1].value_or(-1)};
                   });
    if (!database_.has("TARGET_INFO_GPU"))
      note("The export has no table TARGET_INFO_GPU: it does not name the GPU.");
    database_.read("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
                   [&](const Row& row, const auto&) {
                     builder_.trace().recorded_at = day_of(row[0].value_or(0));
                   });
  }

  int thread(std::optional<std::int64_t> global) {
    return builder_.track(false, process_of(global.value_or(0)), global.value_or(0) & kProcess);
  }

  TraceBuilder builder_;
  Database database_;
  bool whole_graphs_ = false;
};

}  // namespace

Trace read_nsight(const std::filesystem::path& file) {
  return Nsight(file).read();
}

}  // namespace tilestep::profile
