#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace tilestep::app {

/// What the command line was parsed to: a command's `add_…` sets `action` when the command is
/// chosen.
struct Invocation {
  std::string program;  ///< path of tilestep itself
  std::function<int()> action;
};

// One function a command: adds it to `app` with its options. The action returns the exit code and
// throws Error.
void add_open(CLI::App& app, Invocation& invocation);
void add_list(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_record(CLI::App& app, Invocation& invocation);
void add_shot(CLI::App& app, Invocation& invocation);
void add_film(CLI::App& app, Invocation& invocation);
void add_site(CLI::App& app, Invocation& invocation);
void add_tour(CLI::App& app, Invocation& invocation);
void add_verify_recording(CLI::App& app, Invocation& invocation);
void add_worksheet(CLI::App& app, Invocation& invocation);
void add_worker(CLI::App& app, Invocation& invocation);
void add_progress(CLI::App& app, Invocation& invocation);
void add_exercise(CLI::App& app, Invocation& invocation);
void add_assembly(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);
void add_profile(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);

}  // namespace tilestep::app
