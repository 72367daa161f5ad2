#include "app/worker/lab_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

constexpr std::string_view kSsh = "ssh:", kRun = "run:";
constexpr std::string_view kAllowed =
    "here, ssh:[USER@]HOST[:/PATH/OF/tilestep], or run:COMMAND ARGUMENTS, whose program speaks as "
    "`tilestep worker` does";
constexpr std::string_view kProgram = "tilestep";
/// ssh must not ask: nobody could answer. A connection that is gone is noticed within a minute, and
/// nothing but the worker's lines goes through it.
constexpr std::string_view kSshOptions[] = {"-T",
                                            "-x",
                                            "-a",
                                            "-oBatchMode=yes",
                                            "-oConnectTimeout=15",
                                            "-oServerAliveInterval=15",
                                            "-oServerAliveCountMax=3",
                                            "-oClearAllForwardings=yes",
                                            "--"};

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(fmt::format("--lab cannot be '{}': {}; allowed: {}", text, why, kAllowed));
}

/// Letters, digits and `more`: what no shell on the way makes something else of.
bool is_plain(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](unsigned char c) {
    return (c < 128 && std::isalnum(c) != 0) || more.find(static_cast<char>(c)) != more.npos;
  });
}

/// One command line as its arguments; nothing if a quote is left open.
std::optional<std::vector<std::string>> split(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == text.size()) return std::nullopt;
      words.back() += text[i];
    } else {
      words.back() += c;
    }
  }
  return quote == 0 ? std::optional(words) : std::nullopt;
}

LabAddress ssh_lab(std::string_view text) {
  std::string_view host = text.substr(kSsh.size());
  std::string_view program = kProgram;
  if (const auto colon = host.find(":/"); colon != host.npos) {
    program = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.empty()) refuse(text, "it names no host");
  // ssh would take it for an option of its own, some of which start programs.
  if (host.starts_with('-')) refuse(text, "a host cannot begin with '-'");
  if (!is_plain(host, "._-@:%+[]")) {
    refuse(text, "a host has only letters, digits and . _ - @ : % + [ ]");
  }
  if (!is_plain(program, "/._-+")) {
    refuse(text, "the path there has only letters, digits and / . _ - +");
  }
  const char* own = std::getenv("TILESTEP_SSH");
  const auto ssh = split(own != nullptr && *own != '\0' ? own : "ssh");
  if (!ssh || ssh->empty()) {
    throw Error(fmt::format(
        "TILESTEP_SSH cannot be '{}': it is no command, or its quotes are not closed", own));
  }
  LabAddress lab{LabAddress::Kind::ssh, std::string(text), std::string(host), *ssh};
  lab.arguments.insert(lab.arguments.end(), std::begin(kSshOptions), std::end(kSshOptions));
  lab.arguments.insert(lab.arguments.end(),
                       {std::string(host), std::string(program), std::string("worker")});
  return lab;
}

LabAddress command_lab(std::string_view text) {
  auto arguments = split(text.substr(kRun.size()));
  if (!arguments) refuse(text, "a quote in it is not closed");
  if (arguments->empty() || arguments->front().empty()) refuse(text, "it names no command");
  return {LabAddress::Kind::command, std::string(text), {}, std::move(*arguments)};
}

}  // namespace

LabAddress parse_lab(std::string_view text) {
  if (text == "here") return {};
  if (text.starts_with(kSsh)) return ssh_lab(text);
  if (text.starts_with(kRun)) return command_lab(text);
  refuse(text, "it is none of the three kinds");
}

}  // namespace tilestep::app
