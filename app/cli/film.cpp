#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "app/cli/arguments.hpp"
#include "app/cli/command.hpp"
#include "app/cli/ffmpeg.hpp"
#include "app/cli/output.hpp"
#include "app/file.hpp"
#include "app/keep/link.hpp"
#include "app/window/apng.hpp"
#include "app/window/png.hpp"
#include "app/window/window.hpp"
#include "kernels/base/lab/number.hpp"

namespace tilestep::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRate = 60, kMostFrames = 10'000;

struct FilmArguments {
  LessonArguments lesson;
  std::string from = "0", to, rate = "30", size = "1280x720", theme = "dark", text_scale = "1",
              backend = "auto", out;
  bool force = false;
  std::vector<std::string> labs;
};

int parse_whole(std::string_view option, const std::string& text, int least, int most) {
  const auto number = lab::number_of<int>(text);
  if (!number || *number < least || *number > most) {
    throw Error(
        fmt::format("{} cannot be '{}'; allowed: a whole number {}–{}", option, text, least, most));
  }
  return *number;
}

FilmOptions film_options(FilmArguments& arguments, const std::string& program) {
  FilmOptions options;
  options.shell.lesson = arguments.lesson.chosen().info().id;
  options.shell.settings = arguments.lesson.settings();
  options.shell.backend = parse_backend(arguments.backend);
  options.shell.labs = parse_labs(arguments.labs);
  options.shell.program = program;
  options.shell.theme = parse_theme(arguments.theme);
  options.shell.text_scale = parse_text_scale(arguments.text_scale);
  const Size size = parse_size(arguments.size);
  options.width = size.width;
  options.height = size.height;
  options.from = parse_whole("--from", arguments.from, 0, 1'000'000);
  options.to = arguments.to.empty() ? 1'000'000 : parse_whole("--to", arguments.to, 0, 1'000'000);
  options.rate = parse_whole("--fps", arguments.rate, 1, kMostRate);
  if (options.from >= options.to) {
    throw Error(fmt::format("--from {} --to {} makes no film; allowed: --from below --to",
                            options.from, options.to));
  }
  return options;
}

/// What a film is written as.
enum class Kind { frames, apng, video };
Kind kind_of(const fs::path& out) {
  const std::string ending = out.extension().string();
  if (ending.empty() || fs::is_directory(out)) return Kind::frames;
  if (ending == ".apng" || ending == ".png") return Kind::apng;
  if (ending == ".webm" || ending == ".mp4" || ending == ".gif") return Kind::video;
  throw Error(fmt::format(
      "--out names a film of kind '{}'; allowed: a folder, .webm, .mp4, .gif, .apng", ending));
}

/// Frames of an earlier and longer film would be taken for the end of this one.
void remove_later_frames(const fs::path& folder, int count) {
  std::error_code failed;
  while (fs::remove(folder / frame_name(count), failed)) ++count;
}

void check_length(int frames) {
  if (frames < kMostFrames) return;
  throw Error(
      fmt::format("the film has more than {} frames; choose fewer steps with --from and --to, or "
                  "fewer frames with --fps",
                  kMostFrames));
}

int write_frames(const FilmOptions& options, const fs::path& folder, bool force) {
  make_folder(folder);
  int count = 0;
  std::vector<unsigned char> before;
  std::string bytes;
  Offscreen().film(options, [&](const Pixels& frame) {
    check_length(count);
    if (frame.rgb != before) bytes = png_bytes(frame.width, frame.height, frame.rgb);
    before = frame.rgb;
    write_output(folder / frame_name(count), bytes, force);
    ++count;
    return true;
  });
  remove_later_frames(folder, count);
  print_line(fmt::format("{} frames in {}", count, folder.string()));
  return count;
}

