#include "tests/app/browser.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tests/skip.hpp"

namespace tilestep::tests {

using namespace std::chrono_literals;
using nlohmann::json;

// ---- the process -----------------------------------------------------------------------------------

namespace {

/// The browser is not there any more, or never was.
struct BrowserGone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int milliseconds_until(std::chrono::steady_clock::time_point end) {
  const auto left = end - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

std::vector<std::string> command_line(const std::string& program,
                                      const std::filesystem::path& folder) {
  std::vector<std::string> words = {
      program,
      "--headless=new",
      "--remote-debugging-pipe",
      "--user-data-dir=" + (folder / "profile").string(),
      "--no-startup-window",
      "--no-first-run",
      "--no-default-browser-check",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-extensions",
      "--disable-default-apps",
      "--disable-sync",
      "--disable-breakpad",
      "--disable-crash-reporter",
      "--disable-search-engine-choice-screen",
      "--password-store=basic",
      "--mute-audio",
      "--lang=en-US",
      "--force-color-profile=srgb",
      // A process less that can fail at its start.
      "--enable-features=NetworkServiceInProcess2",
      // Nothing from the network, and nothing to it.
      "--host-resolver-rules=MAP * ~NOTFOUND",
      "--no-proxy-server",
      "--no-pings",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-client-side-phishing-detection",
      "--disable-domain-reliability",
      "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
      // A page behind another one is as fast.
      "--disable-background-timer-throttling",
      "--disable-backgrounding-occluded-windows",
      "--disable-renderer-backgrounding",
  };
  if (::geteuid() == 0) words.push_back("--no-sandbox");
  return words;
}

/// Ours, but for what would lead it out of its folder or to a screen.
std::vector<std::string> its_environment(const std::filesystem::path& folder) {
  Environment own = {{"HOME", folder.string()},
                     {"TMPDIR", folder.string()},
                     {"XDG_CONFIG_HOME", ""},
                     {"XDG_CACHE_HOME", ""},
                     {"XDG_DATA_HOME", ""},
                     {"XDG_STATE_HOME", ""},
                     {"XDG_RUNTIME_DIR", ""},
                     {"CHROMIUM_FLAGS", ""},
                     {"CHROMIUM_USER_FLAGS", ""},
                     {"DBUS_SESSION_BUS_ADDRESS", "disabled:"},
                     {"DISPLAY", ""},
                     {"WAYLAND_DISPLAY", ""}};
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!own.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : own) {
    if (!value.empty()) all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<char*> null_ended(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

/// Its processes, which are a group of their own, and its folder.
class Browser::Process {
 public:
  explicit Process(const std::string& program);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void write(std::string_view text, Moment end);
  /// Appends what there is by `end`.
  void read(std::string& into, Moment end);
  /// The end of what it said on its standard error.
  std::string said() const;

 private:
  /// Closed with it.
  class Descriptor {
   public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }
    void close() {
      if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

   private:
    int fd_;
  };
  struct Pipe {
    Pipe() : Pipe(made()) {}
    Descriptor out, in;

   private:
    explicit Pipe(std::array<int, 2> ends) : out(ends[0]), in(ends[1]) {}
    /// Both ends are above the numbers that the browser needs.
    static std::array<int, 2> made();
  };
  [[noreturn]] void gone();

  TemporaryFolder folder_;
  std::filesystem::path log_ = folder_.path() / "log";
  Pipe to_, from_;
  Pipe lifeline_;  ///< all its processes have its end as their standard input, and never read it
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

std::array<int, 2> Browser::Process::Pipe::made() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
  for (int& end : ends) {
    const Descriptor low(end);
    end = ::fcntl(low.get(), F_DUPFD_CLOEXEC, 10);
    if (end < 0) throw std::runtime_error("no pipes");
  }
  return ends;
}

Browser::Process::Process(const std::string& program) {
  ::signal(SIGPIPE, SIG_IGN);
  // Else it asks name servers for google.com when a page names another machine.
  const std::filesystem::path settings = folder_.path() / "profile" / "Default";
  std::filesystem::create_directories(settings);
  std::ofstream(settings / "Preferences") << R"({"alternate_error_pages": {"enabled": false}})";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, lifeline_.out.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  // --remote-debugging-pipe means these two.
  posix_spawn_file_actions_adddup2(&files, to_.out.get(), 3);
  posix_spawn_file_actions_adddup2(&files, from_.in.get(), 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = command_line(program, folder_.path());
  std::vector<std::string> environment = its_environment(folder_.path());
  const int error = ::posix_spawnp(&pid_, program.c_str(), &files, &attributes,
                                   null_ended(words).data(), null_ended(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  to_.out.close();
  from_.in.close();
  lifeline_.out.close();
  if (error != 0) throw BrowserGone(fmt::format("{}: {}", program, std::strerror(error)));
  ::fcntl(to_.in.get(), F_SETFL, O_NONBLOCK);
}

Browser::Process::~Process() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  if (!ended_) ::waitpid(pid_, &status_, 0);
  // Its children are not ours to wait for; the folder can go once none of them writes to it.
  pollfd alive = {lifeline_.in.get(), 0, 0};
  ::poll(&alive, 1, 10'000);
}

void Browser::Process::write(std::string_view text, Moment end) {
  while (!text.empty()) {
    const ssize_t written = ::write(to_.in.get(), text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      pollfd watched = {to_.in.get(), POLLOUT, 0};
      const int left = milliseconds_until(end);
      if (left == 0) throw std::runtime_error("Chromium does not read what it is told");
      ::poll(&watched, 1, left);
    } else if (written < 0 && errno != EINTR) {
      gone();
    }
  }
}

void Browser::Process::read(std::string& into, Moment end) {
  pollfd watched = {from_.out.get(), POLLIN, 0};
  if (::poll(&watched, 1, milliseconds_until(end)) <= 0) return;
  std::array<char, 65536> piece;
  const ssize_t count = ::read(from_.out.get(), piece.data(), piece.size());
  if (count > 0) {
    into.append(piece.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    gone();
  }
}

std::string Browser::Process::said() const {
  std::string all;
  std::istringstream log(file_text(log_));
  for (std::string line; std::getline(log, line);) {
    // It always misses the desktop's bus.
    if (line.find("dbus/") == std::string::npos) all += "\n  " + line;
  }
  if (all.size() > 1000) all = "…" + all.substr(all.size() - 1000);
  return "it said " + (all.empty() ? "nothing" : all);
}

void Browser::Process::gone() {
  ended_ = ended_ || eventually([this] { return ::waitpid(pid_, &status_, WNOHANG) != 0; }, 5s);
  std::string how = "hung up";
  if (ended_ && WIFEXITED(status_)) how = fmt::format("exited with {}", WEXITSTATUS(status_));
  if (ended_ && WIFSIGNALED(status_))
    how = fmt::format("was ended by signal {}", WTERMSIG(status_));
  throw BrowserGone(fmt::format("Chromium {}; {}", how, said()));
}

// ---- the browser -----------------------------------------------------------------------------------

Browser::Browser(const std::string& program) : process_(std::make_unique<Process>(program)) {
  version_ = call("Browser.getVersion", json::object()).at("product");
}

Browser::~Browser() = default;

std::unique_ptr<Browser> make_browser() {
  std::string reason = "there is no chromium here";
  for (const char* program :
       {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}) {
    if (!has_program(program)) continue;
    try {
      return std::make_unique<Browser>(program);
    } catch (const BrowserGone& gone) {
      reason = fmt::format("{} does not start here: {}", program, gone.what());
    }
  }
  skip("pages are not tested: " + reason);
  return nullptr;
}

pid_t Browser::pid() const {
  return process_->pid();
}

std::unique_ptr<Page> Browser::page() {
  const json context = call("Target.createBrowserContext", json::object());
  return std::unique_ptr<Page>(new Page(*this, context.at("browserContextId")));
}

std::unique_ptr<Page> Browser::page_beside(const Page& other) {
  return std::unique_ptr<Page>(new Page(*this, other.context_));
}

void Browser::tell(const std::string& session, const std::string& method, json parameters) {
  json message = {{"id", ++last_id_}, {"method", method}, {"params", std::move(parameters)}};
  if (!session.empty()) message["sessionId"] = session;
  std::string text = message.dump();
  text.push_back('\0');
  process_->write(text, std::chrono::steady_clock::now() + kBrowserLimit);
}

int Browser::ask(const std::string& session, const std::string& method, json parameters) {
  tell(session, method, std::move(parameters));
  answers_[last_id_];
  return last_id_;
}

std::optional<json> Browser::await(int id, Moment end, const Page* page) {
  for (std::optional<json>& answer = answers_.at(id); !answer;) {
    if (page != nullptr && !page->lost_.empty()) throw std::runtime_error(page->lost_);
    if (!listen(end)) break;
  }
  return std::move(answers_.extract(id).mapped());
}

json Browser::call(const std::string& method, json parameters) {
  const int id = ask("", method, std::move(parameters));
  const auto answer = await(id, std::chrono::steady_clock::now() + kBrowserLimit, nullptr);
  if (!answer) {
    throw std::runtime_error(
        fmt::format("waited {} s for Chromium's answer to {}", kBrowserLimit / 1s, method));
  }
  if (answer->contains("error")) {
    throw std::runtime_error(fmt::format("{}: {}", method, answer->at("error").dump()));
  }
  return answer->at("result");
}

bool Browser::listen(Moment end) {
  if (std::chrono::steady_clock::now() >= end) return false;
  process_->read(received_, end);
  std::vector<json> messages;
  std::size_t begin = 0;
  for (std::size_t nul;
       (nul = received_.find('\0', std::max(begin, searched_))) != std::string::npos;
       begin = nul + 1) {
    messages.push_back(json::parse(received_.begin() + static_cast<std::ptrdiff_t>(begin),
                                   received_.begin() + static_cast<std::ptrdiff_t>(nul)));
  }
  received_.erase(0, begin);
  searched_ = received_.size();
  for (const json& message : messages) take(message);
  return true;
}

void Browser::take(const json& message) {
  if (message.contains("id")) {
    const auto awaited = answers_.find(message.at("id").get<int>());
    if (awaited != answers_.end()) awaited->second = message;
    return;
  }
  const std::string method = message.at("method");
  const json& event = message.at("params");
  // The browser itself says that a page is gone; all else is said by a page.
  const bool left = method == "Target.detachedFromTarget";
  const auto of =
      pages_.find(left ? event.at("sessionId").get<std::string>() : message.value("sessionId", ""));
  if (of == pages_.end()) return;
  Page& page = *of->second;
  if (method == "Target.attachedToTarget") {
    attach(event.at("sessionId"), page);
  } else if (left) {
    if (of->first == page.session_) page.lost_ = "the page was closed";
    pages_.erase(of);
  } else {
    page.take(method, event);
  }
}

void Browser::attach(const std::string& session, Page& page) {
  pages_[session] = &page;
  for (const char* domain : {"Runtime", "Log", "Network"}) {
    tell(session, std::string(domain) + ".enable", json::object());
  }
  // Workers, and frames with a process of their own, wait until they are heard.
  tell(session, "Target.setAutoAttach",
       {{"autoAttach", true}, {"waitForDebuggerOnStart", true}, {"flatten", true}});
  tell(session, "Runtime.runIfWaitingForDebugger", json::object());
}

void Browser::forget(const Page& page) {
  std::erase_if(pages_, [&page](const auto& entry) { return entry.second == &page; });
}

// ---- words -----------------------------------------------------------------------------------------

namespace {

/// A URL, or a file's.
std::string address_of(const std::string& where) {
  if (where.find("://") != std::string::npos || where.starts_with("data:") ||
      where.starts_with("about:")) {
    return where;
  }
  const std::size_t end = std::filesystem::exists(where)
                              ? where.size()
                              : std::min(where.size(), where.find_first_of("?#"));
  std::string url = "file://";
  for (const char c : std::filesystem::absolute(where.substr(0, end)).lexically_normal().string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos) {
      url.push_back(c);
    } else {
      url += fmt::format("%{:02X}", byte);
    }
  }
  return url + where.substr(end);
}

std::string shortened(const std::string& text) {
  return text.size() <= 200 ? text : text.substr(0, 200) + " …";
}

/// A value in the page as the console shows it.
std::string shown_value(const json& value) {
  if (value.contains("value")) {
    const json& plain = value.at("value");
    return plain.is_string() ? plain.get<std::string>() : plain.dump();
  }
  for (const char* words : {"unserializableValue", "description", "type"}) {
    if (value.contains(words)) return value.at(words);
  }
  return "";
}

std::string exception_text(const json& details) {
  const std::string text = details.value("text", "");
  return details.contains("exception") ? shown_value(details.at("exception")) : text;
}

/// Where in a source, if it is known. The protocol counts from 0.
std::string source_place(const json& frame) {
  const std::string url = frame.value("url", "");
  if (url.empty()) return "";
  return fmt::format(" ({}:{})", shortened(url), frame.value("lineNumber", 0) + 1);
}

std::string decoded(std::string_view base64) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : base64) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 255));
  }
  return bytes;
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::string existing_file(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) throw std::runtime_error("no such file: " + path.string());
  return std::filesystem::absolute(path).string();
}

}  // namespace

// ---- a page ----------------------------------------------------------------------------------------

Page::Page(Browser& browser, std::string context)
    : browser_(browser), context_(std::move(context)) {
  target_ = browser_
                .call("Target.createTarget",
                      {{"url", "about:blank"}, {"browserContextId", context_}, {"newWindow", true}})
                .at("targetId");
  session_ = browser_.call("Target.attachToTarget", {{"targetId", target_}, {"flatten", true}})
                 .at("sessionId");
  browser_.attach(session_, *this);
  try {
    for (const char* domain : {"Page", "Inspector"}) call(std::string(domain) + ".enable");
    call("Page.setLifecycleEventsEnabled", {{"enabled", true}});
    // Several pages have the focus at once.
    call("Emulation.setFocusEmulationEnabled", {{"enabled", true}});
    frame_ = call("Page.getFrameTree").at("frameTree").at("frame").at("id");
    resize(1280, 800);
    set_media({});
  } catch (...) {
    browser_.forget(*this);
    throw;
  }
}

Page::~Page() {
  browser_.forget(*this);
  try {
    browser_.tell("", "Target.closeTarget", {{"targetId", target_}});
  } catch (const std::exception&) {  // the browser is gone, and the page with it
  }
}

void Page::take(const std::string& method, const json& event) {
  if (method == "Page.lifecycleEvent") {
    if (event.at("name") == "load" && event.at("frameId") == frame_) loaded_ = event.at("loaderId");
  } else if (method == "Page.navigatedWithinDocument") {
    if (event.at("frameId") == frame_) ++moves_;
  } else if (method == "Page.javascriptDialogOpening") {
    errors_.push_back(fmt::format("dialog: {}", event.at("message").get<std::string>()));
    browser_.tell(session_, "Page.handleJavaScriptDialog", {{"accept", true}});
  } else if (method == "Inspector.targetCrashed") {
    lost_ = "the page's process crashed";
  } else if (method == "Runtime.consoleAPICalled") {
    const std::string type = event.at("type");
    if (type != "error" && type != "warning" && type != "assert") return;
    std::string words;
    for (const json& value : event.at("args")) words += " " + shown_value(value);
    const json frames = event.value("/stackTrace/callFrames"_json_pointer, json::array());
    errors_.push_back(
        fmt::format("console.{}:{}{}", type, words, frames.empty() ? "" : source_place(frames[0])));
  } else if (method == "Runtime.exceptionThrown") {
    const json& details = event.at("exceptionDetails");
    errors_.push_back(
        fmt::format("uncaught: {}{}", exception_text(details), source_place(details)));
  } else if (method == "Log.entryAdded") {
    const json& entry = event.at("entry");
    if (entry.at("level") != "error" && entry.at("level") != "warning") return;
    errors_.push_back(fmt::format("{} {}: {}{}", entry.at("source").get<std::string>(),
                                  entry.at("level").get<std::string>(),
                                  entry.at("text").get<std::string>(), source_place(entry)));
  } else if (method == "Network.requestWillBeSent") {
    const std::string url = event.at("request").at("url");
    const bool own = event.value("type", "") == "Document" && event.value("frameId", "") == frame_;
    if (!own && !url.starts_with("data:") && !url.starts_with("blob:")) requests_.push_back(url);
  } else if (method == "Network.webSocketCreated" || method == "Network.webTransportCreated") {
    requests_.push_back(event.at("url"));
  }
}

std::string Page::late(const std::string& what, std::chrono::milliseconds limit) const {
  std::string text =
      fmt::format("waited {} s for {}", static_cast<double>(limit.count()) / 1000, what);
  if (errors_.empty()) return text + "; the page reported no errors";
  text += "; the last errors of the page:";
  for (std::size_t i = errors_.size() - std::min<std::size_t>(errors_.size(), 5);
       i < errors_.size(); ++i) {
    text += "\n  " + errors_[i];
  }
  return text;
}

std::optional<json> Page::answer(const std::string& method, json parameters, Moment end) {
  return browser_.await(browser_.ask(session_, method, std::move(parameters)), end, this);
}

json Page::call(const std::string& method, json parameters, std::chrono::milliseconds limit) {
  const auto said = answer(method, std::move(parameters), std::chrono::steady_clock::now() + limit);
  if (!said) {
    throw std::runtime_error(late("Chromium's answer to " + method, limit) + "; " +
                             browser_.process_->said());
  }
  if (said->contains("error")) {
    const json& error = said->at("error");
    throw std::runtime_error(
        fmt::format("{}: {} {}", method, error.value("message", ""), error.value("data", "")));
  }
  return said->at("result");
}

template <class Condition>
void Page::wait_until(const Condition& met, const std::string& what) {
  const Moment end = std::chrono::steady_clock::now() + kBrowserLimit;
  while (!met()) {
    if (!lost_.empty()) throw std::runtime_error(lost_);
    if (!browser_.listen(end)) throw std::runtime_error(late(what, kBrowserLimit));
  }
}

void Page::open(const std::string& where) {
  const std::string url = address_of(where);
  const int moves = moves_;
  const json started = call("Page.navigate", {{"url", url}});
  if (started.contains("errorText")) {
    throw std::runtime_error(
        fmt::format("cannot open {}: {}", url, started.at("errorText").get<std::string>()));
  }
  const std::string what = "the load of " + url;
  if (!started.contains("loaderId")) {
    return wait_until([&] { return moves_ != moves; }, what);
  }
  // A page that sends us on before it is loaded never is; the one after it is.
  const std::string document = started.at("loaderId"), before = loaded_;
  wait_until([&] { return loaded_ == document || loaded_ != before; }, what);
}

void Page::reload() {
  const std::string before = loaded_;
  call("Page.reload");
  wait_until([&] { return loaded_ != before; }, "the page to load again");
}

namespace {

json evaluation(const std::string& expression, std::chrono::milliseconds limit) {
  // `timeout` ends what never yields.
  return {{"expression", expression},
          {"awaitPromise", true},
          {"returnByValue", true},
          {"timeout", limit.count()}};
}

json value_of(const json& result) {
  if (result.contains("value")) return result.at("value");
  return result.value("unserializableValue", json());
}

bool counts_as_true(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0;
  if (value.is_string()) return !value.get<std::string>().empty() && value != "NaN";
  return !value.is_null();
}

}  // namespace

json Page::evaluate(const std::string& expression, std::chrono::milliseconds limit) {
  const Moment end = std::chrono::steady_clock::now() + limit;
  const auto said = answer("Runtime.evaluate", evaluation(expression, limit), end);
  const bool failed = said && said->contains("error");
  if (!said || (failed && std::chrono::steady_clock::now() >= end)) {
    throw std::runtime_error(late("the value of " + shortened(expression), limit));
  }
  if (failed) {
    throw std::runtime_error(
        fmt::format("{} in {}", said->at("error").value("message", ""), shortened(expression)));
  }
  const json& result = said->at("result");
  if (result.contains("exceptionDetails")) {
    throw std::runtime_error(fmt::format("{} in {}", exception_text(result.at("exceptionDetails")),
                                         shortened(expression)));
  }
  return value_of(result.at("result"));
}

std::optional<std::string> Page::unmet(const std::string& expression,
                                       std::chrono::milliseconds limit) {
  const Moment end = std::chrono::steady_clock::now() + limit;
  std::string last = "it was not evaluated";
  for (;;) {
    const auto left = std::chrono::milliseconds(std::max(1, milliseconds_until(end)));
    const auto said = answer("Runtime.evaluate", evaluation(expression, left), end);
    if (said) {
      const json result = said->value("result", json::object());
      const json value = value_of(result.value("result", json::object()));
      if (said->contains("error")) {
        last = said->at("error").value("message", "");
      } else if (result.contains("exceptionDetails")) {
        last = exception_text(result.at("exceptionDetails"));
      } else if (counts_as_true(value)) {
        return std::nullopt;
      } else {
        last = "it was " + shortened(value.dump());
      }
    }
    const Moment now = std::chrono::steady_clock::now();
    if (now >= end) return fmt::format("{} ({})", shortened(expression), last);
    // What the page says meanwhile may be why it becomes true.
    browser_.listen(std::min(end, now + 10ms));
  }
}

bool Page::becomes(const std::string& expression, std::chrono::milliseconds limit) {
  return !unmet(expression, limit);
}

void Page::wait_for(const std::string& expression, std::chrono::milliseconds limit) {
  if (const auto why = unmet(expression, limit)) throw std::runtime_error(late(*why, limit));
}

// ---- keys ------------------------------------------------------------------------------------------

namespace {

struct Modifier {
  const char* name;
  int bit, number;
};
constexpr Modifier kModifiers[] = {
    {"Alt", 1, 18}, {"Control", 2, 17}, {"Meta", 4, 91}, {"Shift", 8, 16}};

/// One of a US keyboard. `number`: its "virtual key code".
struct Key {
  std::string key, code;
  int number = 0;
  std::string text;  ///< what it types
  bool shifted = false;
};

std::optional<Key> key_called(const std::string& name) {
  static const std::map<std::string, int> named = {
      {"Backspace", 8},   {"Tab", 9},        {"Enter", 13},  {"Escape", 27},    {"PageUp", 33},
      {"PageDown", 34},   {"End", 35},       {"Home", 36},   {"ArrowLeft", 37}, {"ArrowUp", 38},
      {"ArrowRight", 39}, {"ArrowDown", 40}, {"Insert", 45}, {"Delete", 46},    {"F1", 112},
      {"F2", 113},        {"F3", 114},       {"F4", 115},    {"F5", 116},       {"F6", 117},
      {"F7", 118},        {"F8", 119},       {"F9", 120},    {"F10", 121},      {"F11", 122},
      {"F12", 123}};
  if (const auto found = named.find(name); found != named.end()) {
    return Key{name, name, found->second, name == "Enter" ? "\r" : ""};
  }
  if (name == "Space" || name == " ") return Key{" ", "Space", 32, " "};
  if (name.size() != 1) return std::nullopt;
  const auto byte = static_cast<unsigned char>(name[0]);
  if (std::isalpha(byte) != 0) {
    const int upper = std::toupper(byte);
    return Key{name, std::string("Key") + static_cast<char>(upper), upper, name, upper == byte};
  }
  struct Sign {
    char plain, shifted;
    const char* code;
    int number;
  };
  static constexpr Sign kSigns[] = {{'1', '!', "Digit1", '1'},      {'2', '@', "Digit2", '2'},
                                    {'3', '#', "Digit3", '3'},      {'4', '$', "Digit4", '4'},
                                    {'5', '%', "Digit5", '5'},      {'6', '^', "Digit6", '6'},
                                    {'7', '&', "Digit7", '7'},      {'8', '*', "Digit8", '8'},
                                    {'9', '(', "Digit9", '9'},      {'0', ')', "Digit0", '0'},
                                    {'-', '_', "Minus", 189},       {'=', '+', "Equal", 187},
                                    {'[', '{', "BracketLeft", 219}, {']', '}', "BracketRight", 221},
                                    {'\\', '|', "Backslash", 220},  {';', ':', "Semicolon", 186},
                                    {'\'', '"', "Quote", 222},      {'`', '~', "Backquote", 192},
                                    {',', '<', "Comma", 188},       {'.', '>', "Period", 190},
                                    {'/', '?', "Slash", 191}};
  for (const Sign& sign : kSigns) {
    if (name[0] != sign.plain && name[0] != sign.shifted) continue;
    return Key{name, sign.code, sign.number, name, name[0] == sign.shifted};
  }
  return std::nullopt;
}

/// The same key with Shift, where that is another character: `Shift+a` types A.
Key with_shift(const Key& key) {
  if (key.text.size() != 1 || key.shifted || key.code == "Enter" || key.code == "Space") return key;
  for (char c = '!'; c <= '~'; ++c) {
    auto other = key_called(std::string(1, c));
    if (other && other->code == key.code && other->shifted) return *other;
  }
  return key;
}

}  // namespace

void Page::press(const std::string& keys) {
  std::string name = keys;
  int held = 0;
  for (bool more = true; more;) {
    more = false;
    for (const Modifier& one : kModifiers) {
      const std::string prefix = std::string(one.name) + "+";
      if (!name.starts_with(prefix) || name == prefix) continue;
      name.erase(0, prefix.size());
      held |= one.bit;
      more = true;
    }
  }
  std::optional<Key> key = key_called(name);
  if (!key) {
    throw std::runtime_error(fmt::format(
        "there is no key {}: there are characters, names as of KeyboardEvent.key, and Alt+, "
        "Control+, Meta+ or Shift+ before them",
        keys));
  }
  if (key->shifted) held |= 8;
  if ((held & 8) != 0) key = with_shift(*key);
  const auto send = [this](const char* what, json event, int modifiers) {
    event["type"] = what;
    event["modifiers"] = modifiers;
    call("Input.dispatchKeyEvent", std::move(event));
  };
  const auto modifier = [](const Modifier& one) {
    return json{{"key", one.name},
                {"code", std::string(one.name) + "Left"},
                {"windowsVirtualKeyCode", one.number},
                {"location", 1}};
  };
  int down = 0;
  for (const Modifier& one : kModifiers) {
    if ((held & one.bit) != 0) send("rawKeyDown", modifier(one), down |= one.bit);
  }
  json event = {{"key", key->key}, {"code", key->code}, {"windowsVirtualKeyCode", key->number}};
  json typing = event;
  const bool types = !key->text.empty() && (held & ~8) == 0;
  if (types) typing["text"] = key->text;
  send(types ? "keyDown" : "rawKeyDown", std::move(typing), down);
  send("keyUp", std::move(event), down);
  for (const Modifier& one : kModifiers) {
    if ((held & one.bit) != 0) send("keyUp", modifier(one), down &= ~one.bit);
  }
}

void Page::type(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    const std::string character = text.substr(at, end - at);
    if (character == "\n") {
      press("Enter");
    } else if (key_called(character)) {
      press(character);
    } else {
      call("Input.insertText", {{"text", character}});
    }
    at = end;
  }
}

// ---- the pointer -----------------------------------------------------------------------------------

namespace {

/// Answers where the element is, in the window, or why a pointer does not meet it.
constexpr std::string_view kFindSpot = R"js((async (css, across, down) => {
  const element = document.querySelector(css);
  if (!element) return {why: 'it is not there'};
  const places = () => [element.getBoundingClientRect(), ...element.getClientRects()].map(
      box => ({x: box.left + box.width * across, y: box.top + box.height * down}));
  let why = 'it is out of sight';
  const met = () => places().find(({x, y}) => {
    const top = document.elementFromPoint(x, y);
    if (!top) return false;
    if (element.contains(top) || top.closest('label')?.control === element) return true;
    why = 'the pointer meets ' + top.cloneNode(false).outerHTML.slice(0, 200) + ' there';
    return false;
  });
  if (!met()) element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  const before = JSON.stringify(places());
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  if (JSON.stringify(places()) !== before) return {why: 'it moves'};
  return met() ?? {why};
}))js";

}  // namespace

