#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/fitted_table.hpp"
#include "app/cli/inspect_page.hpp"
#include "app/cli/inspect_run.hpp"
#include "app/cli/output.hpp"
#include "app/cli/terminal.hpp"
#include "app/file.hpp"
#include "app/keep/place.hpp"
#include "app/keep/progress.hpp"
#include "app/keep/settings.hpp"
#include "app/shell/inspection.hpp"
#include "app/window/window.hpp"
#include "app/worker/sandbox.hpp"
#include "kernels/base/inspect/call.hpp"
#include "kernels/base/inspect/fidelity.hpp"
#include "kernels/base/inspect/on_gpu.hpp"
#include "kernels/base/inspect/resources.hpp"
#include "kernels/base/inspect/run.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/workbench/compiler.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

struct InspectArguments {
  std::string file, kernel, html, shot;
  std::vector<std::string> words;
  int launch = 0, orders = 2, seconds = 10;
  bool json = false, text = false, trust = false, force = false, presenter = false;
  double text_scale = 1;
  std::string tab = "found", size = "1440x900", theme = "dark", gpu = "h100", call, solve,
              backend = "emulated";
  inspect::CallShape shape;
};

/// What says how the file runs, for another tilestep.
std::vector<std::string> how_it_runs(const InspectArguments& arguments) {
  std::vector<std::string> words = {"--gpu", arguments.gpu, "--backend", arguments.backend};
  if (!arguments.call.empty()) {
    for (const std::string& word :
         {std::string("--call"), arguments.call, std::string("--grid"), arguments.shape.grid,
          std::string("--block"), arguments.shape.block, std::string("--shared"),
          arguments.shape.shared})
      words.push_back(word);
  }
  if (!arguments.solve.empty()) words.insert(words.end(), {"--args", arguments.solve});
  return words;
}

/// The main that the command line gives a file without one; empty: it has its own.
std::string added_main(const InspectArguments& arguments, const std::string& source) {
  if (!arguments.call.empty() && !arguments.solve.empty())
    throw Error("--call and --args are two ways to call a kernel; give one of them");
  if (!arguments.call.empty()) return inspect::main_of_call(arguments.call, arguments.shape);
  if (!arguments.solve.empty()) return inspect::main_of_solve(source, arguments.solve);
  return {};
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The findings, each under its line of the source.
std::string findings_text(const lab::Report& report, const std::vector<std::string>& source) {
  const lab::Table* table = report.table("findings");
  if (table == nullptr || table->columns.size() < 9) return {};
  std::string out;
  const auto quote = [&](const std::string& line) {
    const int number = std::atoi(line.c_str());
    if (number < 1 || number > static_cast<int>(source.size())) return std::string();
    return fmt::format("{:>6} | {}\n", number,
                       lab::printable(source[static_cast<std::size_t>(number) - 1]));
  };
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const std::string line = table->text(row, 2), other = table->text(row, 3),
                      lesson = table->text(row, 6);
    out += fmt::format("\n{}{}\n", table->text(row, 0),
                       table->text(row, 1) == "no" ? " (slow, not wrong)" : "");
    out += quote(line);
    if (other != line) out += quote(other);
    out += "         " + for_reader(table->text(row, 5), 9);
    if (out.back() != '\n') out += '\n';
    if (!lesson.empty())
      out += fmt::format("         tilestep open {} --reader --stop {}\n", lesson,
                         table->text(row, 7));
    if (const std::string exercise = table->text(row, 8); !exercise.empty())
      out += fmt::format("         tilestep exercise list {}\n", exercise);
  }
  return out;
}

