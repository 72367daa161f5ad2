#pragma once

namespace tilestep::app {

/// `tilestep worker`: reads one JSON request a line, writes one JSON message a line, until the end
/// of input. Requests: {"ticket": n, "lesson": …, "params": {…}, "action": "run|bench", "backend":
/// …} or {"cancel": n}. Messages: {"type": "progress", "ticket", "fraction", "note"},
/// {"type": "report", "ticket", "report": {…}}, {"type": "error", "ticket", "message", "code"}.
/// A line that is no request gets an error message with ticket null. Returns the exit code.
///
/// One request runs at a time, the others wait in order; a progress message says when one starts.
/// `code` is an ExitCode. A cancelled request
/// is answered by an error whose message says so. At the end of input what was asked for is still
/// answered, as long as somebody reads the answers; when nobody does, all work is given up.
///
/// For tests of those who start workers: with the environment variable TILESTEP_WORKER_FAULT=crash
/// the worker aborts at its next run, with TILESTEP_WORKER_FAULT=hang it hangs there and heeds no
/// cancel.
int worker_loop(int input_fd, int output_fd);

}  // namespace tilestep::app
