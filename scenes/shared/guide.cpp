#include "scenes/shared/guide.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/sentence.hpp"

namespace tilestep::scenes {
namespace {

constexpr std::string_view kTry = "try:", kLight = "light:";

using lab::trimmed;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

[[noreturn]] void fail(int line, std::string_view sentence) {
  throw Error(fmt::format("line {} of the text: {}", line, sentence));
}

/// Calls `act`; an Error that it throws names the line.
template <class Act>
auto at_line(int line, const Act& act) {
  try {
    return act();
  } catch (const Error& error) {
    fail(line, error.what());
  }
}

std::vector<std::string> knob_ids(const lab::Knobs& knobs) {
  std::vector<std::string> ids;
  for (const lab::Knob& knob : knobs) ids.push_back(knob.id);
  return ids;
}

std::string one_of(std::string_view word, std::string_view value,
                   const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    throw Error(
        fmt::format("{} is '{}', but must be one of {}", word, value, fmt::join(allowed, ", ")));
  }
  return std::string(value);
}

int step_of(std::string_view value) {
  const auto step = lab::number_of<int>(value);
  if (!step || *step < 0) {
    throw Error(fmt::format("step is '{}', but must be a whole number from 0", value));
  }
  return *step;
}

/// What a stop's comment says, without the word stop.
GuideStop stop_of(std::string_view words, const lab::Knobs& knobs) {
  GuideStop stop;
  std::set<std::string, std::less<>> seen;
  for (const std::string_view word : split(words, ' ')) {
    const std::size_t equals = word.find('=');
    const std::string_view id = word.substr(0, equals);
    static const std::set<std::string, std::less<>> own = {
        "step", "phase", "light", "kind", "tab", "view", "filter", "ask", "rescale"};
    const bool known = own.count(id) > 0;
    const std::vector<std::string> ids = knob_ids(knobs);
    if (equals == std::string_view::npos ||
        (!known && std::find(ids.begin(), ids.end(), id) == ids.end())) {
      throw Error(
          fmt::format("a stop has no '{}'; it may have step=, phase=, light=, kind=, tab=, view=, "
                      "filter=, ask=, rescale= and the knobs {}",
                      word, fmt::join(ids, ", ")));
    }
    if (!seen.emplace(id).second)
      throw Error(fmt::format("a stop says {} twice; once is allowed", id));
    const std::string_view value = word.substr(equals + 1);
    if (id == "step") {
      stop.step = step_of(value);
    } else if (id == "phase") {
      stop.phase = value;
    } else if (id == "light") {
      for (const std::string_view key : split(value, ',')) stop.light.emplace_back(key);
    } else if (id == "kind") {
      stop.kind = one_of("kind", value, guide_kinds());
    } else if (id == "tab") {
      stop.tab = one_of("tab", value, guide_tabs());
    } else if (id == "view") {
      stop.view = value;
      std::replace(stop.view.begin(), stop.view.end(), '_', ' ');
    } else if (id == "filter") {
      const std::size_t colon = value.find(':');
      if (colon == std::string_view::npos) {
        throw Error(
            fmt::format("filter is '{}', but must be the filter's id and a value, as "
                        "measured_size:4096",
                        value));
      }
      stop.filter = value.substr(0, colon);
      stop.filtered = value.substr(colon + 1);
      std::replace(stop.filtered.begin(), stop.filtered.end(), '_', ' ');
    } else if (id == "ask") {
      stop.ask = value;
    } else if (id == "rescale") {
      for (const std::string_view axis : split(value, ',')) stop.rescales.emplace_back(axis);
    } else {
      knobs.set(stop.settings, word);
    }
  }
  if (!stop.ask.empty() && (stop.step == 0 || !stop.phase.empty())) {
    throw Error("ask= is about a whole step: it needs step= from 1 and no phase=");
  }
  return stop;
}

/// Where the code that begins at `at` ends, one character past it: between as many backticks.
std::size_t after_code(std::string_view text, std::size_t at) {
  const std::size_t inside = std::min(text.find_first_not_of('`', at), text.size());
  const std::string_view fence = text.substr(at, inside - at);
  const std::size_t end = text.find(fence, inside);
  return end == std::string_view::npos ? inside : end + fence.size();
}

/// The place of the bracket that closes the one at `at`; npos: none.
std::size_t closing(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '`') {
      at = after_code(text, at);
      continue;
    }
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
    ++at;
  }
  return std::string_view::npos;
}

