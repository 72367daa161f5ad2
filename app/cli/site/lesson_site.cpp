#include "app/cli/site/lesson_site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "app/cli/chart_svg.hpp"
#include "app/cli/html.hpp"
#include "app/cli/report_text.hpp"
#include "app/cli/site/flip_book.hpp"
#include "app/cli/site/pack.hpp"
#include "app/keep/guided.hpp"
#include "app/keep/link.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/glossary.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/stage/measured_plots.hpp"
#include "scenes/ui/syntax.hpp"

namespace tilestep::app {
namespace {

using nlohmann::json;
namespace measured = scenes::measured;

/// Of a picture beside its text, and of one on a phone held upright.
constexpr picture::Point kWide{660, 410}, kNarrow{318, 430};
constexpr picture::Point kCard{480, 270};
/// What is longer is in `tilestep run --csv`.
constexpr std::size_t kMostRows = 100;
/// Values of a number that a slider has.
constexpr int kMostValues = 5;
/// Pictures of a run that a stop shows, and of one that a chip or a slider leads to. Of a longer run there are those round
/// the stop and the ends of some steps.
constexpr std::size_t kMostPlaces = 96, kFewPlaces = 8;

/// A run, with what is drawn of it.
struct Run {
  lab::Report report;
  std::unique_ptr<scenes::Scene> scene;
  scenes::StepAxis axis;
  std::map<std::string, int> books;  ///< by size and what is aside
};

/// At most so many places of a run: all, or the first and those round `at` phase by phase, and ends of steps between.
std::vector<int> places_of(const scenes::StepAxis& axis, int at, std::size_t most) {
  const int last = axis.places();
  std::set<int> chosen = {0, at, last};
  if (static_cast<std::size_t>(last) < most) {
    for (int place = 0; place <= last; ++place) chosen.insert(place);
  }
  const int near = static_cast<int>(most) / 4;
  const auto add = [&](int place) {
    if (place >= 0 && place <= last && chosen.size() < most) chosen.insert(place);
  };
  for (int k = 1; k <= near; ++k) {
    for (const int place : {k, at - k, at + k}) {
      if (near > 2) add(place);
    }
  }
  const auto rest = static_cast<int>(most - chosen.size()) + 1;
  for (int k = 1; k < rest; ++k) {
    const int tile = axis.tiles * k / rest;
    add(axis.place_of({tile, axis.last_phase(tile)}));
  }
  return {chosen.begin(), chosen.end()};
}

/// A shot of a run in the page: books for both sizes and the place in it.
struct Seen {
  int run = -1, wide = -1, narrow = -1, place = 0;
};

json to_json(const Seen& seen) {
  return {{"run", seen.run}, {"wide", seen.wide}, {"narrow", seen.narrow}, {"place", seen.place}};
}

class Maker {
 public:
  Maker(const lab::Lesson& lesson, const SvgPress& press, const SiteOptions& options,
        lab::Progress& progress)
      : lesson_(lesson),
        id_(lesson.info().id),
        press_(press),
        options_(options),
        progress_(progress),
        guide_(guide_of(id_)) {}

  LessonSite make();

 private:
  Run* run(const lab::Settings& settings, std::string& why_not);
  Seen seen(const lab::Settings& settings, const std::vector<std::string>& subject,
            const std::function<scenes::Cursor(const scenes::StepAxis&)>& at, std::size_t most,
            std::string& why_not);
  int book(int run, const Shot& shot, std::size_t most);
  json stop(const scenes::GuideStop& where, std::size_t number);
  json question(const scenes::Question& question, const picture::Picture* picture) const;
  json run_json(const Run& run) const;
  json table_json(const Run& run, const lab::Table& table) const;
  int chart(const scenes::GuideStop& where);
  json explore();
  std::string card();
  std::string stop_html(const scenes::GuideStop& where, std::size_t number);
  std::string text_html(std::string_view markdown, const scenes::GuideStop* where);
  std::string next_html(std::size_t number) const;
  std::string kernels_html() const;
  std::string exercises_html() const;
  /// An element that holds data and is never run.
  std::string block(const std::string& name, const json& data) const {
    return fmt::format("<script type=\"text/x-tilestep\" id=\"{}-{}\">{}</script>\n", id_, name,
                       packed(data));
  }

