// A class on one GPU: many labs at once, whose timings take turns.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "app/worker/lab_client.hpp"
#include "kernels/answer.hpp"
#include "kernels/base/lab/gpu_line.hpp"
#include "kernels/catalog.hpp"
#include "tests/app/child.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace tilestep;
using namespace tilestep::app;
using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

/// The lines of this test are its own.
class OwnLines {
 public:
  OwnLines() { ::setenv("TILESTEP_LINES", folder_.path().c_str(), 1); }
  ~OwnLines() { ::unsetenv("TILESTEP_LINES"); }

 private:
  TemporaryFolder folder_;
};

constexpr auto kNobody = [](int) {};

}  // namespace

// ---- the line -----------------------------------------------------------------------------------

TEST_CASE("whoever comes first has the GPU first, and the others know their place", "[class]") {
  const OwnLines lines;
  auto first = std::make_unique<lab::GpuLine>("GPU-1");
  first->take(kNobody);
  CHECK(first->is_ours());
  std::mutex mutex;
  std::vector<int> order;
  std::map<int, std::vector<int>> places;  // by who waits: how many were before
  std::vector<std::thread> waiting;
  for (int who = 0; who < 5; ++who) {
    waiting.emplace_back([&, who] {
      lab::GpuLine line("GPU-1");
      line.take([&](int before) {
        const std::lock_guard lock(mutex);
        places[who].push_back(before);
      });
      const std::lock_guard lock(mutex);
      order.push_back(who);
    });
    REQUIRE(eventually([&] {  // until it stands in line
      const std::lock_guard lock(mutex);
      return places.count(who) > 0;
    }));
  }
  for (int who = 0; who < 5; ++who) {
    const std::lock_guard lock(mutex);
    CHECK(places[who].front() == who + 1);
  }
  lab::GpuLine other("GPU-2");
  other.take([](int) { FAIL("another GPU has a line of its own"); });
  first.reset();
  for (std::thread& each : waiting) each.join();
  CHECK(order == std::vector{0, 1, 2, 3, 4});
  for (auto& [who, seen] : places) CHECK(std::is_sorted(seen.rbegin(), seen.rend()));
}