/// Rows of a table whose kernel and launch are asked for.
lab::Table chosen_rows(const lab::Table& table, const InspectArguments& arguments) {
  lab::Table kept = table;
  const auto column = [&](std::string_view id) {
    return std::find_if(table.columns.begin(), table.columns.end(),
                        [&](const lab::Column& each) { return each.id == id; }) -
           table.columns.begin();
  };
  const auto kernel = static_cast<std::size_t>(column("kernel")),
             launch = static_cast<std::size_t>(column("launch"));
  std::erase_if(kept.rows, [&](const std::vector<lab::Cell>& row) {
    if (launch < row.size() && arguments.launch > 0) {
      const auto* number = std::get_if<double>(&row[launch]);
      if (number == nullptr || *number != arguments.launch) return true;
    }
    if (kernel < row.size() && !arguments.kernel.empty()) {
      const auto* name = std::get_if<std::string>(&row[kernel]);
      if (name == nullptr || name->find(arguments.kernel) == name->npos) return true;
    }
    return false;
  });
  return kept;
}

int tab_of(const std::string& name) {
  const auto found = std::find(kInspectTabs.begin(), kInspectTabs.end(), name);
  if (found != kInspectTabs.end()) return static_cast<int>(found - kInspectTabs.begin());
  std::string allowed;
  for (const std::string_view each : kInspectTabs)
    allowed += (allowed.empty() ? "" : ", ") + std::string(each);
  throw Error(fmt::format("--tab cannot be '{}'; allowed: {}", name, allowed));
}

bool has_display() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
}

/// The window, where the file runs again whenever it is saved.
int open_window(const InspectArguments& arguments, const std::string& program) {
  WindowOptions options;
  const Size size = parse_size(arguments.size);
  options.width = size.width;
  options.height = size.height;
  options.program = options.shell.program = program;
  SettingsFile settings;
  options.shell.kept = settings.load();
  options.shell.theme = options.shell.kept.light ? ui::ThemeKind::light : ui::ThemeKind::dark;
  options.shell.text_scale = static_cast<float>(options.shell.kept.text_scale);
  options.settings = &settings;
  options.shell.progress = progress_path();
  options.shell.inspect_page = arguments.file.empty();
  if (!arguments.file.empty()) options.shell.inspects = fs::absolute(arguments.file);
  options.shell.trust = arguments.trust;
  options.shell.inspect_words = how_it_runs(arguments);
  return run_window(options);
}

ShotOptions shot_options(const InspectArguments& arguments) {
  ShotOptions options;
  const Size size = parse_size(arguments.size);
  options.width = size.width;
  options.height = size.height;
  options.out = arguments.shot;
  options.force = arguments.force;
  options.shell.still = true;
  options.shell.theme = arguments.theme == "light" ? ui::ThemeKind::light : ui::ThemeKind::dark;
  options.shell.presenter = arguments.presenter;
  options.shell.text_scale = static_cast<float>(arguments.text_scale);
  options.shell.inspect_tab = tab_of(arguments.tab);
  return options;
}

/// The window as it shows the report, or the costliest request alone.
void take_picture(const InspectArguments& arguments, const lab::Report& report,
                  const std::string& text) {
  if (arguments.shot.ends_with(".png")) {
    ShotOptions options = shot_options(arguments);
    options.shell.inspected =
        std::make_shared<const Inspected>(Inspected{arguments.file, text, report});
    return take_shot(options);
  }
  const auto all = scenes::inspected_requests(report);
  const auto most = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.moved - a.least < b.moved - b.least;
  });
  const auto paths = scenes::inspected_paths(report);
  if (most == all.end() && paths.empty())
    throw Error("the program made no request that could be drawn", ExitCode::check_failed);
  const picture::Picture picture =
      most == all.end() ? scenes::picture_of(paths[0]) : scenes::picture_of(*most);
  write_output(arguments.shot, SvgPress(1440, 900).draw(picture, ui::ThemeKind::dark),
               arguments.force);
}

/// Without a file: the page that asks for one, in the window or drawn.
int open_page(const InspectArguments& arguments, const std::string& program) {
  if (arguments.shot.ends_with(".png")) {
    require_output(arguments.shot, arguments.force);
    ShotOptions options = shot_options(arguments);
    options.shell.inspect_page = true;
    take_shot(options);
    return static_cast<int>(ExitCode::good);
  }
  if (!arguments.text && has_display()) return open_window(arguments, program);
  throw Error("name a CUDA file: tilestep inspect FILE.cu");
}