  const lab::Lesson& lesson_;
  const std::string id_;
  const SvgPress& press_;
  const SiteOptions& options_;
  lab::Progress& progress_;
  const scenes::Guide guide_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::map<std::string, int> numbers_;          ///< of runs, by their settings
  std::map<std::string, std::string> refused_;  ///< why there is no run of these settings
  ThingNames names_;
  std::vector<std::unique_ptr<FlipBook>> books_;
  std::map<std::string, int> charts_;  ///< by view and filter
  json chart_list_ = json::array();
  std::set<std::string> asked_;  ///< questions, each once on a path
  std::set<std::string> kernels_;
  std::string blocks_;
  LessonSite site_;
};

// ---- runs and their pictures -----------------------------------------------------------------------

Run* Maker::run(const lab::Settings& settings, std::string& why_not) {
  std::string key;
  try {
    key = lab::to_json(lesson_.knobs().completed(settings)).dump();
    if (const auto known = numbers_.find(key); known != numbers_.end()) {
      return runs_[static_cast<std::size_t>(known->second)].get();
    }
    if (const auto known = refused_.find(key); known != refused_.end()) {
      why_not = known->second;
      return nullptr;
    }
    progress_.check();
    lab::Request request{id_, settings, lab::Request::Action::run, options_.backend};
    auto made = std::make_unique<Run>();
    try {
      made->report = ask(options_.lab, request, progress_);
    } catch (const Cancelled&) {
      throw;
    } catch (const Error&) {
      if (options_.backend != "recorded") throw;
      request.backend = "emulated";  // of these settings there is no recording
      made->report = ask(options_.lab, request, progress_);
    }
    made->scene = scene_of(made->report);
    made->axis = made->scene->steps();
    numbers_[key] = static_cast<int>(runs_.size());
    runs_.push_back(std::move(made));
    return runs_.back().get();
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    why_not = error.what();
    if (!key.empty()) refused_[key] = why_not;
    return nullptr;
  }
}

int Maker::book(int number, const Shot& shot, std::size_t most) {
  Run& of = *runs_[static_cast<std::size_t>(number)];
  auto made = std::make_unique<FlipBook>(press_, *of.scene, names_, shot);
  const int at = of.axis.place_of(shot.cast_at);
  std::string key = fmt::format("{:g} {}", shot.size.x, most);
  for (const picture::Key& aside : made->aside()) key += " " + picture::to_text(aside);
  const auto [known, fresh] = of.books.try_emplace(key, static_cast<int>(books_.size()));
  if (fresh) books_.push_back(std::move(made));
  // Of a long run there are other places round another stop.
  for (const int place : places_of(of.axis, at, fresh ? most : most / 4)) {
    progress_.check();
    books_[static_cast<std::size_t>(known->second)]->add(place);
    ++site_.pictures;
  }
  return known->second;
}

Seen Maker::seen(const lab::Settings& settings, const std::vector<std::string>& subject,
                 const std::function<scenes::Cursor(const scenes::StepAxis&)>& at, std::size_t most,
                 std::string& why_not) {
  Seen made;
  const Run* of = run(settings, why_not);
  if (of == nullptr) return made;
  made.run = numbers_.at(lab::to_json(lesson_.knobs().completed(settings)).dump());
  const scenes::Cursor cursor = at(of->axis);
  made.place = of->axis.place_of(cursor);
  // There is no pointer on a phone, and what chips and sliders lead to is to be compared, not to be studied.
  made.wide = book(made.run, {subject, cursor, kWide, most == kMostPlaces}, most);
  made.narrow = book(made.run, {subject, cursor, kNarrow, false}, most);
  return made;
}

/// Everything of a run but its pictures.
json Maker::run_json(const Run& run) const {
  const lab::Report& report = run.report;
  const scenes::StepAxis& axis = run.axis;
  json tables = json::array();
  for (const lab::Table& table : report.tables) tables.push_back(table_json(run, table));
  json checks = json::array();
  for (const lab::Check& check : report.checks) {
    checks.push_back({check.id, check.ok, number_words(check.max_error),
                      number_words(check.tolerance), check.detail});
  }
  json measurements = json::array();
  for (const lab::Measurement& m : report.measurements) {
    measurements.push_back({m.id, m.variant, value_words(m), provenance_words(m, report), m.detail,
                            m.samples > 0 || m.provenance == lab::Provenance::recorded});
  }
  json events = json::array();
  for (const scenes::Event& event : run.scene->events()) {
    events.push_back({axis.place_of(event.at), event.text});
  }
  return {{"steps",
           {{"tiles", axis.tiles},
            {"phases", std::max(axis.phases, 1)},
            {"folded", axis.folded},
            {"noun", axis.noun},
            {"names", axis.phase_names},
            {"unit", axis.unit},
            {"ends", axis.unit_ends}}},
          {"summary", report.summary},
          {"device", device_words(report)},
          {"tables", std::move(tables)},
          {"checks", std::move(checks)},
          {"measurements", std::move(measurements)},
          {"events", std::move(events)}};
}

/// With the place from which each cell is known: the page hides it before.
json Maker::table_json(const Run& run, const lab::Table& table) const {
  json columns = json::array(), rows = json::array(), known = json::array();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const lab::Column& column = table.columns[c];
    const bool words = std::any_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
      return std::holds_alternative<std::string>(row[c]);
    });
    columns.push_back({column.label, column.unit, !words});
  }
  const std::size_t shown = std::min(table.rows.size(), kMostRows);
  for (std::size_t r = 0; r < shown; ++r) {
    json cells = json::array(), places = json::array();
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      cells.push_back(table.text(r, c));
      places.push_back(
          run.axis.place_of(run.scene->known(table, static_cast<int>(r), static_cast<int>(c))));
    }
    rows.push_back(std::move(cells));
    known.push_back(std::move(places));
  }
  return {{"id", table.id},          {"title", table.title},      {"columns", std::move(columns)},
          {"rows", std::move(rows)}, {"known", std::move(known)}, {"all", table.rows.size()}};
}

