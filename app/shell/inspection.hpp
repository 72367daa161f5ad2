#pragma once

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/workbench/program.hpp"
#include "scenes/inspect/request.hpp"

namespace tilestep::app {

/// A CUDA file and what was found in it.
struct Inspected {
  std::filesystem::path file;
  std::string source;
  lab::Report report;
};

/// The CUDA file that the window inspects, in another process (`tilestep inspect`): once it is opened, and each time that it
/// is saved.
class Inspection {
 public:
  /// `program`: path of tilestep itself.
  explicit Inspection(std::string program) : program_(std::move(program)) {}
  ~Inspection() { stop(); }
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

  void open(std::filesystem::path file);
  void close();
  /// One that has run already.
  void show(Inspected inspected);
  /// The program runs outside of the sandbox from now on.
  void trust();
  void run();
  /// Looks for the end of the run, and whether the file was saved. Returns whether something changed.
  bool update(double now_s);
  /// When to look again; nothing: there is no file.
  std::optional<double> due_s(double now_s) const;

  const std::filesystem::path& file() const { return now_.file; }
  const std::string& source() const { return now_.source; }
  bool running() const { return ran_.valid(); }
  /// Nothing: it runs for the first time, or failed.
  const lab::Report* report() const { return has_report_ ? &now_.report : nullptr; }
  const std::string& failure() const { return failure_; }
  bool needs_trust() const;

  /// The costliest requests of each line, by line.
  const std::vector<scenes::InspectedRequest>& requests() const { return requests_; }
  /// The one on show; −1: none.
  int chosen() const { return chosen_; }
  void choose(int request);
  /// The first of this line, if it has one, which is marked in the source in any case.
  void choose_line(int line);
  int line() const { return line_; }

 private:
  void take(lab::Report report);
  void stop();

  std::string program_;
  Inspected now_;
  bool has_report_ = false, trusted_ = false;
  std::string failure_;
  std::shared_ptr<std::atomic<bool>> stops_;
  std::future<workbench::Ran> ran_;
  std::filesystem::file_time_type saved_{};
  double looked_s_ = -1;
  std::vector<scenes::InspectedRequest> requests_;
  int chosen_ = -1, line_ = 0;
};

}  // namespace tilestep::app
