#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/arguments.hpp"

/// Contact sheets: all stops of a lesson's guided path in one picture.
namespace tilestep::app {

/// Writes `folder`/LESSON.png for each of `lessons`: the window at every stop, drawn as `look` says and shown at half its
/// size, three in a row. Throws Error as take_shot does.
void write_sheets(const std::filesystem::path& folder,
                  const std::vector<const lab::Lesson*>& lessons, const LookArguments& look,
                  const std::string& program, bool force);

}  // namespace tilestep::app
