#include <signal.h>

#include <chrono>
#include <map>
#include <set>

#include "app/worker/protocol.hpp"
#include "kernels/base/lab/report.hpp"
#include "tests/app/child.hpp"
#include "tests/app/text_checks.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto kPatience = 120s;

/// A request whose run takes long enough to be met in the middle.
json long_request(int ticket) {
  return {
      {"ticket", ticket},
      {"lesson", "online-softmax"},
      {"backend", "emulated"},
      {"params", {{"preset", "random"}, {"keys", 65536}, {"tile_width", 1024}, {"head_dim", 128}}}};
}
json short_request(int ticket) {
  return {{"ticket", ticket}, {"lesson", "online-softmax"}, {"backend", "emulated"}};
}

class Worker {
 public:
  explicit Worker(const Environment& extra = {})
      : child_({tilestep::tests::paths::kProgram, "worker"}, extra) {}

  void send(const json& message) { child_.write(message.dump() + "\n"); }
  void send_text(const std::string& line) { child_.write(line + "\n"); }
  /// The next message that is no progress; null at the end.
  json answer() {
    while (const auto line = child_.read_line(kPatience)) {
      json message = json::parse(*line);
      if (message.at("type") != "progress") return message;
      check_progress(message);
    }
    return nullptr;
  }
  int end() {
    child_.close_input();
    return child_.finish(kPatience);
  }
  Child& child() { return child_; }

 private:
  static void check_progress(const json& message) {
    CHECK(message.at("ticket").is_number_unsigned());
    CHECK(message.at("fraction").get<double>() >= 0);
    CHECK(message.at("fraction").get<double>() <= 1);
    CHECK(message.at("note").is_string());
  }

  Child child_;
};

void check_error(const json& message, const json& ticket, int code) {
  INFO(message.dump());
  REQUIRE(message.is_object());
  CHECK(message.at("type") == "error");
  CHECK(message.at("ticket") == ticket);
  CHECK(message.at("code") == code);
  CHECK(!message.at("message").get<std::string>().empty());
}

}  // namespace

TEST_CASE("the worker answers requests in order and ends at the end of input", "[worker]") {
  Worker worker;
  for (int ticket = 1; ticket <= 3; ++ticket) worker.send(short_request(ticket));
  for (int ticket = 1; ticket <= 3; ++ticket) {
    const json message = worker.answer();
    REQUIRE(message.at("type") == "report");
    CHECK(message.at("ticket") == ticket);
    CHECK(tilestep::lab::report_from_json(message.at("report")).ok());
  }
  CHECK(worker.end() == 0);
}

TEST_CASE("a worker fed through a pipe answers before it ends", "[worker]") {
  const Outcome outcome = run_tilestep({"worker"}, short_request(7).dump());  // without a newline
  CHECK(outcome.code == 0);
  check_contains(outcome.out, R"("type":"report")");
  CHECK(run_tilestep({"worker"}).code == 0);
}

#ifdef TILESTEP_WHOLE_PROGRAM  // the worker alone has no `run`
TEST_CASE("the worker's answer is the report of `run`", "[worker]") {
  Worker worker;
  worker.send(short_request(1));
  const json by_worker = worker.answer().at("report");
  const json by_run =
      run_tilestep({"run", "online-softmax", "--backend", "emulated", "--json"}).json();
  for (const char* member : {"lesson", "params", "summary", "tables", "checks", "trace"}) {
    CHECK(by_worker.at(member) == by_run.at(member));
  }
}
#endif

TEST_CASE("lines that are no requests get an error and the worker goes on", "[worker]") {
  Worker worker;
  for (const char* line :
       {"not json", "[]", "42", "{}", R"({"lesson": "online-softmax"})", R"({"cancel": "one"})",
        R"({"ticket": -1, "lesson": "online-softmax"})", R"({"cancel": 1, "lesson": "x"})",
        R"({"ticket": 1.5, "lesson": "online-softmax"})", "{\"ticket\": 1", "\xff\xfe"}) {
    INFO(line);
    worker.send_text(line);
    const json message = worker.answer();
    check_error(message, nullptr, 2);
    check_contains(message.at("message").get<std::string>(), "auto|cuda|emulated|recorded");
  }
  // What is wrong is said as it is: there is a ticket, and the line goes on behind a NUL.
  worker.send_text(R"({"ticket": "5", "lesson": "online-softmax"})");
  CHECK(worker.answer().at("message").get<std::string>().starts_with(
      "this request's \"ticket\" is not valid; "));
  worker.send_text(std::string(R"({"ticket": 7, "lesson": "online-softmax"})") + '\0' + "junk");
  check_error(worker.answer(), nullptr, 2);
  // A request that is longer than any can be is not kept until its end.
  worker.child().write(std::string(5 << 20, 'x'));
  const json too_long = worker.answer();
  check_error(too_long, nullptr, 2);
  check_contains(too_long.at("message").get<std::string>(), "longer than 4194304 bytes");
  worker.send_text("the rest of it");
  worker.send_text("");  // an empty line is nothing at all
  worker.send(short_request(5));
  CHECK(worker.answer().at("type") == "report");
  CHECK(worker.end() == 0);
}

