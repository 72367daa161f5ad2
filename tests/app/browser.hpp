#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/app/child.hpp"

/// Pages in a real Chromium without a window, driven over its DevTools protocol, with real keys and a real pointer. All
/// that fails or comes too late is a std::runtime_error which says what was awaited and which errors the page has had.
namespace tilestep::tests {

/// Nothing a browser does is waited for longer, unless a test says so.
inline constexpr std::chrono::milliseconds kBrowserLimit = std::chrono::seconds(60);

/// A place in an element, in shares of its width and height.
struct Share {
  double across = 0.5, down = 0.5;
};

struct Media {
  bool dark = false;   ///< prefers-color-scheme
  bool still = false;  ///< prefers-reduced-motion
  bool print = false;
};

class Browser;

/// A page of 1280 x 800 pixels. Elements are named by CSS selectors, the first that fits counts.
class Page {
 public:
  /// Closes it.
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// A URL, or a file with what an address may have behind it: `site/index.html#tiles`. Waits until it is loaded, or
  /// until it has moved where only what is behind `#` is new.
  void open(const std::string& where);
  void reload();

  /// What an expression in JavaScript yields, once its promise is kept. What it throws is thrown.
  nlohmann::json evaluate(const std::string& expression,
                          std::chrono::milliseconds limit = kBrowserLimit);
  /// Evaluates it again and again until it yields what counts as true. While it throws, or another page is loaded, it
  /// does not.
  bool becomes(const std::string& expression, std::chrono::milliseconds limit = kBrowserLimit);
  /// The same, and throws if it does not.
  void wait_for(const std::string& expression, std::chrono::milliseconds limit = kBrowserLimit);

  /// `a`, `?`, `Enter`, `Space`, `ArrowRight`, `F5`, … on a US keyboard, after `Shift+`, `Control+`, `Alt+` or `Meta+`.
  void press(const std::string& keys);
  /// Each character by its key; those that a US keyboard lacks as an input method enters them.
  void type(const std::string& text);

  // Each waits until the element is there and still, scrolls to it if it has to, and throws if the pointer would meet
  // another one there.
  void point_at(const std::string& element, Share at = {});
  void click(const std::string& element, Share at = {});
  /// Drags a file from outside there and drops it.
  void drop_file(const std::string& element, const std::filesystem::path& file);

  /// In CSS pixels, each of `scale` pixels of the screen. `mobile`: with a finger, scroll bars on top of the page, and
  /// `<meta name=viewport>` counts.
  void resize(int width, int height, double scale = 1, bool mobile = false);
  void set_media(Media media);

  /// As PNG; `whole`: with what is out of sight too.
  void screenshot(const std::filesystem::path& file, bool whole = false);

  /// Errors and warnings so far: of the console, uncaught exceptions, what the browser logged (CSP, files that are
  /// missing), dialogs, which are accepted at once. Those of workers and frames too.
  std::vector<std::string> console_errors();
  /// The URLs that it, its workers and its frames asked for so far, without its own and without data: and blob:.
  std::vector<std::string> requests();
  /// The nodes of the accessibility tree.
  nlohmann::json accessibility();

  /// Any other method of the protocol.
  nlohmann::json call(const std::string& method,
                      nlohmann::json parameters = nlohmann::json::object(),
                      std::chrono::milliseconds limit = kBrowserLimit);

 private:
  friend class Browser;
  using Moment = std::chrono::steady_clock::time_point;
  struct Point {
    double x = 0, y = 0;
  };

  Page(Browser& browser, std::string context);
  /// The protocol's answer, or nothing after `end`.
  std::optional<nlohmann::json> answer(const std::string& method, nlohmann::json parameters,
                                       Moment end);
  /// Why it did not become true.
  std::optional<std::string> unmet(const std::string& expression, std::chrono::milliseconds limit);
  template <class Condition>
  void wait_until(const Condition& met, const std::string& what);
  std::string late(const std::string& what, std::chrono::milliseconds limit) const;
  /// Errors and requests of all that was done have come.
  void catch_up();
  Point spot(const std::string& element, Share at);
  void mouse(const char* what, Point at, bool down);
  void take(const std::string& method, const nlohmann::json& event);

  Browser& browser_;
  std::string context_, target_, session_, frame_;
  std::string loaded_;  ///< the last document whose load event has come
  int moves_ = 0;       ///< within a document
  std::string lost_;    ///< why it will not answer any more
  std::vector<std::string> errors_, requests_;
};

/// Chromium with a home, a profile and temporary files of its own, which are gone with it, as all its processes are.
/// It reaches no other machine. Pages must be gone before it.
class Browser {
 public:
  /// Looked up in PATH.
  explicit Browser(const std::string& program);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// A page that knows nothing of the others: it has a storage of its own.
  std::unique_ptr<Page> page();
  /// Another tab: it has the same storage.
  std::unique_ptr<Page> page_beside(const Page& other);

  pid_t pid() const;
  /// `Chrome/156.0.8078.108`
  const std::string& version() const { return version_; }

 private:
  friend class Page;
  class Process;
  using Moment = std::chrono::steady_clock::time_point;

  /// Sends it. Its answer is kept until it is awaited.
  int ask(const std::string& session, const std::string& method, nlohmann::json parameters);
  /// Sends it. Its answer is of no interest.
  void tell(const std::string& session, const std::string& method, nlohmann::json parameters);
  /// Nothing after `end`. `page` may be null.
  std::optional<nlohmann::json> await(int id, Moment end, const Page* page);
  nlohmann::json call(const std::string& method, nlohmann::json parameters);
  /// Takes what the browser says next. False: it is `end`.
  bool listen(Moment end);
  void take(const nlohmann::json& message);
  void attach(const std::string& session, Page& page);
  void forget(const Page& page);

  std::unique_ptr<Process> process_;
  std::string version_;
  int last_id_ = 0;
  std::map<int, std::optional<nlohmann::json>> answers_;  ///< those that are or will be awaited
  std::map<std::string, Page*> pages_;  ///< by session; workers and frames have their page's
  std::string received_;
  std::size_t searched_ = 0;  ///< so much of received_ has no end of a message
};

/// Says why and answers nothing, where pages cannot be tested.
std::unique_ptr<Browser> make_browser();

}  // namespace tilestep::tests
