#pragma once

#include <optional>

#include "app/shell/shell.hpp"

/// The meaning of GLFW's keys to the shell.
namespace tilestep::app {

/// A key without Ctrl.
std::optional<Key> key_of(int glfw_key);
/// With Ctrl, or the command key of a Mac.
std::optional<Key> command_of(int glfw_key);
/// Letters and signs come as characters, so that they are where the keyboard's layout has them.
std::optional<Key> key_of_character(unsigned character);
/// The meaning of a key to a text editor; nothing: the key is the window's.
std::optional<ui::EditorPress> editor_press_of(int glfw_key, int modifiers);

}  // namespace tilestep::app