int inspect_file(const InspectArguments& arguments, const std::string& program) {
  if (arguments.file.empty()) return open_page(arguments, program);
  const inspect::Gpu& gpu = inspect::gpu_named(arguments.gpu);
  const bool asked = arguments.json || arguments.text || !arguments.html.empty() ||
                     !arguments.shot.empty() || !arguments.kernel.empty() || arguments.launch > 0 ||
                     !arguments.words.empty();
  if (!asked && has_display()) return open_window(arguments, program);
  if (arguments.orders < 0 || arguments.orders > 100) throw Error("--orders is 0 to 100");
  if (arguments.seconds < 1 || arguments.seconds > 120) throw Error("--seconds is 1 to 120");
  if (!arguments.shot.empty() && !arguments.shot.ends_with(".svg") &&
      !arguments.shot.ends_with(".png")) {
    throw Error(fmt::format("--shot cannot be '{}'; allowed: a file that ends in .png or .svg",
                            arguments.shot));
  }
  if (arguments.theme != "dark" && arguments.theme != "light")
    throw Error(fmt::format("--theme cannot be '{}'; allowed: dark, light", arguments.theme));
  if (arguments.backend != "emulated" && arguments.backend != "cuda")
    throw Error(
        fmt::format("--backend cannot be '{}'; allowed: emulated, cuda", arguments.backend));
  if (arguments.backend == "cuda" && !arguments.trust)
    throw Error(
        "--backend cuda runs the program on the GPU as you, outside the sandbox; for a program of "
        "your own add --trust");
  tab_of(arguments.tab);
  if (arguments.text_scale < 1 || arguments.text_scale > 2) throw Error("--text-scale is 1 to 2");
  if (!arguments.shot.empty()) require_output(arguments.shot, arguments.force);
  if (!arguments.html.empty()) require_output(arguments.html, arguments.force, kPageBegins);
  const std::string source = read_source(arguments.file);
  const std::string main = added_main(arguments, source), text = source + main;
  if (!arguments.trust && !sandbox_status().available) {
    throw Error(fmt::format("a program runs in a sandbox, and there is none: {}; for a program of "
                            "your own add --trust",
                            sandbox_status().reason),
                ExitCode::unavailable);
  }
  // nvcc takes its time: it has it while the program is compiled for the emulation and runs.
  auto registers = std::async(std::launch::async, [&] {
    return inspect::registers_of(arguments.file, text, gpu.compute_capability);
  });
  const workbench::Compiled compiled = inspect::compile_program(arguments.file, text);
  const ProgramPlan plan{program,           fs::path(arguments.file).filename().string(),
                         arguments.words,   arguments.orders,
                         arguments.seconds, arguments.trust};
  lab::Report report = run_compiled(plan, compiled.folder / workbench::kHostModule);
  std::optional<inspect::GpuRun> on_gpu;
  const inspect::Gpu* against = &gpu;
  if (arguments.backend == "cuda") {
    on_gpu = inspect::run_on_gpu(arguments.file, text, arguments.words,
                                 std::chrono::seconds(arguments.seconds));
    if (const inspect::Gpu* here = inspect::gpu_of_device(on_gpu->device)) against = here;
  }
  inspect::add_resources(report, *against, registers.get());
  if (on_gpu) inspect::add_gpu_run(report, *on_gpu);
  if (!main.empty()) (*report.trace)["main"] = main;
  (*report.trace)["differences"] = inspect::differences_in(text);
  if (!arguments.shot.empty()) take_picture(arguments, report, text);
  if (!arguments.html.empty()) {
    SvgPress press(1440, 900);
    const auto draw = [&](const picture::Picture& picture) {
      return RequestDrawn{press.draw(picture, ui::ThemeKind::dark),
                          press.draw(picture, ui::ThemeKind::light)};
    };
    write_output(
        arguments.html,
        inspect_page(report, fs::path(arguments.file).filename().string(), lines_in(text), draw),
        arguments.force);
  }
  if (arguments.json) {
    print(json_text(lab::to_json(report)));
  } else {
    print(fmt::format("{}: {}\n", arguments.file, report.summary));
    print(findings_text(report, lines_in(text)));
    for (const char* id : {"accesses", "branches", "launches", "occupancy", "roofline", "measured",
                           "counted", "events"}) {
      const lab::Table* table = report.table(id);
      if (table == nullptr) continue;
      const lab::Table kept = chosen_rows(*table, arguments);
      if (!kept.rows.empty())
        print(
            fmt::format("\n{}\n{}", kept.title,
                        fitted(kept, static_cast<std::size_t>(terminal_size().columns), 24).text));
    }
    const std::vector<std::string> differences = scenes::differences_of(report);
    if (!differences.empty()) print("\nOther than on a GPU\n");
    for (const std::string& each : differences) print("  " + each + "\n");
    if (const std::string printed = printed_by(report); !printed.empty())
      print(
          fmt::format("\nThe program printed\n{}{}", printed, printed.ends_with('\n') ? "" : "\n"));
  }
  return static_cast<int>(report.ok() ? ExitCode::good : ExitCode::check_failed);
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Run any CUDA file with its main, without a GPU, and report what its kernels do to memory");
  command->add_option("FILE", arguments->file, "A CUDA source with a main");
  command->add_option("ARGUMENTS", arguments->words, "What the program is given, after --");
  command->add_option("--kernel", arguments->kernel, "Only kernels whose name contains this")
      ->type_name("NAME");
  command->add_option("--launch", arguments->launch, "Only this launch, 1 for the first")
      ->type_name("N");
  command->add_option("--orders", arguments->orders, "Other orders of threads to try (default 2)")
      ->type_name("N");
  command->add_option("--seconds", arguments->seconds, "How long the program may run (default 10)")
      ->type_name("N");
  command->add_flag("--trust", arguments->trust, "Run a program of your own, outside the sandbox");
  command
      ->add_option("--call", arguments->call,
                   "Launch this kernel of a file without a main: 'NAME(in[float:64x1024], "
                   "out[float:1024], 1024)'")
      ->type_name("CALL");
  command
      ->add_option("--grid", arguments->shape.grid, "Of --call: blocks, as 64 or 8,4 (default 1)")
      ->type_name("N");
  command
      ->add_option("--block", arguments->shape.block, "Of --call: threads of a block (default 256)")
      ->type_name("N");
  command
      ->add_option("--shared", arguments->shape.shared,
                   "Of --call: bytes of dynamic shared memory (default 0)")
      ->type_name("BYTES");
  command
      ->add_option("--args", arguments->solve,
                   "Call extern \"C\" solve(pointers, numbers) of the file with these: '{\"N\": "
                   "1000}'")
      ->type_name("JSON");
  command
      ->add_option(
          "--gpu", arguments->gpu,
          "Hold occupancy and roofline against this GPU (default h100): " + inspect::gpu_names())
      ->type_name("GPU");
  command
      ->add_option("--backend", arguments->backend,
                   "emulated (default), or cuda: run it on the GPU that is here too, and compare")
      ->type_name("BACKEND");
  command->add_option("--html", arguments->html, "Also write all of it as one page")
      ->type_name("FILE");
  command
      ->add_option("--shot", arguments->shot,
                   "Also draw the window (.png), or the costliest request alone (.svg)")
      ->type_name("FILE");
  command->add_option("--size", arguments->size, "Size of the window in pixels (default 1440x900)")
      ->type_name("WxH");
  command
      ->add_option("--tab", arguments->tab,
                   "Tab of the drawn window: found, accesses, launches, program, printed or, where "
                   "the window is small, picture")
      ->type_name("TAB");
  command->add_flag("--presenter", arguments->presenter, "Draw the window in presenter mode");
  command->add_option("--text-scale", arguments->text_scale, "Text size of the drawn window, 1–2")
      ->type_name("X");
  command->add_option("--theme", arguments->theme, "dark or light")->type_name("THEME");
  command->add_flag("--text", arguments->text, "Print the report also where there is a display");
  add_force(*command, arguments->force);
  command->add_flag("--json", arguments->json, "Print everything as JSON");
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] {
      return inspect_file(*arguments, invocation.program);
    };
  });
}

}  // namespace tilestep::app
