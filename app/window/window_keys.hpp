#pragma once

#include <optional>

#include "app/shell/shell.hpp"

/// What GLFW's keys mean to the shell.
namespace tilestep::app {

/// A key without Ctrl.
std::optional<Key> key_of(int glfw_key);
/// With Ctrl, or the command key of a Mac.
std::optional<Key> command_of(int glfw_key);
/// Letters and signs come as characters, so that they are where the keyboard's layout has them.
std::optional<Key> key_of_character(unsigned character);
/// What a key means to an editor of text; nothing: it is the window's.
std::optional<ui::EditorPress> editor_press_of(int glfw_key, int modifiers);

}  // namespace tilestep::app
