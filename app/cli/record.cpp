#include "kernels/base/lab/record.hpp"

#include <fmt/format.h>

#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/worker/ask.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

struct RecordArguments {
  std::vector<std::string> names;
  std::string out;
  std::string lab = "here";
  bool telling = false;
  bool force = false;
};

/// What is to be written, in the folder of that GPU.
struct Files {
  std::string gpu;
  std::vector<lab::RecordingFile> files;
  bool ok = true;
};

Files recorded(const lab::Lesson& lesson, LabClient* there, bool telling) {
  TerminalProgress progress;
  const auto device = there == nullptr ? simt::make_cuda_device() : nullptr;
  const auto asked = [&](const lab::Request& request) {
    if (there != nullptr) return ask(there, request, progress);
    return request.action == lab::Request::Action::bench
               ? lesson.bench(*device, progress)
               : lesson.run(request.params, *device, progress);
  };
  if (telling) {
    const auto runs = lab::record_telling(lesson, asked, today(), TILESTEP_VERSION);
    if (runs.empty()) return {};
    const bool ok = std::all_of(runs.begin(), runs.end(),
                                [](const lab::RecordedRun& one) { return one.run.ok(); });
    return {runs.front().run.device.name, lab::files_of(runs), ok};
  }
  const lab::Recorded all = lab::record(lesson, asked, today(), TILESTEP_VERSION);
  return {all.recording.run.device.name, lab::files_of(all), all.ok()};
}

int record(const RecordArguments& arguments, const std::string& program) {
  const auto chosen = parse_lessons(arguments.names);
  if (arguments.out.empty()) {
    throw Error("name the folder for the recordings: --out DIR, as in --out assets/recordings");
  }
  const LabAddress address = parse_lab(arguments.lab);
  const auto there = address.elsewhere() ? make_lab(address, program) : nullptr;
  if (const simt::CudaStatus status = simt::cuda_status(); !there && !status.available) {
    throw Error(fmt::format("nothing can be recorded here: {}", status.reason),
                ExitCode::unavailable);
  }
  bool all_ok = true;
  for (const lab::Lesson* lesson : chosen) {
    const Files all = recorded(*lesson, there.get(), arguments.telling);
    const auto folder = std::filesystem::path(arguments.out) / slug(all.gpu);
    for (const lab::RecordingFile& file : all.files) {
      write_output(folder / file.name, file.text, arguments.force);
      print_line((folder / file.name).string());
    }
    all_ok = all_ok && all.ok;
  }
  return static_cast<int>(all_ok ? ExitCode::good : ExitCode::check_failed);
}

}  // namespace

void add_record(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = app.add_subcommand("record", "Measure lessons on a GPU and write recordings");
  command->add_option("LESSON", arguments->names, "Lessons (default: all)");
  command
      ->add_option("--out", arguments->out,
                   "Folder; the files are DIR/<gpu>/<lesson>.json and, for its telling settings, "
                   "DIR/<gpu>/<lesson>/<set>.json")
      ->type_name("DIR");
  command->add_flag("--telling", arguments->telling,
                    "Only the telling settings: runs of seconds, no bench");
  add_force(*command, arguments->force);
  add_lab(*command, arguments->lab);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return record(*arguments, invocation.program); };
  });
}

}  // namespace tilestep::app