/// Reads a lesson's text line by line.
class Reader {
 public:
  explicit Reader(const lab::Knobs& knobs) : knobs_(knobs) {}

  Guide read(std::string_view markdown) {
    for (std::size_t at = 0; at < markdown.size();) {
      const std::size_t end = std::min(markdown.find('\n', at), markdown.size());
      ++line_;
      take(markdown.substr(at, end - at));
      at = end + 1;
    }
    if (pending_) no_heading();
    finish();
    return std::move(guide_);
  }

 private:
  void take(std::string_view text) {
    const std::string_view bare = trimmed(text);
    if (bare.starts_with("```")) in_code_ = !in_code_;
    if (!in_code_ && bare.starts_with("<!--")) return comment(bare);
    if (pending_) return heading(bare);
    (part_ += text) += '\n';
  }

  void comment(std::string_view text) {
    if (pending_) no_heading();
    const std::string_view inside =
        text.ends_with("-->") ? trimmed(text.substr(4, text.size() - 7)) : std::string_view();
    if (course_word(inside)) return;
    if (!inside.starts_with("stop:") && inside != "more") {
      fail(line_,
           "a comment must stand on its own line and be <!-- stop: … --> or <!-- more -->, or in "
           "the introduction <!-- before: … --> or <!-- after: … -->");
    }
    if (more_) fail(line_, "after <!-- more --> there are no stops and no second <!-- more -->");
    finish();
    more_ = inside == "more";
    if (more_) return;
    pending_ = at_line(line_, [&] { return stop_of(inside.substr(5), knobs_); });
    stop_line_ = line_;
  }

  /// What the course says of the lesson. False where this is not about it.
  bool course_word(std::string_view inside) {
    for (const auto& [word, member] :
         {std::pair("before:", &Guide::before), std::pair("after:", &Guide::after)}) {
      if (!inside.starts_with(word)) continue;
      std::string& target = guide_.*member;
      if (!guide_.stops.empty() || !target.empty()) {
        fail(line_, fmt::format("<!-- {} … --> must stand once, before the first stop", word));
      }
      target = trimmed(inside.substr(std::string_view(word).size()));
      return true;
    }
    return false;
  }

  void heading(std::string_view text) {
    if (!text.starts_with("## ") && !text.starts_with("### ")) no_heading();
    pending_->title = trimmed(text.substr(text.find(' ')));
    guide_.stops.push_back(std::move(*pending_));
    pending_.reset();
    first_line_ = line_ + 1;
  }

  /// The part that was read until here goes where it belongs.
  void finish() {
    const bool of_stop = !guide_.stops.empty() && !more_;
    for (const GuideLink& link : links_of(part_)) take_link(link, of_stop);
    const std::string_view bare = trimmed(part_);
    std::string& target = more_ ? guide_.more : of_stop ? guide_.stops.back().text : guide_.intro;
    if (!bare.empty()) target = std::string(bare) + "\n";
    if (of_stop && !guide_.stops.back().rescales.empty()) {
      target += "\n" + guide_.stops.back().says_new_ranges() + "\n";
    }
    part_.clear();
    first_line_ = line_ + 1;
  }

  void take_link(const GuideLink& link, bool of_stop) {
    const int line = first_line_ + link.line - 1;
    const std::string_view target = link.target;
    const bool chip = target.starts_with(kTry), light = target.starts_with(kLight);
    if (!chip && !light && !target.starts_with("https://") && !target.starts_with("http://")) {
      fail(line,
           fmt::format("a link to '{}' is not one of try:, light:, https:// and http://", target));
    }
    if ((chip || light) && !of_stop) {
      fail(line,
           fmt::format("'{}' needs a scene: try: and light: stand in the text of a stop, before "
                       "<!-- more -->",
                       target));
    }
    if (light && trimmed(target.substr(kLight.size())).empty()) {
      fail(line, "light: names no key of the picture; write light:m or light:score_5");
    }
    if (chip) {
      guide_.stops.back().tries.push_back(
          {link.label, at_line(line, [&] { return try_settings(target, knobs_); })});
    }
  }

  [[noreturn]] void no_heading() const {
    fail(stop_line_, "the line after a stop must be its heading: ## and a title");
  }

  const lab::Knobs& knobs_;
  Guide guide_;
  std::optional<GuideStop> pending_;  ///< its heading is to come
  std::string part_;                  ///< what was read since the last comment or heading of a stop
  int line_ = 0, stop_line_ = 0, first_line_ = 1;  ///< now, of the last stop, of `part_`
  bool in_code_ = false, more_ = false;
};

}  // namespace