void write_apng(const FilmOptions& options, const fs::path& out, bool force) {
  std::optional<Apng> film;
  int count = 0;
  Offscreen().film(options, [&](const Pixels& frame) {
    check_length(count++);
    if (!film) film.emplace(frame.width, frame.height, options.rate);
    film->add(frame.rgb);
    return true;
  });
  write_output(out, film->bytes(), force);
  print_line(out.string());
}

/// How a person makes the video out of the frames.
std::string command_words(const std::vector<std::string>& arguments) {
  std::string line = "ffmpeg";
  for (const std::string& word : arguments) line += " " + shell_word(word);
  return line;
}

void write_video(const FilmOptions& options, const fs::path& out, bool force) {
  const fs::path folder = out.parent_path() / (out.stem().string() + "-frames");
  const int count = write_frames(options, folder, force);
  const auto words = ffmpeg_arguments(folder, count, options.rate, out);
  const auto ffmpeg = find_ffmpeg();
  if (!ffmpeg) {
    throw Error(
        fmt::format("there is no ffmpeg to make '{}'; the frames are in '{}': install ffmpeg "
                    "and run `{}`, or name F.apng, which needs none",
                    out.string(), folder.string(), command_words(words)),
        ExitCode::unavailable);
  }
  const int code = run_program(*ffmpeg, words);
  if (code != 0) {
    throw Error(fmt::format("ffmpeg ended with {} and made no '{}'; the frames are in '{}'", code,
                            out.string(), folder.string()),
                ExitCode::unavailable);
  }
  print_line(out.string());
}

int film(FilmArguments& arguments, const std::string& program) {
  const FilmOptions options = film_options(arguments, program);
  if (arguments.out.empty()) {
    throw Error("name the film: --out DIR, F.webm, F.mp4, F.gif or F.apng");
  }
  const fs::path out = arguments.out;
  const Kind kind = kind_of(out);
  if (kind != Kind::frames) require_output(out, arguments.force);
  remark_refused_cuda(options.shell.backend);
  switch (kind) {
    case Kind::apng:
      write_apng(options, out, arguments.force);
      break;
    case Kind::video:
      write_video(options, out, arguments.force);
      break;
    case Kind::frames: {
      const int count = write_frames(options, out, arguments.force);
      if (!find_ffmpeg()) {
        const auto words = ffmpeg_arguments(out, count, options.rate, "film.webm");
        remark(fmt::format("for a video install ffmpeg and run `{}`", command_words(words)));
      }
      break;
    }
  }
  return static_cast<int>(ExitCode::good);
}

}  // namespace

void add_film(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<FilmArguments>();
  CLI::App* command = app.add_subcommand(
      "film", "Render the picture's animation from step to step; needs no display");
  add_lesson(*command, arguments->lesson);
  command->add_option("--from", arguments->from, "First step (default 0)")->type_name("N");
  command->add_option("--to", arguments->to, "Last step (default: the run's last)")->type_name("N");
  command->add_option("--fps", arguments->rate, "Frames per second, 1–60 (default 30)")
      ->type_name("N");
  command
      ->add_option("--size", arguments->size,
                   "Size in pixels, 640x400–7680x4320 (default 1280x720)")
      ->type_name("WxH");
  command->add_option("--theme", arguments->theme, "dark or light")->type_name("THEME");
  command->add_option("--text-scale", arguments->text_scale, "Text size, 1–2")->type_name("X");
  command->add_option("--backend", arguments->backend, "auto, cuda, emulated or recorded")
      ->type_name("BACKEND");
  add_labs(*command, arguments->labs, false);
  command
      ->add_option("--out", arguments->out,
                   "Folder for frame-0000.png and so on, or a film: .apng, or with ffmpeg .webm, "
                   ".mp4, .gif (frames in F-frames)")
      ->type_name("DIR|F");
  add_force(*command, arguments->force);
  command->callback([arguments, &invocation] {
    invocation.action = [arguments, &invocation] { return film(*arguments, invocation.program); };
  });
}

}  // namespace tilestep::app
