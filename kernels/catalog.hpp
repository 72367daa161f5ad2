#pragma once

#include <span>
#include <string_view>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/simt/backends.hpp"

namespace tilestep {

/// The lessons in teaching order.
std::span<const lab::Lesson* const> lessons();
/// What the window opens on when no lesson is named: the one that asks for no knowledge of hardware.
inline constexpr std::string_view kOpeningLesson = "online-softmax";
/// Throws Error naming all lessons.
const lab::Lesson& lesson(std::string_view id);

/// The kernels of all lessons, compiled for the CPU emulation.
std::span<const simt::KernelEntry> emulated_kernels();

}  // namespace tilestep
