#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/arguments.hpp"
#include "app/cli/bench_parts.hpp"
#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/ladder_text.hpp"
#include "app/cli/output.hpp"
#include "app/cli/report_text.hpp"
#include "app/worker/ask.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

struct BenchArguments {
  std::string what;
  std::string lab = "here";
  std::string kernel;                ///< file of an edited source
  std::vector<std::string> lessons;  ///< of bench edit; empty: all
  std::string backend;               ///< of bench edit; empty: all that are here
  bool quick = false;
  FormatArguments format;
};

/// The labs that benches are asked of.
struct Bencher {
  LabAddress address;
  std::unique_ptr<LabClient> lab;  ///< null: this process
  std::string kernel = {};         ///< file of an edited source; empty: the kernels as they are
  bool quick = false;
};

/// Measures now where that is possible, else says so and gives what was recorded.
lab::Report bench_of(const lab::Lesson& lesson, const Bencher& bencher) {
  lab::Request request;
  request.lesson = lesson.info().id;
  request.action = lab::Request::Action::bench;
  if (bencher.quick) request.params[lab::kQuickParam] = true;
  const bool elsewhere = bencher.address.elsewhere();
  const simt::CudaStatus status = elsewhere ? simt::CudaStatus() : simt::cuda_status();
  const bool can_measure = elsewhere || status.available;
  request.backend = can_measure ? "cuda" : "recorded";
  if (!bencher.kernel.empty()) {
    request.kernel = read_kernel_edit(request.lesson, bencher.kernel);
    if (!can_measure) {
      throw Error(fmt::format("an edited kernel can only be timed on a GPU, and none can be used "
                              "here ({}); `tilestep "
                              "run {} --kernel {}` checks it under emulation",
                              status.reason, request.lesson, bencher.kernel),
                  ExitCode::unavailable);
    }
  }
  if (!can_measure) {
    const lab::Recording* recording = lab::recording(request.lesson);
    if (recording == nullptr) {
      throw Error(fmt::format("nothing was measured here ({}), and no bench of '{}' was recorded",
                              status.reason, request.lesson),
                  ExitCode::unavailable);
    }
    remark(fmt::format("nothing was measured here ({}); these numbers were recorded on {} on {}",
                       status.reason, recording->bench.device.name, recording->recorded_at));
  }
  TerminalProgress progress;
  return ask(bencher.lab.get(), request, progress);
}

int bench_lessons(const std::vector<const lab::Lesson*>& chosen, bool one,
                  const FormatArguments& format, const Bencher& bencher) {
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  bool ok = true;
  for (const lab::Lesson* lesson : chosen) {
    const lab::Report report = bench_of(*lesson, bencher);
    remark_refused_turn(report);
    ok = ok && report.ok();
    all.push_back(lab::to_json(report));
    text += (text.empty() ? "" : "\n") +
            (format.markdown ? ladder_markdown(report) : report_text(report));
  }
  print(format.json ? json_text(one ? all.front() : all) : text);
  return static_cast<int>(ok ? ExitCode::good : ExitCode::check_failed);
}

void print_table(const lab::Table& table, const nlohmann::json& json,
                 const FormatArguments& format) {
  if (format.json) {
    print(json_text(json));
  } else if (format.markdown) {
    print(table.to_markdown());
  } else {
    print(table.title + "\n" + aligned(table));
  }
}

int bench_ui(const FormatArguments& format, const std::string& program) {
  const BenchPart window = bench_window(program);  // first, while this process is small
  const BenchCases cases = bench_cases();
  nlohmann::json json = nlohmann::json::object();
  std::vector<lab::Table> tables;
  for (const BenchPart& part : {bench_frames(cases), bench_pictures(cases), window}) {
    json.update(part.json);
    tables.push_back(part.table);
  }
  if (format.json) {
    print(json_text(json));
  } else {
    for (const lab::Table& table : tables) print_table(table, json, format);
  }
  return static_cast<int>(ExitCode::good);
}

