#pragma once

#include <functional>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep::app {

/// How a worker answers a request: `tilestep::answer`, but for tests.
using Answerer = std::function<lab::Report(const lab::Request& request, lab::Progress& progress)>;

/// `tilestep worker`: reads one JSON request a line, writes one JSON message a line, until the end
/// of input. Requests: {"ticket": n, "lesson": …, "params": {…}, "action": "run|bench|trials", "backend":
/// …} or {"cancel": n}. Messages: {"type": "progress", "ticket", "fraction", "note"},
/// {"type": "report", "ticket", "report": {…}}, {"type": "error", "ticket", "message", "code"}.
/// A line that is no request, or is longer than 4 MiB, gets an error message with ticket null. Returns
/// the exit code.
///
/// {"hello": {"version": "…", "source_hash": "…"}} asks what this program is: {"type": "hello",
/// "version", "source_hash"}. Who starts a worker of another build compares them first.
///
/// A progress message with "waiting": true says that others have the GPU: the time until the next
/// one without is no time of the run.
///
/// "kernel": {"path": "kernels/…/one_pass.cu", "text": "…"} in a request compiles the lesson's kernels with
/// that source in place of its own (kernels/workbench), and its error may have "diagnostics", a list of
/// {"line", "column", "severity", "text"}; "order" is in which the emulation runs a block's threads.
///
/// "evidence": "" in a request with a kernel asks for what the lesson has read of its device, too: the message of its report
/// has it as "evidence", in base64. With that as its "evidence" the same request, which need have no kernel then, is answered
/// by a report that is made of it, without a kernel (kernels/evidence.hpp).
///
/// "trials" runs such a kernel at the lesson's trial settings, emulated; its report has the table `trials`
/// (kernels/base/workbench/trials.hpp). "orders": false in a run of such a kernel leaves other orders of the threads to them:
/// unless they have "orders": false too, they begin with those, at "params", and have the check `thread_order`.
///
/// A bench with a kernel may have the param "race": "copy_bandwidth vectorized coalesced": of its ladders only these
/// two rungs are timed, the first with that kernel, the second as it was built in (kernels/base/lab/race.hpp). A kernel that
/// fails on a GPU ends the worker ("worker_ends"), after it has been run again for the line.
///
/// {"ticket": n, "assembly": {"lesson": …, "kernel": {…}, "form": "ptx|sass", "capability": 90}} asks what a GPU's
/// compilers make of a source; nothing runs. The answer is {"type": "assembly", "ticket", "assembly":
/// {"compiled": {…}, "kernels": […]}} (workbench/assembly_request.hpp), or an error with diagnostics.
///
/// One request runs at a time, the others wait in order; a progress message says when one starts.
/// `code` is an ExitCode. A cancelled request is answered by an error whose message says so. At the
/// end of input what was asked for is still answered, as long as somebody reads the answers; when
/// nobody does, all work is given up.
///
/// An error of knobs that the lesson does not take has "fix" as well: {"label": "Set component to 0",
/// "settings": {…}}, a button's text and the knobs that make them good.
///
/// An error or a report with "worker_ends": true says that the device does no more work for this process:
/// a report if that is what was to be seen. What still waits gets such an error too, and the worker exits
/// with code 3.
///
/// For tests of those who start workers, the environment variable TILESTEP_WORKER_FAULT makes the
/// worker, at its next request: `crash` (abort), `hang` (and heed no cancel), `lost` (as after an
/// error that CUDA does not recover from, half a second later), `lost-after` (the same, but the run
/// was meant to come to that and is answered) or `slow-bench` (a bench takes two
/// seconds longer).
int worker_loop(int input_fd, int output_fd, Answerer answerer);
int worker_loop(int input_fd, int output_fd);

}  // namespace tilestep::app
