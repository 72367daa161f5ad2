/// \file
/// The standard library's and the JSON library's classes that everything is made of, optimized. Of a function that
/// several objects have the linker takes the first: this object comes first in programs with AddressSanitizer, whose
/// other objects are not optimized, and have each of these functions in the way of their strings and JSON.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

using nlohmann::json;
using FromText = nlohmann::detail::iterator_input_adapter<const char*>;
using FromString = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;

template class std::basic_string<char>;
template class std::basic_string_view<char>;
template class std::vector<bool>;
template class std::vector<char>;
template class std::vector<unsigned char>;
template class std::vector<std::uint16_t>;
template class std::vector<int>;
template class std::vector<unsigned>;
template class std::vector<float>;
template class std::vector<double>;
template class std::vector<std::string>;
template class nlohmann::basic_json<>;
template class std::vector<json>;
template class std::map<std::string, json, json::default_object_comparator_t>;
template class nlohmann::detail::lexer<json, FromText>;
template class nlohmann::detail::lexer<json, FromString>;
template class nlohmann::detail::parser<json, FromText>;
template class nlohmann::detail::parser<json, FromString>;
template class nlohmann::detail::serializer<json>;
