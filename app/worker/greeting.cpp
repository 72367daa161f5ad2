#include "app/worker/greeting.hpp"

#include <fmt/format.h>

#include <variant>

#include "app/worker/protocol.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::app {
namespace {

/// Bytes of talk before the first line of ours; more is no banner.
constexpr std::size_t kMostTalk = 256 * 1024;
/// What a shell answers when it does not find a program.
constexpr int kNotFound = 127;

void compare(const LabAddress& lab, const protocol::Hello& theirs) {
  const protocol::Hello ours = protocol::own_hello();
  if (theirs.version != ours.version) {
    throw Error(
        fmt::format("The tilestep of {} has version {}, this one {}. Install the same version "
                    "on both",
                    lab.text, theirs.version, ours.version),
        ExitCode::unavailable);
  }
  if (theirs.source_hash != ours.source_hash) {
    throw Error(fmt::format("The tilestep of {} was built from different kernels, though its "
                            "version is {} too. Build the same commit on both",
                            lab.text, ours.version),
                ExitCode::unavailable);
  }
}

}  // namespace

bool Greeting::take(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return false;
  if (line[begin] == '{') {
    try {
      const protocol::Message message = protocol::message_from(line);
      if (const auto* hello = std::get_if<protocol::Hello>(&message)) {
        compare(lab_, *hello);
        return true;
      }
      if (std::holds_alternative<protocol::NotTaken>(message)) {
        throw Error(
            fmt::format("The tilestep of {} is older than this one: it does not say what it "
                        "is. Install version {} there too",
                        lab_.text, protocol::own_hello().version),
            ExitCode::unavailable);
      }
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable) throw;  // else some other JSON: talk
    }
  }
  last_words_ = line;
  heard_ += line.size();
  if (heard_ > kMostTalk) {
    throw Error(fmt::format("{} wrote {} bytes that no worker writes, the last of them '{}'. The "
                            "command must run `tilestep worker`",
                            lab_.text, heard_, last_words_),
                ExitCode::unavailable);
  }
  return false;
}

std::string Greeting::why_none(std::string_view how, std::string_view error, int exit_code) const {
  const bool ssh = lab_.kind == LabAddress::Kind::ssh;
  std::string sentence = fmt::format("The lab {} cannot be reached: {} {}", lab_.text,
                                     ssh ? "ssh" : "the command", how);
  if (!error.empty()) {
    sentence += fmt::format(": {}", error);
  } else if (!last_words_.empty()) {
    sentence += fmt::format("; it said '{}'", last_words_);
  }
  if (sentence.back() != '.') sentence += '.';
  if (ssh && exit_code == kNotFound) {
    return sentence + fmt::format(
                          " Install tilestep there, or name its path: --lab ssh:{}:/PATH/OF/"
                          "tilestep.",
                          lab_.host);
  }
  if (ssh) {
    return sentence +
           fmt::format(" `ssh {} true` must work in a terminal without a prompt.", lab_.host);
  }
  return sentence + " The command must run `tilestep worker`, with its standard input and output.";
}

}  // namespace tilestep::app