// ---- questions, charts -----------------------------------------------------------------------------

/// A number to be set has the ends of its axis; `picture`: where that is.
json Maker::question(const scenes::Question& question, const picture::Picture* picture) const {
  json made = {
      {"text", question.text},       {"choices", question.choices},
      {"answer", question.answer},   {"said", scenes::lowered(scenes::answer_text(question))},
      {"because", question.because}, {"masks", question.masks}};
  if (!question.choices.empty()) return made;
  const double truth = question.values.front();
  std::pair<double, double> ends{0, 2 * truth + 1};
  if (picture != nullptr) {
    for (const picture::Axis& axis : picture->axes) {
      if (axis.name == question.axis) ends = {axis.low, axis.high};
    }
  }
  made["truth"] = truth;
  made["tolerance"] = question.tolerance;
  made["low"] = ends.first;
  made["high"] = ends.second;
  return made;
}

/// The number of a chart in the page, by its stop's view and filter; −1: there is none.
int Maker::chart(const scenes::GuideStop& where) {
  const auto key = fmt::format("{}\n{}\n{}", where.view, where.filter, where.filtered);
  if (const auto known = charts_.find(key); known != charts_.end()) return known->second;
  const Run& run = *runs_.front();
  const measured::Spec spec = run.scene->measured_spec();
  json made = {{"name", where.view}};
  std::string alt;
  for (const auto& [theme, name] :
       {std::pair{ui::ThemeKind::dark, "dark"}, {ui::ThemeKind::light, "light"}}) {
    auto chart = chart_of(spec, run.report, id_, where, theme);
    for (const measured::View& view : spec.views) {
      if (chart || view.name != where.view) continue;
      const lab::Report* of = measured::bench_of(run.report, id_, view.needs, view.computed);
      for (const measured::Plot& plot : view.plots) {
        const auto* drawn = std::get_if<measured::Pictured>(&plot);
        if (of == nullptr || drawn == nullptr || chart) continue;
        const picture::Picture picture = drawn->picture(measured::rows_of(drawn->rows, *of));
        chart = Chart{press_.draw(picture, theme),
                      fmt::format("{}: {}; {}.", picture::plain(picture.headline.full), view.how,
                                  view.computed ? "computed on " + of->device.name
                                                : measured::where_measured(*of))};
      }
    }
    if (!chart) return charts_[key] = -1;
    made[name] = chart->svg;
    alt = chart->alt;
  }
  made["alt"] = alt;
  chart_list_.push_back(std::move(made));
  return charts_[key] = static_cast<int>(chart_list_.size()) - 1;
}

