#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <utility>

#include "kernels/lessons.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep {

namespace scenes {
/// The lesson that a trace belongs to, and how to read it.
template <class Trace>
struct OwnerOf;
}  // namespace scenes

// The scene of each lesson, defined at the end of its scenes/<chapter>/<lesson>/scene.cpp.
#define LESSON(chapter, id, title)                               \
  namespace id {                                                 \
  std::unique_ptr<scenes::Scene> make_scene();                   \
  }                                                              \
  template <>                                                    \
  struct scenes::OwnerOf<id::Trace> {                            \
    static constexpr std::string_view kLessonId = id::kLessonId; \
    static constexpr auto kRead = id::trace_from_json;           \
    static constexpr auto kMake = id::make_scene;                \
  };
#include "kernels/lessons.def"

}  // namespace tilestep

namespace tilestep::scenes {

/// The common part of all lessons' scenes: the report shown and its trace. A lesson's scene returns its
/// steps from `loaded`, and sets everything else that follows from the trace:
///
///     class TilingScene final : public SceneOf<tiling::Trace> {
///       …
///       StepAxis loaded(const tiling::Trace& before) override;
///     };
template <class Trace>
class SceneOf : public Scene {
 public:
  std::string_view lesson() const final { return OwnerOf<Trace>::kLessonId; }
  std::unique_ptr<Scene> blank() const final { return OwnerOf<Trace>::kMake(); }
  StepAxis steps() const final { return axis_; }
  const lab::Report* report() const final {
    return report_.lesson.empty() ? nullptr : &report_;  // none was loaded
  }
  const Trace& trace() const { return trace_; }
  std::vector<Event> events() const override { return events_; }
  void load(const lab::Report& report) final {
    const Trace before = std::exchange(trace_, OwnerOf<Trace>::kRead(report.trace));
    report_ = report;
    events_.clear();
    axis_ = loaded(before);
  }

 protected:
  /// Called when `trace_` and `report_` are new; `before` is the trace shown until now. Fills `events_` in
  /// order and returns the steps.
  virtual StepAxis loaded(const Trace& before) = 0;

  Trace trace_;
  lab::Report report_;
  std::vector<Event> events_;

 private:
  StepAxis axis_;
};

/// `lines` of the source at `path`, without those that are 0 (the kernel has no such statement);
/// `current` is a place among all of them, −1 before the first step.
inline SourceMark source_mark(std::string_view path, std::span<const int> lines, int current) {
  SourceMark mark;
  mark.path = path;
  for (const int line : lines) {
    if (line > 0) mark.step_lines.push_back(line);
  }
  if (current >= 0) mark.current = lines[static_cast<std::size_t>(current)];
  return mark;
}

}  // namespace tilestep::scenes

/// Declares what the scene of every lesson says: its steps, its picture, the words about it, its numbers,
/// its Measured tab, its source lines and its questions. Stands in the public part of a class that is a
/// SceneOf<lesson::Trace>.
#define TILESTEP_PICTURE_SCENE(lesson)                                                      \
  StepAxis loaded(const lesson::Trace& before) override;                                    \
  picture::Extent extent() const override;                                                  \
  picture::Picture picture(const picture::Extent& extent, const View& view) const override; \
  std::string explain(const View& view, const picture::Key& key) const override;            \
  std::vector<picture::Symbol> symbols(const View& view) const override;                    \
  std::vector<Readout> readouts(const View& view) const override;                           \
  measured::Spec measured_spec() const override;                                            \
  SourceMark source(const View& view) const override;                                       \
  std::optional<Question> question(const View& view) const override;

/// Ends a lesson's scene.cpp: its scene is a `Class` of namespace tilestep::scenes.
#define TILESTEP_SCENE(lesson, Class)                                       \
  std::unique_ptr<tilestep::scenes::Scene> tilestep::lesson::make_scene() { \
    return std::make_unique<tilestep::scenes::Class>();                     \
  }