Page::Point Page::spot(const std::string& element, Share at) {
  const Moment end = std::chrono::steady_clock::now() + kBrowserLimit;
  const std::string find =
      fmt::format("{}({}, {}, {})", kFindSpot, json(element).dump(), at.across, at.down);
  for (;;) {
    const json found = evaluate(find);
    if (!found.contains("why")) return {found.at("x").get<double>(), found.at("y").get<double>()};
    if (!browser_.listen(std::min(end, std::chrono::steady_clock::now() + 10ms))) {
      throw std::runtime_error(
          late(fmt::format("{}: {}", element, found.at("why").get<std::string>()), kBrowserLimit));
    }
  }
}

void Page::mouse(const char* what, Point at, bool down) {
  const std::string_view type = what;
  call("Input.dispatchMouseEvent", {{"type", what},
                                    {"x", at.x},
                                    {"y", at.y},
                                    {"button", type == "mouseMoved" && !down ? "none" : "left"},
                                    {"buttons", down ? 1 : 0},
                                    {"clickCount", type == "mouseMoved" ? 0 : 1}});
}

void Page::point_at(const std::string& element, Share at) {
  mouse("mouseMoved", spot(element, at), false);
}

void Page::click(const std::string& element, Share at) {
  const Point point = spot(element, at);
  mouse("mouseMoved", point, false);
  mouse("mousePressed", point, true);
  mouse("mouseReleased", point, false);
}