// ---- stops -----------------------------------------------------------------------------------------

json Maker::stop(const scenes::GuideStop& where, std::size_t stop_number) {
  progress_.report(static_cast<double>(stop_number) / static_cast<double>(guide_.stops.size() + 1),
                   fmt::format("{}, stop {} of {}", id_, stop_number, guide_.stops.size()));
  json made = {{"title", where.title}, {"tab", where.tab}, {"light", where.light}};
  std::string why_not;
  const auto cursor = [&](const scenes::StepAxis& axis) { return scenes::cursor_at(where, axis); };
  const std::vector<std::string> subject = where.subject();
  const Seen here = seen(where.settings, subject, cursor, kMostPlaces, why_not);
  made["seen"] = to_json(here);
  if (here.run < 0) {
    made["missing"] = why_not;
    site_.missing.push_back(fmt::format("{}, stop {}: {}", id_, stop_number, why_not));
    return made;
  }
  const Run& run = *runs_[static_cast<std::size_t>(here.run)];
  if (!where.light.empty()) {
    made["lit"] = books_[static_cast<std::size_t>(here.wide)]->add_lit(here.place, where.light);
    made["litNarrow"] =
        books_[static_cast<std::size_t>(here.narrow)]->add_lit(here.place, where.light);
  }
  const scenes::Cursor asked =
      where.ask.empty() ? cursor(run.axis) : scenes::asked_at(where, run.axis);
  const scenes::View view{asked};
  if (const auto one = run.scene->question(view); one && asked_.insert(one->text).second) {
    const picture::Picture picture = run.scene->picture(run.scene->extent(), view);
    made["question"] = question(*one, &picture);
    for (const int number : {here.wide, here.narrow}) {
      books_[static_cast<std::size_t>(number)]->add(run.axis.place_of(asked));
    }
    made["asked"] = where.ask.empty() ? -1 : run.axis.place_of(asked);
  }
  if (!where.view.empty()) made["chart"] = chart(where);
  json tries = json::array();
  for (const scenes::Try& one : where.tries) {
    lab::Settings settings = where.settings;
    for (const auto& [id, value] : one.settings) settings[id] = value;
    std::string refused;
    tries.push_back(options_.few ? json{{"run", -1}}
                                 : to_json(seen(settings, subject, cursor, kFewPlaces, refused)));
    if (!refused.empty()) tries.back()["missing"] = refused;
  }
  made["tries"] = std::move(tries);
  return made;
}

/// Values that a slider offers: all of a choice; of a number its own and others over its range.
std::vector<lab::KnobValue> values_of(const lab::Knob& knob) {
  std::vector<lab::KnobValue> values;
  if (knob.kind == lab::KnobKind::toggle) return {false, true};
  for (const std::string& choice : knob.choices) values.emplace_back(choice);
  if (knob.kind != lab::KnobKind::integer) return values;
  const auto own = std::get<std::int64_t>(knob.initial), most = static_cast<std::int64_t>(knob.max);
  std::set<std::int64_t> all = {own};
  for (std::int64_t value = std::max<std::int64_t>(1, static_cast<std::int64_t>(knob.min));
       value <= most && std::ssize(all) < kMostValues; value *= 2) {
    all.insert(value);
  }
  values.assign(all.begin(), all.end());
  return values;
}

