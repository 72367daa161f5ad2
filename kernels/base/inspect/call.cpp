#include "kernels/base/inspect/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kernels/base/lab/sentence.hpp"
#include "kernels/base/simt/error.hpp"

namespace tilestep::inspect {
namespace {

using lab::trimmed;

struct Type {
  std::string_view name, of_source;  ///< as it is asked for, and in CUDA
};
constexpr Type kTypes[] = {{"float", "float"},    {"double", "double"},
                           {"half", "__half"},    {"bfloat16", "__nv_bfloat16"},
                           {"int", "int"},        {"uint", "unsigned"},
                           {"short", "short"},    {"ushort", "unsigned short"},
                           {"char", "char"},      {"uchar", "unsigned char"},
                           {"long", "long long"}, {"ulong", "unsigned long long"}};

constexpr std::string_view kForms =
    "a call is NAME(ARGUMENT, …), and an argument a number or in[TYPE:SIZE], out[TYPE:SIZE], "
    "inout[TYPE:SIZE], as in 'softmax(in[float:64x1024], out[float:64x1024], 1024)'";

std::string type_names() {
  std::string names;
  for (const Type& each : kTypes) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

bool is_expression(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_.+-*/ ()").find(c) != std::string_view::npos;
  });
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
         });
}

/// At commas that no bracket holds.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == '(' || c == '<') ++depth;
    if (c == ']' || c == ')' || c == '>') --depth;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

/// An array of the call: how it is called, and whether it is filled before and printed after.
struct Array {
  std::string name, type, count;  ///< the count as an expression
  bool filled = false, printed = false;
};

std::string allocated(const Array& array) {
  std::string text = fmt::format(
      "  std::vector<{1}> {0}_host({2});\n  {1}* {0};\n  cudaMalloc(&{0}, {0}_host.size() * "
      "sizeof({1}));\n",
      array.name, array.type, array.count);
  if (array.filled)
    text += fmt::format(
        "  for (auto& x : {0}_host) x = number(x);\n  cudaMemcpy({0}, {0}_host.data(), "
        "{0}_host.size() * sizeof({1}), cudaMemcpyHostToDevice);\n",
        array.name, array.type);
  return text;
}

std::string read_back(const Array& array) {
  if (!array.printed) return {};
  return fmt::format(
      "  cudaMemcpy({0}_host.data(), {0}, {0}_host.size() * sizeof({1}), "
      "cudaMemcpyDeviceToHost);\n  double {0}_sum = 0;\n  for (auto x : {0}_host) {0}_sum += "
      "static_cast<double>(static_cast<float>(x));\n  printf(\"{0}: sum %.9g, begins with\", "
      "{0}_sum);\n  for (size_t i = 0; i < {0}_host.size() && i < 8; ++i) printf(\" %.7g\", "
      "static_cast<double>(static_cast<float>({0}_host[i])));\n  printf(\"\\n\");\n",
      array.name, array.type);
}

std::string whole_main(const std::vector<Array>& arrays, std::string_view before,
                       const std::string& launch) {
  std::string text =
      "\n// What tilestep calls it with.\n#include <cstdio>\n#include <type_traits>\n#include "
      "<vector>\nint main() {\n  unsigned seed = 1;\n  auto number = [&](auto of) {\n    seed = "
      "seed * 1664525u + 1013904223u;\n    using T = decltype(of);\n    if constexpr "
      "(std::is_integral_v<T>) return static_cast<T>(seed >> 8) % 10;\n    else return "
      "static_cast<T>(static_cast<float>(seed >> 8) / 8388608.0f - 1.0f);\n  };\n  (void)number;\n";
  text += before;
  for (const Array& each : arrays) text += allocated(each);
  text += fmt::format("  {};\n", launch);
  text +=
      "  cudaError_t error = cudaGetLastError();\n  if (error == cudaSuccess) error = "
      "cudaDeviceSynchronize();\n  if (error != cudaSuccess) {\n    printf(\"%s\\n\", "
      "cudaGetErrorString(error));\n    return 1;\n  }\n";
  for (const Array& each : arrays) text += read_back(each);
  for (const Array& each : arrays) text += fmt::format("  cudaFree({});\n", each.name);
  return text + "}\n";
}