void Page::drop_file(const std::string& element, const std::filesystem::path& file) {
  const json data = {{"items", json::array()},
                     {"files", json::array({existing_file(file)})},
                     {"dragOperationsMask", 1}};
  const Point point = spot(element, {});
  for (const char* type : {"dragEnter", "dragOver", "drop"}) {
    call("Input.dispatchDragEvent",
         {{"type", type}, {"x", point.x}, {"y", point.y}, {"data", data}});
  }
}

void Page::resize(int width, int height, double scale, bool mobile) {
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", scale}, {"mobile", mobile}});
  call("Emulation.setTouchEmulationEnabled", {{"enabled", mobile}});
}

void Page::set_media(Media media) {
  const auto feature = [](const char* name, const char* value) {
    return json{{"name", name}, {"value", value}};
  };
  call("Emulation.setEmulatedMedia",
       {{"media", media.print ? "print" : "screen"},
        {"features", json::array({feature("prefers-color-scheme", media.dark ? "dark" : "light"),
                                  feature("prefers-reduced-motion",
                                          media.still ? "reduce" : "no-preference")})}});
}

void Page::screenshot(const std::filesystem::path& file, bool whole) {
  const json picture =
      call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", whole}});
  write_bytes(file, decoded(picture.at("data").get<std::string>()));
}

void Page::catch_up() {
  if (lost_.empty()) call("Runtime.evaluate", {{"expression", "0"}});
}

std::vector<std::string> Page::console_errors() {
  catch_up();
  return errors_;
}

std::vector<std::string> Page::requests() {
  catch_up();
  return requests_;
}

json Page::accessibility() {
  return call("Accessibility.getFullAXTree").at("nodes");
}

}  // namespace tilestep::tests