/// Two knobs of the lesson and every pair of their values that it runs.
json Maker::explore() {
  json made = {{"knobs", json::array()}, {"runs", json::object()}};
  std::string why_not;
  const Run* first = run({}, why_not);
  if (options_.few || first == nullptr) return made;
  std::vector<const lab::Knob*> knobs;
  for (const std::string& id : first->scene->stage_knobs()) {
    const lab::Knob& knob = lesson_.knobs().at(id);
    if (knobs.size() < 2 && values_of(knob).size() > 1) knobs.push_back(&knob);
  }
  for (const lab::Knob* knob : knobs) {
    json values = json::array();
    for (const lab::KnobValue& value : values_of(*knob)) values.push_back(knob->text(value));
    made["knobs"].push_back({{"id", knob->id},
                             {"label", knob->label},
                             {"values", std::move(values)},
                             {"own", knob->text(knob->checked(knob->initial))}});
  }
  const auto at_end = [](const scenes::StepAxis& axis) { return axis.at_place(axis.places()); };
  const auto add = [&](lab::Settings settings, const std::string& name) {
    // Where a knob has no effect its values are one run.
    for (const lab::Knob* knob : knobs) {
      if (!knob->idle(lesson_.knobs().completed(settings)).empty()) settings.erase(knob->id);
    }
    std::string refused;
    const Seen one = seen(settings, {}, at_end, kFewPlaces, refused);
    if (one.run >= 0) made["runs"][name] = to_json(one);
  };
  if (knobs.empty()) return made;
  for (const lab::KnobValue& a : values_of(*knobs[0])) {
    if (knobs.size() == 1) {
      add({{knobs[0]->id, a}}, knobs[0]->text(a));
      continue;
    }
    for (const lab::KnobValue& b : values_of(*knobs[1])) {
      add({{knobs[0]->id, a}, {knobs[1]->id, b}}, knobs[0]->text(a) + "|" + knobs[1]->text(b));
    }
  }
  return made;
}

// ---- text ------------------------------------------------------------------------------------------

/// Markdown with the glossary's words as links. Chips and lights of a stop are buttons that the script knows.
std::string Maker::text_html(std::string_view markdown, const scenes::GuideStop* where) {
  std::string text(markdown);
  const std::vector<scenes::TermMention> terms = scenes::terms_in(markdown, id_);
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    text.insert(term->begin + term->size, "](term:" + term->term->id + ")");
    text.insert(term->begin, "[");
  }
  std::size_t tried = 0;
  return markdown_html(text, 3, [&](const std::string& target, const std::string& words) {
    if (target.starts_with("try:") && where != nullptr) {
      return fmt::format("<button type=\"button\" class=\"try\" data-try=\"{}\">{}</button>",
                         tried++, words);
    }
    if (target.starts_with("light:")) {
      return fmt::format("<span class=\"lit\" tabindex=\"0\" data-light=\"{}\">{}</span>",
                         html_escaped(target.substr(6)), words);
    }
    if (target.starts_with("term:")) {
      const scenes::Term* term = scenes::term_of(target.substr(5));
      return term == nullptr ? words
                             : fmt::format(
                                   "<a class=\"term\" data-term=\"{}\" title=\"{}\" "
                                   "href=\"#/glossary/{}\">{}</a>",
                                   html_escaped(term->id), html_escaped(term->first_sentence),
                                   html_escaped(term->id), words);
    }
    if (target.starts_with("lesson:")) {
      return fmt::format("<a href=\"#/{}\">{}</a>", html_escaped(target.substr(7)), words);
    }
    return fmt::format("<a href=\"{}\">{}</a>", html_escaped(target), words);
  });
}

/// "surprise" as a reader is told it.
std::string_view kind_words(const std::string& kind) {
  if (kind == "misconception") return "often misunderstood";
  if (kind == "limits") return "what this does not show";
  return kind;
}

/// A link to the stop after stop `number`, to the sliders after the last one, or to the next lesson.
std::string Maker::next_html(std::size_t number) const {
  const std::size_t count = guide_.stops.size(), sliders = options_.few ? count : count + 1;
  std::string target, words;
  if (number < sliders) {
    target = fmt::format("{}/stop/{}", id_, number + 1);
    words = number < count ? guide_.stops[number].title : "Your turn";
  } else {
    const auto all = lessons();
    const auto here = std::find(all.begin(), all.end(), &lesson_);
    if (here == all.end() || here + 1 == all.end()) return {};
    target = (*(here + 1))->info().id;
    words = "the lesson " + (*(here + 1))->info().title;
  }
  return fmt::format("<p class=\"next\"><a href=\"#/{}\">Next: {}</a></p>\n", html_escaped(target),
                     html_escaped(words));
}

