#include <fmt/format.h>

#include <memory>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {
namespace {

/// A recording travels inside the program and in the repository: what is larger is a mistake.
constexpr std::size_t kMostBytes = 300'000;

struct RecordArguments {
  std::vector<std::string> names;
  std::string out;
};

lab::Recording recorded(const lab::Lesson& lesson) {
  TerminalProgress progress;
  lab::Request request;
  request.lesson = lesson.info().id;
  request.backend = "cuda";
  lab::Recording recording;
  recording.lesson = request.lesson;
  recording.recorded_at = today();
  recording.protocol = lab::kProtocol;
  const auto device = simt::make_cuda_device();
  recording.run = lesson.run(lesson.knobs().defaults(), *device, progress);
  recording.bench = lesson.bench(*device, progress);
  return recording;
}

int record(const RecordArguments& arguments) {
  const auto chosen = parse_lessons(arguments.names);
  if (arguments.out.empty()) {
    throw Error("say where the recordings go: --out DIR, as in --out assets/recordings");
  }
  if (const simt::CudaStatus status = simt::cuda_status(); !status.available) {
    throw Error(fmt::format("nothing can be recorded here: {}", status.reason),
                ExitCode::unavailable);
  }
  bool all_ok = true;
  for (const lab::Lesson* lesson : chosen) {
    const lab::Recording recording = recorded(*lesson);
    const auto path = std::filesystem::path(arguments.out) / slug(recording.bench.device.name) /
                      (recording.lesson + ".json");
    const std::string text = json_text(lab::to_json(recording), 1);
    if (text.size() > kMostBytes) {
      throw Error(fmt::format("the recording of '{}' has {} bytes; at most {} are kept",
                              recording.lesson, text.size(), kMostBytes),
                  ExitCode::check_failed);
    }
    write_file(path, text);
    print_line(path.string());
    all_ok = all_ok && recording.run.ok() && recording.bench.ok();
  }
  return static_cast<int>(all_ok ? ExitCode::good : ExitCode::check_failed);
}

}  // namespace

void add_record(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command =
      app.add_subcommand("record", "Measures lessons on this machine's GPU and keeps the numbers");
  command->add_option("LESSON", arguments->names, "Lessons; all if none is named");
  command->add_option("--out", arguments->out, "Folder; the file is DIR/<gpu>/<lesson>.json")
      ->type_name("DIR");
  command->callback(
      [arguments, &invocation] { invocation.action = [arguments] { return record(*arguments); }; });
}

}  // namespace tilestep::app