int bench_edit(const BenchArguments& arguments, const std::string& program) {
  if (!arguments.backend.empty() && arguments.backend != "emulated" &&
      arguments.backend != "cuda") {
    throw Error(fmt::format("--backend {} does not work with edit; allowed: emulated, cuda",
                            arguments.backend));
  }
  EditBench what{program, {}, {"emulated"}};
  for (const std::string& id : arguments.lessons) what.lessons.push_back(lesson(id).info().id);
  const simt::CudaStatus status = simt::cuda_status();
  if (arguments.backend == "cuda" && !status.available) {
    throw Error("--backend cuda: " + status.reason, ExitCode::unavailable);
  }
  if (arguments.backend.empty() && status.available) what.backends.push_back("cuda");
  if (arguments.backend == "cuda") what.backends = {"cuda"};
  const BenchPart part = bench_edits(what);
  print_table(part.table, part.json, arguments.format);
  return static_cast<int>(ExitCode::good);
}

/// What is timed that is no lesson, and what goes with it.
void check(const BenchArguments& arguments) {
  arguments.format.check();
  const std::string& what = arguments.what;
  const bool edit = what == "edit";
  if (!edit && !arguments.lessons.empty()) throw Error("--lesson works only with edit");
  if (!edit && !arguments.backend.empty()) throw Error("--backend works only with edit");
  if (what != "simt" && what != "ui" && what != "inspect" && what != "profile" && !edit) return;
  if (parse_lab(arguments.lab).elsewhere()) {
    throw Error(fmt::format("--lab does not work with {}, which measures this machine", what));
  }
  if (arguments.quick) {
    throw Error(
        fmt::format("--quick does not work with {}; allowed: a lesson, or none for all", what));
  }
  if (!arguments.kernel.empty()) {
    throw Error(fmt::format("--kernel does not work with {}; allowed: a lesson", what));
  }
}

int bench(const BenchArguments& arguments, const std::string& program) {
  check(arguments);
  const LabAddress address = parse_lab(arguments.lab);
  if (arguments.what == "simt") {
    const BenchPart part = bench_emulator();
    print_table(part.table, part.json, arguments.format);
    return static_cast<int>(ExitCode::good);
  }
  if (arguments.what == "ui") return bench_ui(arguments.format, program);
  if (arguments.what == "edit") return bench_edit(arguments, program);
  if (arguments.what == "inspect") {
    const BenchPart part = bench_inspections(program);
    print_table(part.table, part.json, arguments.format);
    return static_cast<int>(ExitCode::good);
  }
  if (arguments.what == "profile") {
    const BenchPart part = bench_profiles();
    print_table(part.table, part.json, arguments.format);
    return static_cast<int>(ExitCode::good);
  }
  const bool edited = !arguments.kernel.empty();
  if (edited && arguments.what.empty())
    throw Error("--kernel needs the name of its lesson before it");
  const Bencher bencher{address,
                        edited ? make_process_lab_at(address, program) : make_lab(address, program),
                        arguments.kernel, arguments.quick};
  if (arguments.what.empty()) {
    return bench_lessons(parse_lessons({}), false, arguments.format, bencher);
  }
  try {
    return bench_lessons({&lesson(arguments.what)}, true, arguments.format, bencher);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) throw;
    throw Error(fmt::format("{}; besides them: simt, ui, edit, inspect, profile", error.what()));
  }
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand(
      "bench",
      "Time a lesson's kernels; simt: the emulator; ui: pictures and frames of each scene, and the "
      "window; edit: from Ctrl+Enter to an edited kernel's picture; inspect: from a saved CUDA "
      "file to "
      "its findings; profile: opening a trace, and frames of its page");
  command->add_option("WHAT", arguments->what,
                      "Lesson, simt, ui, edit, inspect or profile (default: all lessons)");
  add_lab(*command, arguments->lab);
  add_kernel(*command, arguments->kernel);
  command->add_option("--lesson", arguments->lessons, "(edit) only these lessons");
  command->add_option("--backend", arguments->backend,
                      "(edit) only this backend: emulated or cuda");
  command->add_flag("--quick", arguments->quick,
                    "(lesson) Only the ladder and its peers, briefly: half a minute");
  command->add_flag("--json", arguments->format.json, "As JSON");
  command->add_flag("--markdown", arguments->format.markdown,
                    "Print the ladder as a Markdown table");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return bench(*arguments, invocation.program); };
  });
}

}  // namespace tilestep::app
