#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/worker/protocol.hpp"
#include "app/worker/sandbox.hpp"
#include "app/worker/worker_loop.hpp"
#include "kernels/base/inspect/run.hpp"
#include "kernels/base/simt/error.hpp"
#include "kernels/base/workbench/folders.hpp"

namespace tilestep::app {
namespace {

/// A program to compile, or a compiled one to run, in place of requests (inspect_run.hpp asks for it).
struct ProgramArguments {
  std::string compile, module, source, order = "ascending";
  std::vector<std::string> words;
  std::uint64_t seed = 1;
  int seconds = 10;
  bool plain = false;
};

void write_all(int output, std::string text) {
  text += '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(output, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

/// The compiled program as {"module": BASE64}, or the error, in the form of a request's.
std::string compiled_line(const ProgramArguments& arguments) {
  try {
    const workbench::Compiled compiled =
        inspect::compile_program(arguments.source, workbench::read_whole(arguments.compile));
    return nlohmann::json{{"module", protocol::base64_of(workbench::read_whole(
                                         compiled.folder / workbench::kHostModule))}}
        .dump();
  } catch (const Error& error) {
    return protocol::line_of(protocol::Failed{
        0, {error.what(), error.code(), false, {}, {}, lab::diagnostics_of(error)}});
  }
}

int work(const ProgramArguments& arguments) {
  ::prctl(PR_SET_NAME, "tilestep");  // started as /proc/self/exe it would be called "exe"
  give_up_system_calls();
  // Messages get a descriptor of their own: what a library prints must not land among them.
  const int output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (output < 0) {
    throw Error("the worker has no standard output to answer on", ExitCode::unavailable);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (!arguments.compile.empty()) {
    write_all(output, compiled_line(arguments));
    return static_cast<int>(ExitCode::good);
  }
  if (!arguments.module.empty()) {
    inspect::RunOptions options{
        arguments.module, {arguments.source}, {}, std::chrono::seconds(arguments.seconds)};
    options.arguments.insert(options.arguments.end(), arguments.words.begin(),
                             arguments.words.end());
    const auto order = named<simt::ThreadOrder>(arguments.order);
    if (!order)
      throw Error("--order cannot be '" + arguments.order +
                  "'; allowed: ascending, descending, shuffled");
    options.session = {*order, arguments.seed, !arguments.plain, arguments.source};
    inspect::run_program(options, [output](const lab::Report& report) {
      write_all(output, lab::to_json(report).dump(-1, ' ', false,
                                                  nlohmann::json::error_handler_t::replace));
    });
  }
  const int code = worker_loop(STDIN_FILENO, output);
  ::close(output);
  return code;
}

}  // namespace

void add_worker(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ProgramArguments>();
  CLI::App* command = app.add_subcommand(
      "worker", "Read one JSON request per line (at most 4 MiB), write one JSON message per line");
  command->add_option("--compile", arguments->compile)->group("");
  command->add_option("--program", arguments->module)->group("");
  command->add_option("--source", arguments->source)->group("");
  command->add_option("--order", arguments->order)->group("");
  command->add_option("--seed", arguments->seed)->group("");
  command->add_option("--seconds", arguments->seconds)->group("");
  command->add_flag("--plain", arguments->plain)->group("");
  command->add_option("WORDS", arguments->words)->group("");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return work(*arguments); }; });
}

}  // namespace tilestep::app