/// "in[float:64x1024]"; nothing: it is another argument.
std::optional<Array> array_in(std::string_view argument) {
  const std::size_t open = argument.find('[');
  if (open == argument.npos || !argument.ends_with(']')) return std::nullopt;
  const std::string_view use = trimmed(argument.substr(0, open));
  const std::string_view inside = argument.substr(open + 1, argument.size() - open - 2);
  const std::size_t colon = inside.find(':');
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("--call: '{}' {}; {}", argument, why, kForms));
  };
  Array array;
  if (use == "in") {
    array.filled = true;
  } else if (use == "out") {
    array.printed = true;
  } else if (use == "inout") {
    array.filled = array.printed = true;
  } else {
    refuse("is neither in, out nor inout");
  }
  if (colon == inside.npos) refuse("has no size");
  const std::string_view wanted = trimmed(inside.substr(0, colon));
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const Type& each) { return each.name == wanted; });
  if (type == std::end(kTypes)) {
    throw Error(
        fmt::format("--call: '{}' is no type of an array here; allowed: {}", wanted, type_names()));
  }
  array.type = type->of_source;
  std::string_view sizes = inside.substr(colon + 1);
  std::uint64_t count = 1;
  for (bool more = true; more;) {
    const std::size_t end = std::min(sizes.find('x'), sizes.size());
    const std::string_view digits = trimmed(sizes.substr(0, end));
    more = end < sizes.size();
    sizes.remove_prefix(std::min(end + 1, sizes.size()));
    std::uint64_t size = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || size > 1'000'000'000) refuse("has a size that is no number");
      size = size * 10 + static_cast<std::uint64_t>(c - '0');
    }
    count *= size;
    if (digits.empty() || size == 0 || count > 1'000'000'000)
      refuse("has a size that is not from 1 to 1000000000 elements");
  }
  array.count = std::to_string(count);
  return array;
}

void check_shape(std::string_view flag, std::string_view value, std::size_t most) {
  const auto parts = parts_of(value);
  const bool numbers = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
  });
  if (parts.empty() || parts.size() > most || !numbers) {
    throw Error(
        fmt::format("--{} cannot be '{}'; allowed: {}", flag, value,
                    most > 1 ? "one to three whole numbers, as 64 or 8,4" : "a whole number"));
  }
}

struct Parameter {
  std::string type, name;
  bool pointer = false, constant = false;
};

/// "const float* __restrict__ A"
Parameter parameter_of(std::string_view text) {
  Parameter of;
  std::string_view word;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '*') {
      of.pointer = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
    } else {
      std::size_t end = i;
      while (end < text.size() && text[end] != '*' &&
             std::isspace(static_cast<unsigned char>(text[end])) == 0)
        ++end;
      word = text.substr(i, end - i);
      i = end;
      if (word == "const") {
        of.constant = of.constant || !of.pointer;
      } else if (word != "__restrict__" && word != "restrict" && word != "__restrict") {
        if (!of.name.empty()) of.type += (of.type.empty() ? "" : " ") + of.name;
        of.name = word;
      }
    }
  }
  return of;
}

}  // namespace

