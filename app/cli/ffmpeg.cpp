#include "app/cli/ffmpeg.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kernels/base/simt/error.hpp"

extern char** environ;

namespace tilestep::app {

namespace fs = std::filesystem;

std::optional<fs::path> find_ffmpeg() {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t colon = std::min(folders.find(':'), folders.size());
    const fs::path program = fs::path(folders.substr(0, colon)) / "ffmpeg";
    std::error_code failed;
    if (fs::is_regular_file(program, failed) && ::access(program.c_str(), X_OK) == 0) {
      return program;
    }
    folders.remove_prefix(std::min(colon + 1, folders.size()));
  }
  return std::nullopt;
}

std::string frame_name(int frame) {
  return fmt::format("frame-{:04}.png", frame);
}

std::vector<std::string> ffmpeg_arguments(const fs::path& folder, int count, int rate,
                                          const fs::path& out) {
  std::vector<std::string> words = {"-hide_banner",
                                    "-loglevel",
                                    "error",
                                    "-nostdin",
                                    "-y",
                                    "-framerate",
                                    std::to_string(rate),
                                    "-start_number",
                                    "0",
                                    "-i",
                                    (folder / "frame-%04d.png").string(),
                                    "-frames:v",
                                    std::to_string(count)};
  const std::string kind = out.extension().string();
  const auto add = [&words](std::initializer_list<const char*> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  // Players want even sides.
  constexpr const char* kEven = "crop=trunc(iw/2)*2:trunc(ih/2)*2";
  if (kind == ".webm") {
    add({"-vf", kEven, "-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-b:v", "0", "-crf", "24"});
  } else if (kind == ".mp4") {
    add({"-vf", kEven, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags",
         "+faststart"});
  } else {
    add({"-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none"});
  }
  words.push_back("file:" + out.string());
  return words;
}

int run_program(const fs::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, program.c_str(), &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) {
    throw Error(fmt::format("'{}' cannot be started: {}", program.string(), std::strerror(failed)),
                ExitCode::unavailable);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tilestep::app
