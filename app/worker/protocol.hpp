#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "app/worker/lab_client.hpp"

/// The messages between a lab and its worker, one JSON object per line: each kind of line as plain data,
/// read and written. No process, no pipe. `worker_loop` documents the format of the lines.
namespace tilestep::app::protocol {

/// Bytes of a request: the longest kernel source, every character of it escaped, and room for the rest.
inline constexpr std::size_t kLongestRequest = std::size_t{4} << 20;

/// How each side introduces itself first, since their builds may differ.
struct Hello {
  std::string version;      ///< "0.4.0"
  std::string source_hash;  ///< simt::source_hash()
};
Hello own_hello();

// ---- to the worker ------------------------------------------------------------------------------

struct Work {
  Ticket ticket = 0;
  lab::Request request;
  /// Empty: the answer is to have the run's evidence. Else that, in base64: the answer is made of it, and no kernel runs.
  std::optional<std::string> evidence = std::nullopt;
};
struct AssemblyWork {
  Ticket ticket = 0;
  workbench::AssemblyRequest request;
};
struct Cancel {
  Ticket ticket = 0;
};
using Request = std::variant<Work, AssemblyWork, Cancel, Hello>;

/// A line that is no request, about the ticket that it names, if it names one.
class BadRequest : public Error {
 public:
  BadRequest(const std::string& sentence, std::optional<Ticket> ticket)
      : Error(sentence), ticket_(ticket) {}
  std::optional<Ticket> ticket() const { return ticket_; }

 private:
  std::optional<Ticket> ticket_;
};

/// Nothing for a blank line. Throws BadRequest with what is allowed.
std::optional<Request> request_from(std::string_view line);
/// Without its newline.
std::string line_of(const Request& request);

/// The bytes as a line may hold them.
std::string base64_of(std::string_view bytes);
/// Throws Error for what is no base64.
std::string bytes_of_base64(std::string_view text);

// ---- from the worker ----------------------------------------------------------------------------

struct Progressed {
  Ticket ticket = 0;
  LabProgress progress;
};
/// A report as it came: reading it takes longer than all else, and it may be of no use any more.
struct Answered {
  Ticket ticket = 0;
  lab::JsonValue report;
  bool worker_ends = false;   ///< the run has cost it its device
  std::string evidence = {};  ///< in base64; empty: not requested
};
struct AssemblyAnswered {
  Ticket ticket = 0;
  lab::JsonValue assembly;
};
struct Failed {
  Ticket ticket = 0;
  LabFailure failure;
};
/// About a line that was no request to it.
struct NotTaken {
  std::string sentence;
};
using Message = std::variant<Progressed, Answered, AssemblyAnswered, Failed, NotTaken, Hello>;

/// Throws Error saying which member is missing or wrong.
Message message_from(std::string_view line);
/// Without its newline. What is no UTF-8 in it (names of devices, error texts) is replaced.
std::string line_of(const Message& message);

}  // namespace tilestep::app::protocol