std::string Maker::stop_html(const scenes::GuideStop& where, std::size_t number) {
  return fmt::format(
      "<article class=\"stop\" data-stop=\"{}\" hidden>\n<p class=\"note\">{} of {}{}</p>\n"
      "<h2 tabindex=\"-1\">{}</h2>\n<div class=\"ask\"></div>\n<div class=\"text\">{}{}{}</div>\n"
      "<p class=\"note\"><code>{}</code></p>\n</article>\n",
      number, number, guide_.stops.size(),
      where.kind.empty() ? std::string() : fmt::format(" · {}", kind_words(where.kind)),
      html_escaped(where.title), text_html(where.text, &where),
      where.rescales.empty()
          ? std::string()
          : fmt::format("<p class=\"note\">{}</p>", html_escaped(where.says_new_ranges())),
      next_html(number),
      html_escaped(fmt::format("tilestep open {} --stop {} --reader", id_, number)));
}

std::string_view class_of(ui::Syntax kind) {
  switch (kind) {
    case ui::Syntax::keyword:
      return "k";
    case ui::Syntax::cuda:
      return "c";
    case ui::Syntax::number:
      return "n";
    case ui::Syntax::string:
      return "s";
    case ui::Syntax::comment:
      return "m";
    default:
      return "";
  }
}

std::string code_html(std::string_view text) {
  std::string html;
  for (const ui::SyntaxLine& line : ui::tinted(text)) {
    html += "<li>";
    for (const ui::SyntaxSpan& span : line.spans) {
      const std::string words = html_escaped(text.substr(span.begin, span.end - span.begin));
      const std::string_view kind = class_of(span.kind);
      html += kind.empty() ? words : fmt::format("<i class=\"{}\">{}</i>", kind, words);
    }
    html += "</li>\n";
  }
  return html;
}

/// The sources that a step of any run is in.
std::string Maker::kernels_html() const {
  std::string html;
  for (const std::string& path : kernels_) {
    html += fmt::format(
        "<details class=\"kernel\" data-path=\"{0}\"><summary>{0}</summary><ol class=\"code\">\n{1}"
        "</ol></details>\n",
        html_escaped(path), code_html(lab::asset(path)));
  }
  return html;
}

std::string Maker::exercises_html() const {
  std::string html;
  for (const lab::Exercise& one : lab::exercises()) {
    if (one.lesson != id_) continue;
    std::string hints;
    for (const lab::Hint& hint : one.hints) {
      if (hint.key != lab::HintKey::otherwise) continue;
      hints += fmt::format(
          "<details><summary>A hint</summary>{}</details>\n",
          markdown_html(hint.text, 4,
                        [](const std::string&, const std::string& words) { return words; }));
    }
    const std::string file = one.name + ".cu";
    html += fmt::format(
        "<section class=\"exercise\"><h3>{}</h3>\n{}<details><summary>The kernel with its "
        "hole</summary>"
        "<p><button type=\"button\" class=\"save\" data-file=\"{}\">Save as {}</button></p>"
        "<ol class=\"code\">\n{}</ol></details>\n{}<p class=\"note\">It is checked by "
        "<code>tilestep exercise "
        "check {}</code>, or in the window under Kernel.</p></section>\n",
        html_escaped(one.title),
        markdown_html(one.task, 4,
                      [](const std::string& target, const std::string& words) {
                        return target.starts_with("http") ? fmt::format("<a href=\"{}\">{}</a>",
                                                                        html_escaped(target), words)
                                                          : words;
                      }),
        html_escaped(file), html_escaped(file), code_html(lab::starter(one)), hints,
        html_escaped(file));
  }
  return html;
}

/// The picture that the lesson is known by: of its surprise, or of the stop in the middle.
std::string Maker::card() {
  const scenes::GuideStop* best = nullptr;
  for (std::size_t i = 0; i < guide_.stops.size(); ++i) {
    const scenes::GuideStop& stop = guide_.stops[i];
    if (stop.tab == "measured") continue;
    if (best == nullptr || i <= guide_.stops.size() / 2) best = &stop;
    if (stop.kind == "surprise") {
      best = &stop;
      break;
    }
  }
  std::string why_not;
  const Run* of = best == nullptr ? nullptr : run(best->settings, why_not);
  if (of == nullptr) return {};
  const scenes::Cursor cursor = scenes::cursor_at(*best, of->axis);
  ThingNames names;
  FlipBook book(press_, *of->scene, names, {best->subject(), cursor, kCard, false});
  book.add(of->axis.place_of(cursor));
  json data = book.data();
  data["ids"] = names.all();
  return block("card", data);
}