std::string main_of_call(std::string_view call, const CallShape& shape) {
  call = trimmed(call);
  const std::size_t open = call.find('(');
  if (open == call.npos || open == 0 || !call.ends_with(')'))
    throw Error(fmt::format("--call cannot be '{}': {}", call, kForms));
  check_shape("grid", shape.grid, 3);
  check_shape("block", shape.block, 3);
  check_shape("shared", shape.shared, 1);
  std::vector<Array> arrays;
  std::string arguments;
  for (const std::string_view each : parts_of(call.substr(open + 1, call.size() - open - 2))) {
    std::optional<Array> array = array_in(each);
    if (!array && !is_expression(each))
      throw Error(fmt::format("--call: '{}' is no argument; {}", each, kForms));
    if (array) {
      const std::string_view use = !array->printed ? "in" : array->filled ? "inout" : "out";
      const auto before = std::count_if(arrays.begin(), arrays.end(), [&](const Array& other) {
        return other.filled == array->filled && other.printed == array->printed;
      });
      array->name = fmt::format("{}_{}", use, before + 1);
      arguments += (arguments.empty() ? "" : ", ") + array->name;
      arrays.push_back(std::move(*array));
    } else {
      arguments += (arguments.empty() ? "" : ", ") + std::string(each);
    }
  }
  return whole_main(arrays, "",
                    fmt::format("{}<<<dim3({}), dim3({}), {}>>>({})", call.substr(0, open),
                                shape.grid, shape.block, shape.shared, arguments));
}

std::string main_of_solve(std::string_view source, std::string_view json) {
  const auto values = nlohmann::json::parse(json, nullptr, false);
  if (!values.is_object())
    throw Error("--args is no JSON object; it is written as in '{\"N\": 1000}'");
  constexpr std::string_view kName = "solve";
  std::size_t open = source.npos, close = source.npos;
  for (std::size_t at = source.find(kName); at != source.npos; at = source.find(kName, at + 1)) {
    const std::size_t next = source.find_first_not_of(" \t\n", at + kName.size());
    if (next == source.npos || source[next] != '(') continue;
    const std::size_t end = source.find(')', next);
    const std::size_t body = end == source.npos ? end : source.find_first_not_of(" \t\n", end + 1);
    if (body == source.npos || source[body] != '{') continue;
    open = next;
    close = end;
    break;
  }
  if (open == source.npos)
    throw Error("--args is for a file with extern \"C\" void solve(…), and this one has none");
  std::vector<Parameter> parameters;
  for (const std::string_view each : parts_of(source.substr(open + 1, close - open - 1)))
    parameters.push_back(parameter_of(each));
  std::string names, before, arguments;
  std::vector<std::string> numbers;
  for (const Parameter& each : parameters) {
    names += (names.empty() ? "" : ", ") + each.name;
    if (each.pointer) continue;
    const auto value = values.find(each.name);
    if (value == values.end() || !value->is_number())
      throw Error(fmt::format("--args has no number '{0}', which solve takes; write \"{0}\": …",
                              each.name));
    before += fmt::format("  const {} {} = {};\n", each.type, each.name, value->dump());
    if (value->is_number_integer()) numbers.push_back(each.name);
  }
  for (const auto& [name, value] : values.items()) {
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&, of = name](const Parameter& each) { return each.name == of; }))
      throw Error(
          fmt::format("--args has '{}', which solve does not take; it takes: {}", name, names));
  }
  std::vector<Array> arrays;
  for (const Parameter& each : parameters) {
    arguments += (arguments.empty() ? "" : ", ") + each.name;
    if (!each.pointer) continue;
    if (!is_name(each.name)) throw Error("a pointer that solve takes has no name");
    Array array{each.name, each.type, "", each.constant, !each.constant};
    if (const auto value = values.find(each.name); value == values.end()) {
      if (numbers.size() != 1) {
        throw Error(fmt::format(
            "--args does not say how many elements {0} has; write \"{0}\": \"{1}\", say", each.name,
            numbers.size() > 1 ? numbers[0] + " * " + numbers[1] : "1000"));
      }
      array.count = numbers[0];
    } else if (value->is_number_unsigned()) {
      array.count = value->dump();
    } else if (value->is_string() && is_expression(value->get<std::string>())) {
      array.count = value->get<std::string>();
    } else {
      throw Error(fmt::format(
          "--args: '{}' is no number of elements; allowed: a number, or an expression of the "
          "numbers as \"M * N\"",
          each.name));
    }
    arrays.push_back(std::move(array));
  }
  return whole_main(arrays, before, fmt::format("solve({})", arguments));
}

}  // namespace tilestep::inspect
