#include "kernels/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "kernels/base/lab/meant.hpp"
#include "kernels/lessons.hpp"

namespace tilestep {
namespace {

constexpr simt::KernelEntry kEmulatedKernels[] = {
#define LESSON(chapter, id, title) {#id, id::kernels_emulated},
#include "kernels/lessons.def"
};

}  // namespace

std::span<const lab::Lesson* const> lessons() {
  static const lab::Lesson* const all[] = {
#define LESSON(chapter, id, title) &id::lesson(),
#include "kernels/lessons.def"
  };
  return all;
}

const lab::Lesson& lesson(std::string_view id) {
  std::vector<std::string> ids;
  for (const lab::Lesson* lesson : lessons()) {
    if (lesson->info().id == id) return *lesson;
    ids.push_back(lesson->info().id);
  }
  const std::string meant = lab::meant(id, ids);
  throw Error(fmt::format("there is no lesson '{}'; {}the lessons are: {}", id,
                          meant.empty() ? "" : fmt::format("did you mean '{}'? All ", meant),
                          fmt::join(ids, ", ")));
}

std::span<const simt::KernelEntry> emulated_kernels() {
  return kEmulatedKernels;
}

}  // namespace tilestep
