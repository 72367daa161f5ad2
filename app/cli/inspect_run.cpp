#include "app/cli/inspect_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <variant>

#include "app/worker/protocol.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/inspect/run.hpp"
#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/compiler.hpp"
#include "kernels/base/workbench/folders.hpp"
#include "kernels/base/workbench/precompiled.hpp"
#include "kernels/base/workbench/program.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

/// The compiler has its own limit; this is for a sandbox that never begins.
constexpr std::chrono::minutes kCompileDeadline{5};

fs::path real_path(const std::string& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  return error ? fs::path(program) : real;
}

/// Starts tilestep again to run the compiled program, in a sandbox unless it is trusted.
std::vector<std::string> command_of(const ProgramPlan& plan, const fs::path& module) {
  const fs::path self = real_path(plan.program);
  std::vector<std::string> words;
  if (!plan.trust) words = sandbox_prefix(self, {}, module);
  for (const std::string& word :
       {self.string(), std::string("worker"), std::string("--program"),
        plan.trust ? module.string() : std::string(kModuleInSandbox), std::string("--source"),
        plan.name, std::string("--seconds"), std::to_string(plan.seconds)}) {
    words.push_back(word);
  }
  return words;
}

/// Compiles a source in a sandbox. Returns the bytes of the module.
std::string compiled_in_sandbox(const ProgramPlan& plan, const fs::path& source) {
  const fs::path self = real_path(plan.program);
  // Precompiling headers takes longer than one program.
  std::vector<std::string> words =
      sandbox_prefix(self, {fmt::format("{}=no", workbench::kPrecompiledVariable)}, source);
  for (const std::string& word :
       {self.string(), std::string("worker"), std::string("--compile"),
        std::string(kModuleInSandbox), std::string("--source"), plan.name}) {
    words.push_back(word);
  }
  const workbench::Ran ran = workbench::run_program(words, kCompileDeadline, 0, plan.stop);
  const auto json = nlohmann::json::parse(ran.output, nullptr, false);
  if (!json.is_object()) {
    throw lab::SourceError(fmt::format("{} does not compile: the compiler was ended", plan.name),
                           {});
  }
  if (const auto module = json.find("module"); module != json.end() && module->is_string())
    return protocol::bytes_of_base64(module->get<std::string>());
  const protocol::Message message = protocol::message_from(ran.output);
  const auto* failed = std::get_if<protocol::Failed>(&message);
  if (failed == nullptr)
    throw Error("the compiler's process did not answer", ExitCode::unavailable);
  const LabFailure& failure = failed->failure;
  if (failure.code == ExitCode::unavailable) throw Error(failure.sentence, failure.code);
  throw lab::SourceError(failure.sentence, failure.diagnostics);
}

/// The report of a worker that ran another person's program.
lab::Report report_in(const workbench::Ran& ran, int seconds) {
  if (ran.timed_out)
    throw Error(fmt::format("the program did not end within {} seconds", seconds),
                ExitCode::check_failed);
  const auto json = nlohmann::json::parse(ran.output, nullptr, false);
  if (json.is_discarded()) {
    throw Error(
        fmt::format("the program ended in a way that left no report (status {}){}", ran.status,
                    ran.output.empty()
                        ? std::string()
                        : ": " + lab::shown(ran.output.substr(0, ran.output.find('\n')))),
        ExitCode::check_failed);
  }
  lab::Report report = lab::report_from_json(json);
  if (!report.trace->is_object())
    throw Error("the program's report has no trace", ExitCode::check_failed);
  report.summary = lab::shown(report.summary);
  for (lab::Table& table : report.tables) {
    for (auto& row : table.rows) {
      for (lab::Cell& cell : row) {
        if (auto* words = std::get_if<std::string>(&cell)) *words = lab::shown(*words);
      }
    }
  }
  return report;
}

lab::Report run_once(const ProgramPlan& plan, std::vector<std::string> words) {
  words.insert(words.end(), plan.words.begin(), plan.words.end());
  return report_in(
      workbench::run_program(words, std::chrono::seconds(plan.seconds + 10), 0, plan.stop),
      plan.seconds);
}

/// Runs the program again with its threads in other orders: whether it prints the same.
void try_orders(lab::Report& report, const ProgramPlan& plan,
                const std::vector<std::string>& command) {
  if (!report.ok()) return;  // a mistake is known already
  lab::Check check{"thread orders", true, 0, 0,
                   fmt::format("the program prints the same in {}",
                               lab::plural(plan.orders, "other order of its threads",
                                           "other orders of its threads"))};
  const auto run_again = [&](const char* order, int seed) {
    std::vector<std::string> words = command;
    for (const std::string& word :
         {std::string("--plain"), std::string("--order"), std::string(order), std::string("--seed"),
          std::to_string(seed)}) {
      words.push_back(word);
    }
    return run_once(plan, std::move(words));
  };
  for (int i = 0; i < plan.orders && check.ok; ++i) {
    const lab::Report other = run_again(i == 0 ? "descending" : "shuffled", i + 1);
    if (printed_by(other) == printed_by(report) && other.ok()) continue;
    // A program that prints a time or a random number prints something else in the same order too.
    if (other.ok() && printed_by(run_again("ascending", 1)) != printed_by(report)) {
      check.detail =
          "the program prints something else each time it runs: its orders are not compared";
      break;
    }
    const inspect::Taught* taught = inspect::taught_by(inspect::Kind::order);
    check.ok = false;
    check.max_error = 1;
    check.detail = fmt::format("with its threads in {} order the program prints something else",
                               i == 0 ? "descending" : "another");
    for (lab::Table& table : report.tables) {
      if (table.id != "findings") continue;
      table.rows.insert(table.rows.begin(),
                        {"order", "yes", lab::Cell(), lab::Cell(), lab::Cell(), check.detail,
                         taught->lesson, taught->stop, taught->exercise});
    }
  }
  report.add(check);
}

}  // namespace

lab::Report run_compiled(const ProgramPlan& plan, const fs::path& module) {
  const std::vector<std::string> command = command_of(plan, module);
  lab::Report report = run_once(plan, command);
  try_orders(report, plan, command);
  return report;
}

lab::Report run_in_sandbox(const ProgramPlan& plan, std::string_view text) {
  const workbench::OwnFolder folder("handed-in");
  const fs::path source = folder.path() / plan.name,
                 module = folder.path() / workbench::kHostModule;
  workbench::write_whole(source, text);
  workbench::write_whole(module, compiled_in_sandbox(plan, source));
  return run_compiled(plan, module);
}

std::string printed_by(const lab::Report& report) {
  const auto found = report.trace->find("printed");
  return found != report.trace->end() && found->is_string()
             ? lab::printable(found->get<std::string>())
             : std::string();
}

}  // namespace tilestep::app