TEST_CASE("evidence is base64, of edited kernels, and what the lesson reads", "[worker]") {
  for (const auto& [bytes, text] :
       std::map<std::string, std::string>{{"", ""},
                                          {"M", "TQ=="},
                                          {"Ma", "TWE="},
                                          {"Man", "TWFu"},
                                          {"\xFF\xEF\xBEz", "/+++eg=="}}) {
    CHECK(tilestep::app::protocol::base64_of(bytes) == text);
    CHECK(tilestep::app::protocol::bytes_of_base64(text) == bytes);
  }
  Worker worker;
  for (const auto& [evidence, says] :
       std::map<std::string, std::string>{{"", "of an edited kernel under emulation alone"},
                                          {"TWF", "it is cut off"},
                                          {"TW*=", "other characters"},
                                          {"TWFu", "other outputs than the lesson reads"}}) {
    INFO(evidence);
    json request = short_request(4);
    request["evidence"] = evidence;
    worker.send(request);
    const json message = worker.answer();
    CHECK(message.at("ticket") == 4);
    check_contains(message.at("message").get<std::string>(), says);
  }
  CHECK(worker.end() == 0);
}

TEST_CASE("requests that are not allowed get an error with their ticket", "[worker]") {
  Worker worker;
  const auto refused = [&](json request, const std::string& named) {
    request["ticket"] = 9;
    worker.send(request);
    const json message = worker.answer();
    check_error(message, 9, 2);
    check_contains(message.at("message").get<std::string>(), named);
  };
  refused({{"lesson", "no-such-lesson"}}, "online-softmax");
  refused({{"lesson", 3}}, "lesson");
  refused(json::object(), "lesson");
  refused({{"lesson", "online-softmax"}, {"params", {{"tile_width", 0}}}}, "1–1024");
  refused({{"lesson", "online-softmax"}, {"params", {{"no_such_knob", 0}}}}, "tile_width");
  refused({{"lesson", "online-softmax"}, {"params", {{"keys", json::array()}}}}, "keys");
  refused({{"lesson", "online-softmax"}, {"params", 5}}, "params");
  refused({{"lesson", "online-softmax"}, {"action", "dance"}}, "run, bench");
  refused({{"lesson", "online-softmax"}, {"backend", "metal"}}, "auto, cuda, emulated, recorded");
  CHECK(worker.end() == 0);
}

TEST_CASE("a cancel ends the run in progress and one that waits", "[worker]") {
  Worker worker;
  worker.send(long_request(1));
  worker.send(long_request(2));
  worker.send(short_request(3));
  worker.send({{"cancel", 2}});
  worker.send({{"cancel", 1}});
  worker.send({{"cancel", 77}});  // nobody's: no answer
  std::set<int> cancelled;
  for (int i = 0; i < 2; ++i) {
    const json message = worker.answer();
    REQUIRE(message.is_object());
    check_error(message, message.at("ticket"), 3);
    check_contains(message.at("message").get<std::string>(), "cancelled");
    cancelled.insert(message.at("ticket").get<int>());
  }
  CHECK(cancelled == std::set<int>{1, 2});
  const json last = worker.answer();
  CHECK(last.at("ticket") == 3);
  CHECK(last.at("type") == "report");
  CHECK(worker.end() == 0);
}

TEST_CASE("a worker that lost its device answers all and ends", "[worker]") {
  Worker worker(Environment{{"TILESTEP_WORKER_FAULT", "lost"}});
  // In one piece, so that the second waits when the first fails.
  worker.send_text(short_request(1).dump() + "\n" + short_request(2).dump());
  const json first = worker.answer();
  check_error(first, 1, 1);
  CHECK(first.at("worker_ends") == true);
  check_contains(first.at("message").get<std::string>(), "some_kernel");
  const json second = worker.answer();
  check_error(second, 2, 3);
  CHECK(second.at("worker_ends") == true);
  CHECK(worker.child().finish(kPatience) == 3);  // though its input is still open
}

TEST_CASE("the worker gives up when nobody reads its answers", "[worker]") {
  Worker idle;
  idle.child().close_output();
  CHECK(eventually([&] { return !idle.child().alive(); }));
  Worker busy;
  busy.send(long_request(1));
  REQUIRE(busy.child().read_line(kPatience).has_value());  // it has started
  busy.child().close_output();
  CHECK(eventually([&] { return !busy.child().alive(); }));
}

TEST_CASE("Ctrl-C in the terminal does not end the worker", "[worker]") {
  Worker worker;
  worker.send(short_request(1));
  CHECK(worker.answer().at("type") == "report");
  ::kill(worker.child().pid(), SIGINT);
  worker.send(short_request(2));
  CHECK(worker.answer().at("type") == "report");
  CHECK(worker.end() == 0);
}