const std::vector<std::string>& guide_kinds() {
  static const std::vector<std::string> kinds = {"misconception", "surprise", "limits"};
  return kinds;
}

const std::vector<std::string>& guide_tabs() {
  static const std::vector<std::string> tabs = {"data", "measured", "kernel"};
  return tabs;
}

Guide parse_guide(std::string_view markdown, const lab::Knobs& knobs) {
  return Reader(knobs).read(markdown);
}

std::vector<std::string> GuideStop::subject() const {
  std::vector<std::string> keys = light;
  for (const GuideLink& link : links_of(text)) {
    if (link.target.starts_with(kLight)) keys.push_back(link.target.substr(kLight.size()));
  }
  return keys;
}

std::string GuideStop::says_new_ranges() const {
  std::vector<std::string> names = rescales;
  for (std::string& name : names) {
    if (name == "l") name = "ℓ";
    std::replace(name.begin(), name.end(), '_', ' ');
  }
  return fmt::format("New axis range: {}.", fmt::join(names, ", "));
}

int phase_of(const GuideStop& stop, const std::vector<std::string>& names) {
  const std::string& value = stop.phase;
  const auto place = lab::number_of<int>(value);
  if (place && *place >= 0 && *place < std::ssize(names)) return *place;
  std::string name = value;
  std::replace(name.begin(), name.end(), '_', ' ');
  const auto fits = [&](const std::string& each) { return each == name || each == value; };
  const auto found = std::find_if(names.begin(), names.end(), fits);
  if (found == names.end() || std::count_if(names.begin(), names.end(), fits) > 1) {
    throw Error(
        fmt::format("phase is '{}', but must be a number from 0 to {} or, where it is the only "
                    "one of that name, one of {}",
                    value, std::ssize(names) - 1, fmt::join(names, ", ")));
  }
  return static_cast<int>(found - names.begin());
}

Cursor cursor_at(const GuideStop& stop, const StepAxis& steps) {
  const int tile = std::clamp(stop.step, 0, std::max(steps.tiles, 0));
  const int last = steps.last_phase(tile);
  const bool inside = stop.step > 0 && stop.step <= steps.tiles && !stop.phase.empty();
  if (!inside) return {tile, last};
  try {
    return {tile, std::min(phase_of(stop, steps.phase_names), last)};
  } catch (const Error&) {
    return {tile, 0};
  }
}

Cursor asked_at(const GuideStop& stop, const StepAxis& steps) {
  GuideStop before = stop;
  before.step = std::max(std::min(stop.step, steps.tiles) - 1, 0);
  return cursor_at(before, steps);
}

std::string_view lesson_text(std::string_view lesson) {
  const std::string file = fmt::format("/{}.md", lesson);
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path.starts_with("assets/lessons/") && asset.path.ends_with(file)) return asset.text;
  }
  throw Error(fmt::format("the text of '{}' was not built into this program", lesson),
              ExitCode::unavailable);
}

std::vector<GuideLink> links_of(std::string_view markdown) {
  std::vector<GuideLink> links;
  for (std::size_t at = 0; at < markdown.size();) {
    if (markdown[at] == '`') {
      at = after_code(markdown, at);
      continue;
    }
    const std::size_t end =
        markdown[at] == '[' ? closing(markdown, at, '[', ']') : std::string_view::npos;
    const bool link =
        end != std::string_view::npos && end + 1 < markdown.size() && markdown[end + 1] == '(';
    const std::size_t last = link ? closing(markdown, end + 1, '(', ')') : std::string_view::npos;
    if (last == std::string_view::npos) {
      ++at;
      continue;
    }
    const auto before = markdown.substr(0, at);
    links.push_back({std::string(markdown.substr(at + 1, end - at - 1)),
                     std::string(trimmed(markdown.substr(end + 2, last - end - 2))),
                     1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'))});
    at = last + 1;
  }
  return links;
}

lab::Settings try_settings(std::string_view target, const lab::Knobs& knobs) {
  if (target.starts_with(kTry)) target.remove_prefix(kTry.size());
  lab::Settings settings;
  for (const std::string_view assignment : split(target, '&')) knobs.set(settings, assignment);
  if (settings.empty()) {
    throw Error(fmt::format("a chip sets at least one knob, as try:{}=…",
                            knobs.all().empty() ? "knob" : knobs.all().front().id));
  }
  return settings;
}

}  // namespace tilestep::scenes
