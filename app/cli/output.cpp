#include "app/cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

namespace tilestep::app {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_line(std::string_view text) {
  print(text);
  std::fputc('\n', stdout);
}

void remark(std::string_view sentence) {
  fmt::print(stderr, "tilestep: {}\n", sentence);
}

std::string json_text(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(
        fmt::format("the result cannot be written to standard output: {}", std::strerror(errno)),
        ExitCode::unavailable);
  }
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!std::filesystem::is_directory(path)) {
    throw Error(fmt::format("the folder '{}' cannot be made: {}", path.string(),
                            error ? error.message() : "something else has this name"),
                ExitCode::unavailable);
  }
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    throw Error(
        fmt::format("the file '{}' cannot be written: {}", path.string(), std::strerror(errno)),
        ExitCode::unavailable);
  }
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

std::string slug(std::string_view name) {
  std::string slug;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "gpu" : slug;
}

TerminalProgress::TerminalProgress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TerminalProgress::~TerminalProgress() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

void TerminalProgress::report(double fraction, std::string_view note) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (shown_ && now - shown_at_ < std::chrono::milliseconds(100))) return;
  shown_ = true;
  shown_at_ = now;
  fmt::print(stderr, "\r\x1b[K{:3.0f} %  {}", fraction * 100, note);
  std::fflush(stderr);
}

}  // namespace tilestep::app
