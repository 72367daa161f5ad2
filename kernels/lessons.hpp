#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "kernels/base/lab/declared.hpp"
#include "kernels/base/simt/device.hpp"
#if defined(SIMT_EDITED)
#include "kernels/base/lab/knob.hpp"
#else
#include "kernels/base/lab/known.hpp"
#include "kernels/base/lab/lesson.hpp"
#endif

/// The lessons' names in code, from the one list. LESSON(attention, online_softmax, "Online
/// softmax") gives its namespace tilestep::online_softmax
///   kLesson, kLessonId   its id (as people write it: "online-softmax"), title and chapter
///   kernels_of(device)   its kernels there, by the interface `Kernels` of its kernels.hpp
///   lesson()             the lesson, defined in its lesson.cpp
///   Trace                what its kernel wrote while it ran: a struct that its lesson.hpp defines
///   to_json(), trace_from_json(), trace_again()   a trace's JSON, written, read (throws Error, which
///                        says what is wrong), and both, by TILESTEP_TRACE_JSON in its trace.cpp
///   other_future()       a trace's JSON, in which what is not known yet is something else, likewise
///   kernels_emulated(), kernels_cuda()   its kernels in each backend, defined by its .cu files
namespace tilestep {

namespace lessons_def {

/// "online_softmax" as people write it: "online-softmax".
template <std::size_t kSize>
struct Spelled {
  std::array<char, kSize> text{};
  explicit consteval Spelled(const char (&in_code)[kSize]) {
    for (std::size_t i = 0; i < kSize; ++i) text[i] = in_code[i] == '_' ? '-' : in_code[i];
  }
  constexpr std::string_view view() const { return {text.data(), kSize - 1}; }
};

consteval std::string_view chapter_title(std::string_view chapter) {
#define CHAPTER(id, title) \
  if (chapter == #id) return title;
#include "kernels/lessons.def"
  throw "a lesson of lessons.def is in a chapter that it does not list";
}

}  // namespace lessons_def

#define LESSON(chapter, id, title)                                                 \
  namespace id {                                                                   \
  inline constexpr lessons_def::Spelled kSpelledId(#id);                           \
  inline constexpr lab::LessonName kLesson{kSpelledId.view(), title,               \
                                           lessons_def::chapter_title(#chapter)};  \
  inline constexpr std::string_view kLessonId = kSpelledId.view();                 \
  class Kernels;                                                                   \
  template <class Interface = Kernels>                                             \
  const Interface& kernels_of(const simt::Device& device) {                        \
    return static_cast<const Interface&>(device.kernels(kLessonId));               \
  }                                                                                \
  const lab::Lesson& lesson();                                                     \
  struct Trace;                                                                    \
  nlohmann::json to_json(const Trace& trace);                                      \
  Trace trace_from_json(const nlohmann::json& json);                               \
  nlohmann::json trace_again(const nlohmann::json& trace);                         \
  nlohmann::json other_future(const nlohmann::json& trace, const lab::Change& by); \
  const simt::KernelSet& kernels_emulated();                                       \
  const simt::KernelSet& kernels_cuda();                                           \
  }
#include "kernels/lessons.def"

}  // namespace tilestep