// ---- all of it -------------------------------------------------------------------------------------

LessonSite Maker::make() {
  const lab::LessonInfo& info = lesson_.info();
  std::string why_not;
  if (run({}, why_not) == nullptr) throw Error(why_not, ExitCode::unavailable);
  json stops = json::array();
  std::string texts;
  // A question that the path asks somewhere is asked there.
  for (const bool by_path : {true, false}) {
    for (std::size_t k = 0; k < guide_.stops.size(); ++k) {
      const scenes::GuideStop& where = guide_.stops[k];
      if (where.ask.empty() != by_path) stops[k] = stop(where, k + 1);
    }
  }
  for (std::size_t k = 0; k < guide_.stops.size(); ++k) texts += stop_html(guide_.stops[k], k + 1);
  site_.card = card();
  json questions = json::array(), views = json::array();
  const Run& first = *runs_.front();
  const measured::Spec spec = first.scene->measured_spec();
  if (const lab::Report* bench = measured::bench_of(first.report, id_, spec.needs)) {
    for (const scenes::Question& one : first.scene->measured_questions(*bench)) {
      questions.push_back(question(one, nullptr));
    }
  }
  for (const measured::View& view : spec.views) {
    scenes::GuideStop shown;
    shown.view = view.name;
    if (const int chart_number = chart(shown); chart_number >= 0) views.push_back(chart_number);
  }
  const json sliders = explore();
  json knobs = json::array();
  for (const lab::Knob& knob : lesson_.knobs()) {
    knobs.push_back({knob.id, knob.label, knob.unit, knob.text(knob.checked(knob.initial))});
  }
  json runs = json::array();
  for (std::size_t n = 0; n < runs_.size(); ++n) {
    json settings = json::object();
    for (const lab::Knob& knob : lesson_.knobs()) {
      const auto found = runs_[n]->report.params.find(knob.id);
      if (found != runs_[n]->report.params.end()) settings[knob.id] = knob.text(found->second);
    }
    runs.push_back(std::move(settings));
    blocks_ += block(fmt::format("run-{}", n), run_json(*runs_[n]));
  }
  for (std::size_t n = 0; n < books_.size(); ++n) {
    const json book = books_[n]->data();
    for (const json& words : book.at("words")) {
      const std::string path = words.at("source").at(0);
      if (!path.empty()) kernels_.insert(path);
    }
    blocks_ += block(fmt::format("book-{}", n), book);
  }
  blocks_ += block("charts", chart_list_);
  blocks_ += block("core", {{"id", id_},
                            {"title", info.title},
                            {"chapter", info.chapter},
                            {"ids", names_.all()},
                            {"knobs", std::move(knobs)},
                            {"runs", std::move(runs)},
                            {"stops", std::move(stops)},
                            {"questions", std::move(questions)},
                            {"views", std::move(views)},
                            {"explore", sliders}});
  std::string intro = guide_.intro;
  if (intro.starts_with("# ")) intro.erase(0, intro.find('\n'));  // the page has it
  site_.body = fmt::format(
      "<section class=\"lesson\" id=\"lesson-{0}\" data-lesson=\"{0}\" aria-label=\"{1}\" hidden>\n"
      "<template class=\"intro\"><p class=\"chapter\">{2}</p><p "
      "class=\"lead\">{3}</p>\n{4}</template>\n{5}"
      "<div class=\"more\" hidden>{6}</div>\n<div class=\"kernels\" hidden>{7}</div>\n"
      "<div class=\"exercises\" hidden>{8}</div>\n</section>\n{9}",
      id_, html_escaped(info.title), html_escaped(info.chapter), html_escaped(info.takeaway),
      text_html(intro, nullptr), texts,
      text_html(guide_.more, nullptr) + next_html(guide_.stops.size() + 1), kernels_html(),
      exercises_html(), blocks_);
  site_.runs = static_cast<int>(runs_.size());
  return std::move(site_);
}

}  // namespace

LessonSite make_lesson_site(const lab::Lesson& lesson, const SvgPress& press,
                            const SiteOptions& options, lab::Progress& progress) {
  return Maker(lesson, press, options, progress).make();
}

}  // namespace tilestep::app