TEST_CASE("who gives up or dies leaves the line", "[class]") {
  const OwnLines lines;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {  // its turn never ends
    lab::GpuLine line("GPU-1");
    line.take(kNobody);
    [[maybe_unused]] const auto told = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  {
    struct Bored {};
    lab::GpuLine line("GPU-1");
    CHECK_THROWS_AS(line.take([](int) { throw Bored(); }), Bored);
    CHECK(!line.is_ours());
  }
  std::atomic<bool> came = false;
  std::atomic<int> most_before = 0;  // Catch's own counts are no thing for two threads
  std::thread next([&] {
    lab::GpuLine line("GPU-1");
    line.take([&](int before) { most_before = std::max<int>(most_before, before); });
    came = true;
  });
  std::this_thread::sleep_for(100ms);
  CHECK(!came);
  ::kill(child, SIGKILL);
  next.join();
  CHECK(came);
  CHECK(most_before == 1);  // the bored one is gone
  ::waitpid(child, nullptr, 0);
  for (const int fd : ready) ::close(fd);
}

TEST_CASE("a line that cannot be used is named", "[class]") {
  const OwnLines lines;
  const std::string file = lab::line_file("GPU/../1");
  CHECK(file.ends_with("/tilestep-GPU----1.line"));
  std::filesystem::create_symlink("/etc/passwd", file);
  CHECK_THROWS_WITH(lab::GpuLine("GPU/../1"),
                    Catch::Contains(file) && Catch::Contains("TILESTEP_LINES"));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  CHECK_THROWS_AS(lab::GpuLine("GPU/../1"), Error);
}

// ---- the class ----------------------------------------------------------------------------------

namespace {

constexpr int kClients = 30;

/// One of the class: asks for one lesson after the other.
struct Client {
  std::unique_ptr<LabClient> lab;
  Ticket ticket = 0;
  std::size_t lesson = 0;
  Clock::time_point asked;
  int answers = 0, killed = 0, waited = 0;
  double longest_s = 0;
};

struct Stamp {
  double from, to;
};

/// As seen by the class: its length in seconds by TILESTEP_CLASS_SECONDS.
class Class {
 public:
  void run(std::chrono::seconds length);

  std::vector<Client> clients = std::vector<Client>(kClients);
  std::vector<Stamp> stamps;
  int killed = 0, wrong = 0, errors = 0;

 private:
  void ask(Client& client);
  void take(Client& client, const LabUpdate& update);
  void kill_one();
  bool somebody_has_none() const;

  std::map<std::string, nlohmann::json> right_;  ///< each lesson's tables
  std::set<pid_t> spared_;
  std::mt19937 random_{7};
};

nlohmann::json tables_of(const lab::Report& report) {
  return lab::to_json(report)["tables"];
}

void Class::ask(Client& client) {
  lab::Request request;
  request.lesson = lessons()[client.lesson]->info().id;
  client.asked = Clock::now();
  client.ticket = client.lab->submit(request);
}

void Class::take(Client& client, const LabUpdate& update) {
  if (update.ticket != client.ticket) return;
  if (const auto* progress = std::get_if<LabProgress>(&update.what)) {
    client.waited += progress->waiting && progress->note.find("in line") != std::string::npos;
    return;
  }
  const std::chrono::duration<double> took = Clock::now() - client.asked;
  client.longest_s = std::max(client.longest_s, took.count());
  if (const auto* report = std::get_if<lab::Report>(&update.what)) {
    ++client.answers;
    wrong += tables_of(*report) != right_[report->lesson];
    if (report->turn) stamps.push_back({report->turn->from_ms, report->turn->to_ms});
    client.lesson = (client.lesson + 1) % lessons().size();
  } else if (const auto* failure = std::get_if<LabFailure>(&update.what)) {
    INFO(failure->sentence);
    CHECK(failure->worker_died);
    CHECK(failure->sentence.find("SIGKILL") != std::string::npos);
    ++client.killed;
    ++errors;
  }
  ask(client);
}

/// A worker that is at work or in line.
void Class::kill_one() {
  const auto workers = children_of(::getpid());
  if (workers.empty()) return;
  ::kill(workers[random_() % workers.size()], SIGKILL);
  ++killed;
}

bool Class::somebody_has_none() const {
  return std::any_of(clients.begin(), clients.end(),
                     [](const Client& each) { return each.answers + each.killed == 0; });
}

void Class::run(std::chrono::seconds length) {
  lab::NoProgress progress;
  for (const lab::Lesson* lesson : lessons()) {
    lab::Request request;
    request.lesson = lesson->info().id;
    request.backend = "emulated";
    right_[request.lesson] = tables_of(answer(request, progress));
  }
  for (Client& client : clients) {
    ProcessLabOptions options;
    options.address = parse_lab("run:'" + std::string(tilestep::tests::paths::kClassWorker) + "'");
    options.run_deadline = 5min;
    client.lab = make_process_lab(options);
    client.lesson = static_cast<std::size_t>(&client - clients.data()) % lessons().size();
    ask(client);
  }
  const auto end = Clock::now() + length;
  const auto pause = length / (kClients / 10 + 1);
  auto kill_at = Clock::now() + pause;
  // A slow machine, or one with sanitizers, takes longer for the first round.
  const auto last = end + 4min;
  while (Clock::now() < end || (somebody_has_none() && Clock::now() < last)) {
    for (Client& client : clients) {
      while (const auto update = client.lab->poll()) take(client, *update);
    }
    if (Clock::now() > kill_at && killed <= kClients / 10) {
      kill_one();
      kill_at += pause;
    }
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace

TEST_CASE("thirty at once get right tables in turn, and none waits for ever", "[class]") {
  const OwnLines lines;
  ::setenv("TILESTEP_PAUSE_MS", "5", 1);
  const char* wanted = std::getenv("TILESTEP_CLASS_SECONDS");
  const std::chrono::seconds length(wanted == nullptr ? 15 : std::atoi(wanted));
  Class all;
  all.run(length);
  int least = 1 << 30, most = 0, total = 0, waited = 0;
  double longest_s = 0;
  for (const Client& client : all.clients) {
    waited += client.waited;
    total += client.answers;
    longest_s = std::max(longest_s, client.longest_s);
    if (client.killed > 0) continue;
    least = std::min(least, client.answers);
    most = std::max(most, client.answers);
  }
  auto& stamps = all.stamps;
  std::sort(stamps.begin(), stamps.end(), [](auto a, auto b) { return a.from < b.from; });
  int overlaps = 0;
  for (std::size_t i = 1; i < stamps.size(); ++i) overlaps += stamps[i].from < stamps[i - 1].to;
  WARN(kClients << " clients for " << length.count() << " s: " << total << " answers, " << least
                << "–" << most << " a client, " << all.killed << " killed, " << waited
                << " times in line, longest answer " << longest_s << " s");
  CHECK(all.wrong == 0);
  CHECK(all.errors <= all.killed);
  CHECK(all.killed >= kClients / 10);
  CHECK(stamps.size() == static_cast<std::size_t>(total));
  CHECK(overlaps == 0);
  CHECK(waited > 0);
  CHECK(least > 0);
  CHECK(most <= 2 * std::max(least, 1) + 2);  // the last round may be under way
  all.clients.clear();
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}
