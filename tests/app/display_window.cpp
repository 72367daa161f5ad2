#include "tests/app/display_window.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "tests/skip.hpp"

namespace tilestep::tests {

using namespace std::chrono_literals;
using nlohmann::json;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// ---- the display -----------------------------------------------------------------------------------

// No auto-repeat: on a busy machine a key may stay down long enough to be typed twice.
Display::Display(const std::string& screen)
    : server_({"sh", "-c",
               "exec Xvfb -displayfd 1 -r -screen 0 " + screen + " -nolisten tcp -noreset"}) {
  if (const auto number = server_.read_line(30s)) name_ = ":" + *number;
}

std::string Display::tool(std::vector<std::string> words) const {
  words.insert(words.begin(), "xdotool");
  Child tool(words, {{"DISPLAY", name_}});
  tool.finish(30s);
  return tool.out();
}

std::unique_ptr<Display> make_display(const std::string& screen) {
  for (const char* tool : {"Xvfb", "xdotool"}) {
    if (has_program(tool)) continue;
    skip(std::string("the window is not tested: there is no ") + tool + " here");
    return nullptr;
  }
  auto display = std::make_unique<Display>(screen);
  if (!display->name().empty()) return display;
  skip("the window is not tested: Xvfb does not start here");
  return nullptr;
}

// ---- the window ------------------------------------------------------------------------------------

Window::Window(const Display& display, const std::vector<std::string>& arguments,
               const std::string& program, const std::filesystem::path& home)
    : display_(display), map_file_(folder_.path() / "map.json") {
  std::vector<std::string> words = {program};
  if (arguments.empty() || arguments[0] != "open") {
    words.insert(words.end(), {"open", "online-softmax", "--questions", "off"});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Tests read the map alone: with LP_NO_RAST Mesa's software driver fills no pixels, which is most of its work.
  program_ = std::make_unique<Child>(
      words, Environment{{"DISPLAY", display.name()},
                         {"WAYLAND_DISPLAY", ""},
                         {"LIBGL_ALWAYS_SOFTWARE", "1"},
                         {"LP_NO_RAST", "1"},
                         {"HOME", (home.empty() ? folder_.path() : home).string()},
                         {"XDG_CONFIG_HOME", ""},
                         {"XDG_STATE_HOME", ""},
                         {"TILESTEP_UI_MAP", map_file_.string()}});
}

const json& Window::map() const {
  std::string text = file_text(map_file_);
  if (text != text_) {
    map_ = json::parse(text, nullptr, false);
    text_ = std::move(text);
  }
  return map_;
}

namespace {

std::optional<json> part_of(const json& map, const std::string& id) {
  if (!map.is_object()) return std::nullopt;
  const json& parts = map.at("parts");
  const auto it = std::find_if(parts.begin(), parts.end(),
                               [&](const json& part) { return part.at("id") == id; });
  return it == parts.end() ? std::nullopt : std::optional<json>(*it);
}

int frame_of(const json& map) {
  return map.is_object() ? map.value("frame", 0) : 0;
}

}  // namespace

int Window::step() const {
  const json& now = map();
  return now.is_object() ? now.value("step", -1) : -1;
}

std::optional<json> Window::part(const std::string& words) const {
  const json& now = map();
  if (!now.is_object()) return std::nullopt;
  const std::string wanted = lower(words);
  for (const json& one : now.at("parts")) {
    const std::string names =
        one.at("label").get<std::string>() + "\n" + one.at("id").get<std::string>();
    if (lower(names).find(wanted) != std::string::npos) return one;
  }
  return std::nullopt;
}

std::optional<json> Window::at(const std::string& id) const {
  return part_of(map(), id);
}

// As many frames as the window draws after an event.
constexpr int kFramesAnEvent = 3;

bool Window::answered(const json& map) const {
  // A pointer that moves to where it is, or a key that another window has, is no event.
  const bool lost = std::chrono::steady_clock::now() - sent_ > 1s;
  return lost || frame_of(map) >= frame_ + kFramesAnEvent;
}

std::optional<json> Window::steady(const std::string& id) const {
  std::optional<json> known;
  int since = 0;
  const bool steady = eventually(
      [&] {
        const json& now = map();
        if (!answered(now)) return false;
        auto part = part_of(now, id);
        if (!part || part != known) {
          known = std::move(part);
          since = frame_of(now);
        }
        return known && is_whole(*known) &&
               (now.value("idle", false) || frame_of(now) >= since + kFramesAnEvent);
      },
      10s);
  return steady ? known : std::nullopt;
}

std::string Window::label(const std::string& id) const {
  const auto part = at(id);
  return part ? part->at("label").get<std::string>() : std::string();
}

std::string Window::value(const std::string& id) const {
  const auto part = at(id);
  return part ? part->at("value").get<std::string>() : std::string();
}

bool Window::says(const std::string& words) const {
  return lower(file_text(map_file_)).find(lower(words)) != std::string::npos;
}

void Window::focus() {
  id_ = display_.tool(
      {"search", "--sync", "--onlyvisible", "--pid", std::to_string(program_->pid())});
  id_ = id_.substr(0, id_.find('\n'));
  display_.tool({"windowfocus", "--sync", id_});
}

void Window::input(const std::vector<std::string>& words) {
  frame_ = frame_of(map());
  sent_ = std::chrono::steady_clock::now();
  display_.tool(words);
}

void Window::press(const std::string& key) {
  input({"key", key});
}

void Window::type(const std::string& text) {
  // What comes before a field has the focus is a shortcut, or nothing.
  eventually([&] { return answered(map()); });
  input({"type", "--delay", "4", text});
}

void Window::hold(const std::string& key) {
  input({"keydown", key});
}

void Window::let_go(const std::string& key) {
  input({"keyup", key});
}

std::vector<std::string> Window::move_to(Spot spot) const {
  const auto pixel = [](double at) { return std::to_string(static_cast<int>(std::floor(at))); };
  return {"mousemove", "--window", id_, pixel(spot.x), pixel(spot.y)};
}

void Window::point_at(Spot spot) {
  input(move_to(spot));
}

void Window::click(const json& part) {
  std::vector<std::string> words = move_to(inside(part));
  words.insert(words.end(), {"click", "1"});
  input(words);
}

bool Window::click_on(const std::string& id) {
  const auto part = steady(id);
  if (part) click(*part);
  return part.has_value();
}

void Window::take_hold(Spot spot) {
  std::vector<std::string> words = move_to(spot);
  words.insert(words.end(), {"mousedown", "1"});
  input(words);
}

void Window::let_go() {
  input({"mouseup", "1"});
}

void Window::scroll(Spot spot, int notches) {
  std::vector<std::string> words = move_to(spot);
  words.insert(words.end(), {"click", "--repeat", std::to_string(std::abs(notches)), "--delay", "2",
                             notches > 0 ? "5" : "4"});
  input(words);
}

bool is_whole(const json& part) {
  const auto area = [&part](const char* name) {
    const json& rect = part.at(name);
    return rect[2].get<double>() * rect[3].get<double>();
  };
  return area("rect") >= 0.9 * area("raw");
}

Spot inside(const json& part, double across, double down) {
  const json& rect = part.at("rect");
  const auto along = [&rect](std::size_t axis, double share) {
    return rect[axis].get<double>() + rect[axis + 2].get<double>() * share;
  };
  return {along(0, across), along(1, down)};
}

}  // namespace tilestep::tests
