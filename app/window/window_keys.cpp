#include "app/window/window_keys.hpp"

#include <GLFW/glfw3.h>

namespace tilestep::app {
namespace {

/// The letter or sign that a key has in the keyboard's layout, else in the American one.
int sign_of(int glfw_key) {
  const char* name = glfwGetKeyName(glfw_key, 0);
  const bool named = name != nullptr && name[0] != '\0' && name[1] == '\0';
  return named ? name[0] : glfw_key - GLFW_KEY_A + 'a';
}

/// What a key with Ctrl means to an editor of text.
std::optional<ui::EditorKey> editor_command_of(int glfw_key, bool shift) {
  using ui::EditorKey;
  switch (sign_of(glfw_key)) {
    case 'a':
      return EditorKey::select_all;
    case 'c':
      return EditorKey::copy;
    case 'x':
      return EditorKey::cut;
    case 'v':
      return EditorKey::paste;
    case 'z':
      return shift ? EditorKey::redo : EditorKey::undo;
    case 'y':
      return EditorKey::redo;
    case '/':
      return EditorKey::comment;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Key> key_of(int glfw_key) {
  switch (glfw_key) {
    case GLFW_KEY_LEFT:
      return Key::left;
    case GLFW_KEY_RIGHT:
      return Key::right;
    case GLFW_KEY_UP:
      return Key::up;
    case GLFW_KEY_DOWN:
      return Key::down;
    case GLFW_KEY_HOME:
      return Key::home;
    case GLFW_KEY_END:
      return Key::end;
    case GLFW_KEY_PAGE_UP:
      return Key::page_up;
    case GLFW_KEY_PAGE_DOWN:
      return Key::page_down;
    case GLFW_KEY_F8:
      return Key::f8;
    case GLFW_KEY_F11:
      return Key::f11;
    case GLFW_KEY_ESCAPE:
      return Key::escape;
    case GLFW_KEY_ENTER:
    case GLFW_KEY_KP_ENTER:
      return Key::enter;
    case GLFW_KEY_TAB:
      return Key::tab;
    default:
      return std::nullopt;
  }
}

std::optional<Key> command_of(int glfw_key) {
  if (glfw_key == GLFW_KEY_ENTER || glfw_key == GLFW_KEY_KP_ENTER) return Key::run;
  switch (sign_of(glfw_key)) {
    case 'f':
      return Key::find_text;
    case 'k':
      return Key::find;
    case 'c':
      return Key::copy;
    case 'o':
      return Key::open;
    case 's':
      return Key::save;
    default:
      return std::nullopt;
  }
}

std::optional<ui::EditorPress> editor_press_of(int glfw_key, int modifiers) {
  using ui::EditorKey;
  const bool shift = (modifiers & GLFW_MOD_SHIFT) != 0;
  const bool command = (modifiers & (GLFW_MOD_CONTROL | GLFW_MOD_SUPER)) != 0;
  const auto press = [&](EditorKey key) { return ui::EditorPress{key, shift, command}; };
  switch (glfw_key) {
    case GLFW_KEY_LEFT:
      return press(EditorKey::left);
    case GLFW_KEY_RIGHT:
      return press(EditorKey::right);
    case GLFW_KEY_UP:
      return press(EditorKey::up);
    case GLFW_KEY_DOWN:
      return press(EditorKey::down);
    case GLFW_KEY_HOME:
      return press(EditorKey::home);
    case GLFW_KEY_END:
      return press(EditorKey::end);
    case GLFW_KEY_PAGE_UP:
      return press(EditorKey::page_up);
    case GLFW_KEY_PAGE_DOWN:
      return press(EditorKey::page_down);
    case GLFW_KEY_BACKSPACE:
      return press(EditorKey::erase_back);
    case GLFW_KEY_DELETE:
      return press(EditorKey::erase_on);
    default:
      break;
  }
  if (command) {
    const auto key = editor_command_of(glfw_key, shift);
    return key ? std::optional(press(*key)) : std::nullopt;
  }
  switch (glfw_key) {
    case GLFW_KEY_ENTER:
    case GLFW_KEY_KP_ENTER:
      return press(EditorKey::enter);
    case GLFW_KEY_TAB:
      return press(EditorKey::tab);
    case GLFW_KEY_ESCAPE:
      return press(EditorKey::escape);
    default:
      return std::nullopt;
  }
}

std::optional<Key> key_of_character(unsigned character) {
  if (character >= '1' && character <= '9') {
    return static_cast<Key>(static_cast<int>(Key::digit_1) + static_cast<int>(character - '1'));
  }
  const unsigned lower = character >= 'A' && character <= 'Z' ? character + 32 : character;
  switch (lower) {
    case ' ':
      return Key::space;
    case 'a':
      return Key::a;
    case 'b':
      return Key::b;
    case 'c':
      return Key::c;
    case 'd':
      return Key::d;
    case 'g':
      return Key::g;
    case 'h':
      return Key::h;
    case 'k':
      return Key::k;
    case 'l':
      return Key::l;
    case 'm':
      return Key::m;
    case 'n':
      return Key::n;
    case 'p':
      return Key::p;
    case 'r':
      return Key::r;
    case 's':
      return Key::s;
    case 't':
      return Key::t;
    case 'v':
      return Key::v;
    case '[':
      return Key::bracket_left;
    case ']':
      return Key::bracket_right;
    case '?':
      return Key::question;
    case ',':
      return Key::comma;
    case '.':
      return Key::period;
    default:
      return std::nullopt;
  }
}

}  // namespace tilestep::app
