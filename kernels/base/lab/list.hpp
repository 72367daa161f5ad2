#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tilestep::lab {

/// A list with commas between, "5:2,7:0", as a knob accepts it: `item(part)` of each part. Nothing where that is nothing
/// for one of them, or where the list ends on a comma; the empty text is the empty list.
template <class Item>
auto list_of(std::string_view text, Item item) {
  std::optional<std::vector<typename decltype(item(text))::value_type>> list(std::in_place);
  while (list && !text.empty()) {
    const std::size_t comma = text.find(',');
    const auto one = item(text.substr(0, comma));
    const bool last = comma == std::string_view::npos;
    text.remove_prefix(last ? text.size() : comma + 1);
    if (!one || (!last && text.empty())) {
      list.reset();
    } else {
      list->push_back(*one);
    }
  }
  return list;
}

}  // namespace tilestep::lab
