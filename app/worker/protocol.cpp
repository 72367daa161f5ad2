#include "app/worker/protocol.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/nesting.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/emulator/evidence.hpp"
#include "kernels/base/simt/source_hash.hpp"

namespace tilestep::app::protocol {
namespace {

using nlohmann::json;

constexpr std::string_view kAllowedLines =
    R"(send one JSON object per line: {"ticket": n, "lesson": "…", "params": {…}, "action": "run|bench|trials", )"
    R"("backend": "auto|cuda|emulated|recorded", "kernel": {"path": "…", "text": "…"}, )"
    R"("order": "ascending|descending|shuffled"}, {"ticket": n, "assembly": {"lesson": "…", "kernel": {…}, )"
    R"("form": "ptx|sass", "capability": 90}}, {"cancel": n} or {"hello": {"version": "…", )"
    R"("source_hash": "…"}}, with n a whole number from 0)";

[[noreturn]] void refuse(std::string_view what) {
  throw BadRequest(fmt::format("{}; {}", what, kAllowedLines), std::nullopt);
}

bool is_ticket(const json& value) {
  return value.is_number_unsigned();
}

json object_of(std::string_view line) {
  if (lab::nested_too_deep(line)) refuse("this line is nested too deep");
  // The parser takes a NUL for the end, and would leave what follows it unread.
  json object = line.find('\0') == std::string_view::npos ? json::parse(line, nullptr, false)
                                                          : json(json::value_t::discarded);
  if (object.is_discarded()) refuse("this line is not JSON");
  if (!object.is_object()) refuse("this line is not a JSON object");
  return object;
}

Cancel cancel_from(const json& object) {
  if (object.size() != 1 || !is_ticket(object["cancel"])) refuse("this cancel is not understood");
  return {object["cancel"].get<Ticket>()};
}

Hello hello_from(const lab::Place& at) {
  return {at.at("version").text(), at.at("source_hash").text()};
}
json to_json(const Hello& hello) {
  return {{"version", hello.version}, {"source_hash", hello.source_hash}};
}

Request work_from(json object) {
  if (!object.contains("ticket")) refuse("this request has no \"ticket\"");
  if (!is_ticket(object["ticket"])) refuse("this request's \"ticket\" is not valid");
  const Ticket ticket = object["ticket"].get<Ticket>();
  object.erase("ticket");
  try {
    std::optional<std::string> evidence;
    if (object.contains("evidence")) {
      const lab::Place members(object, "request");
      evidence = members.at("evidence").text();
      object.erase("evidence");
    }
    if (object.contains("assembly")) {
      return AssemblyWork{ticket, workbench::assembly_request_from_json(object["assembly"])};
    }
    return Work{ticket, lab::request_from_json(object), std::move(evidence)};
  } catch (const Error& error) {
    throw BadRequest(error.what(), ticket);
  }
}

std::string text_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// ---- messages -----------------------------------------------------------------------------------

LabProgress progress_from(const lab::Place& message) {
  LabProgress progress{message.at("fraction").real<double>(), message.at("note").text()};
  if (!(progress.fraction >= 0 && progress.fraction <= 1)) message.at("fraction").refuse("0–1");
  if (const auto waiting = message.find("waiting")) progress.waiting = waiting->flag();
  return progress;
}

bool ends_worker(const lab::Place& message) {
  const auto ends = message.find("worker_ends");
  return ends && ends->flag();
}

LabFailure failure_from(const lab::Place& message) {
  const int code = message.at("code").whole(static_cast<int>(ExitCode::check_failed),
                                            static_cast<int>(ExitCode::unavailable));
  LabFailure failure{message.at("message").text(), static_cast<ExitCode>(code),
                     ends_worker(message)};
  if (const auto fix = message.find("fix")) {
    failure.fix = {fix->at("label").text(), lab::settings_from_json(fix->at("settings"))};
  }
  if (const auto all = message.find("diagnostics")) {
    for (std::size_t i = 0; i < all->size(); ++i) {
      lab::diagnostic_fields().read(all->at(i), failure.diagnostics.emplace_back());
    }
  }
  return failure;
}

json to_json(const Progressed& message) {
  json to = {{"type", "progress"},
             {"ticket", message.ticket},
             {"fraction", message.progress.fraction},
             {"note", message.progress.note}};
  if (message.progress.waiting) to["waiting"] = true;
  return to;
}

json error_of(json ticket, const LabFailure& failure) {
  json to = {{"type", "error"},
             {"ticket", std::move(ticket)},
             {"message", lab::shown(failure.sentence)},
             {"code", static_cast<int>(failure.code)}};
  if (failure.worker_died) to["worker_ends"] = true;
  if (failure.fix) {
    to["fix"] = {{"label", failure.fix->label}, {"settings", lab::to_json(failure.fix->settings)}};
  }
  for (const lab::Diagnostic& each : failure.diagnostics) {
    to["diagnostics"].push_back(lab::diagnostic_fields().to_json(each));
  }
  return to;
}

static_assert(simt::kMostEvidence / 3 * 4 + (64 << 10) < kLongestRequest, "evidence is one line");

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64_of(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string bytes_of_base64(std::string_view text) {
  static const auto kValues = [] {
    std::array<signed char, 256> values;
    values.fill(-1);
    for (std::size_t i = 0; i < kDigits.size(); ++i) {
      values[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
    }
    return values;
  }();
  if (text.size() % 4 != 0) throw Error("the evidence is not base64: it is cut off");
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  unsigned bits = 0, held = 0;
  for (const char digit : text) {
    const int value = kValues[static_cast<unsigned char>(digit)];
    if (value < 0) throw Error("the evidence is not base64: it has other characters");
    bits = bits << 6 | static_cast<unsigned>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 255);
  }
  return bytes;
}

Hello own_hello() {
  return {TILESTEP_VERSION, simt::source_hash()};
}

std::optional<Request> request_from(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
  json object = object_of(line);
  if (object.contains("cancel")) return cancel_from(object);
  if (object.contains("hello")) {
    try {
      return hello_from(lab::Place(object["hello"], "hello"));
    } catch (const Error& error) {
      refuse(error.what());
    }
  }
  return work_from(std::move(object));
}

std::string line_of(const Request& request) {
  if (const auto* cancel = std::get_if<Cancel>(&request)) {
    return text_of({{"cancel", cancel->ticket}});
  }
  if (const auto* hello = std::get_if<Hello>(&request))
    return text_of({{"hello", to_json(*hello)}});
  if (const auto* assembly = std::get_if<AssemblyWork>(&request)) {
    return text_of(
        {{"ticket", assembly->ticket}, {"assembly", workbench::to_json(assembly->request)}});
  }
  const Work& work = std::get<Work>(request);
  json object = lab::to_json(work.request);
  object["ticket"] = work.ticket;
  if (work.evidence) object["evidence"] = *work.evidence;
  return text_of(object);
}

Message message_from(std::string_view line) {
  if (lab::nested_too_deep(line)) throw Error("it is nested too deep");
  const json object = json::parse(line, nullptr, false);
  if (object.is_discarded()) throw Error("it is not JSON");
  const lab::Place message(object, "message");
  if (const auto type = message.find("type"); type && type->json() == "hello") {
    return hello_from(message);
  }
  const lab::Place ticket = message.at("ticket");
  if (ticket.json().is_null()) return NotTaken{message.at("message").text()};
  const Ticket mine = ticket.whole<Ticket>(0);
  const lab::Place type = message.at("type");
  const std::string word = type.text();
  if (word == "progress") return Progressed{mine, progress_from(message)};
  if (word == "report") {
    const auto evidence = message.find("evidence");
    return Answered{mine, message.at("report").json(), ends_worker(message),
                    evidence ? evidence->text() : std::string()};
  }
  if (word == "assembly") return AssemblyAnswered{mine, message.at("assembly").json()};
  if (word == "error") return Failed{mine, failure_from(message)};
  type.refuse("progress, report, assembly, error");
}

std::string line_of(const Message& message) {
  struct Writer {
    json operator()(const Progressed& each) const { return to_json(each); }
    json operator()(const Answered& each) const {
      json to = {{"type", "report"}, {"ticket", each.ticket}, {"report", each.report}};
      if (each.worker_ends) to["worker_ends"] = true;
      if (!each.evidence.empty()) to["evidence"] = each.evidence;
      return to;
    }
    json operator()(const AssemblyAnswered& each) const {
      return {{"type", "assembly"}, {"ticket", each.ticket}, {"assembly", each.assembly}};
    }
    json operator()(const Failed& each) const { return error_of(each.ticket, each.failure); }
    json operator()(const NotTaken& each) const {
      return error_of(nullptr, {each.sentence, ExitCode::bad_input});
    }
    json operator()(const Hello& each) const {
      json to = to_json(each);
      to["type"] = "hello";
      return to;
    }
  };
  return text_of(std::visit(Writer(), message));
}

}  // namespace tilestep::app::protocol
