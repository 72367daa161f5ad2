#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/worker/lab_address.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/workbench/assembly_request.hpp"

namespace tilestep::app {

using Ticket = std::uint64_t;

/// A lab's messages about a request: any number of progress updates, then exactly one of the others.
struct LabProgress {
  double fraction = 0;
  std::string note;
  bool waiting = false;  ///< not begun yet; the note says what it waits for
};
struct LabFailure {
  std::string sentence;  ///< for the user
  ExitCode code = ExitCode::bad_input;
  bool worker_died = false;                    ///< its worker, or what led to one, is gone
  std::optional<lab::Fix> fix = std::nullopt;  ///< knobs with which it works
  std::string next = {};                       ///< the next event, a sentence; empty: none
  /// For an edited kernel: errors by line.
  std::vector<lab::Diagnostic> diagnostics = {};
};
/// Given up before its answer.
enum class LabGivenUp {
  replaced,  ///< by a newer request of its kind
  cancelled,
};
using LabAssembly = std::shared_ptr<const workbench::Assembly>;
struct LabUpdate {
  Ticket ticket = 0;  ///< 0: of no request (a failure: an idle worker died)
  std::variant<LabProgress, lab::Report, LabAssembly, LabFailure, LabGivenUp> what;
  std::string evidence = {};  ///< beside a report: of a run that was submitted for it
};

/// Runs requests somewhere else. Never blocks its caller.
///
/// There is one queue, with four kinds of requests in it, runs, benches, assembly and trials, of which one is under way
/// at a time: what runs beside a bench would spoil its times. A request replaces an older one of its own
/// kind, whether that waits or is under way, and never one of another kind: it waits for that. Of
/// those that wait the run goes first, being short, then the one that was asked first.
class LabClient {
 public:
  virtual ~LabClient() = default;
  virtual Ticket submit(const lab::Request& request) = 0;
  /// The same for one of several labs, counted from 0; where there is but one: that.
  virtual Ticket submit_to(std::size_t, const lab::Request& request) { return submit(request); }
  /// Asks one of several labs for the assembly of a source.
  virtual Ticket submit_assembly(std::size_t lab, const workbench::AssemblyRequest& request) = 0;
  /// The same for a request whose kernel others wrote: it runs in a sandbox of this machine, or not at all. Throws Error
  /// with the reason, and what to do, if it is not run.
  virtual Ticket submit_others(const lab::Request& request);
  /// The same for a run whose report is to be had without trust in the process that runs its kernel (kernels/evidence.hpp).
  /// `evidence` empty: the update with its report has its evidence, in base64. Else that: the report is made of it, and no
  /// kernel runs. Throws Error (unavailable) for a lab that takes none.
  virtual Ticket submit_evidence(const lab::Request& request, std::string evidence);
  /// Why others' kernels are not run here, as the end of a sentence; empty: they are.
  virtual std::string why_no_sandbox() const;
  /// Whether the caller continues while it answers, so that it can run work in the background (trials).
  virtual bool beside() const { return true; }
  /// The next update, if there is one.
  virtual std::optional<LabUpdate> poll() = 0;
  /// Gives up a request that waits or is under way; its last update says so.
  virtual void cancel(Ticket ticket) = 0;
  /// True while a request waits or is under way.
  virtual bool busy() const = 0;
};

struct ProcessLabOptions {
  std::string program;  ///< path of tilestep itself; run as `program worker` for a lab that is here
  LabAddress address = {};
  // A run or bench that takes longer, from its start, is ended.
  std::chrono::milliseconds run_deadline = std::chrono::seconds(60);
  std::chrono::milliseconds bench_deadline = std::chrono::minutes(30);
  /// Of a run with an edited kernel, from where that is compiled, and anew from where one that failed on a GPU is run
  /// under emulation for its line. The worker ends each itself, after 10 seconds; this is for what it cannot end.
  std::chrono::milliseconds edited_deadline = std::chrono::seconds(12);
  std::chrono::milliseconds sanitizer_deadline = std::chrono::seconds(100);  ///< the same, after 90
  std::chrono::milliseconds compile_deadline = std::chrono::minutes(5);
  /// Of a run or bench in all, also if the worker says that it compiles or waits: for one that may say anything.
  std::chrono::milliseconds whole_deadline = std::chrono::hours(24 * 365);
  std::chrono::milliseconds stop_grace{500};  ///< how long a cancelled request may take to stop
  /// How long a worker elsewhere may take to say what it is. A scheduler may let it wait for long.
  std::chrono::milliseconds ssh_deadline = std::chrono::seconds(60);
  std::chrono::milliseconds command_deadline = std::chrono::minutes(30);
  /// Bytes of a message; a worker that sends a longer one is ended.
  std::size_t longest_message = std::size_t{256} << 20;
  std::function<void()> wake;  ///< called, from any thread, when `poll` has something new
};

/// A lab in a worker process, which is a child of ours or answers through one. A kernel that crashes
/// takes only the worker with it. One elsewhere has to be of our version and built from our kernels:
/// else its traces and tables would not be what scenes and texts are about.
std::unique_ptr<LabClient> make_process_lab(ProcessLabOptions options);

/// A lab that answers inside `submit`, for pictures and tests (no process, no thread).
std::unique_ptr<LabClient> make_inline_lab();

}  // namespace tilestep::app
