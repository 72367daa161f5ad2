#pragma once

#include <string>
#include <string_view>

namespace tilestep::inspect {

/// The shape of a launch, each as it would stand in the source: "64", "8,4", "(n + 255) / 256" is none.
struct CallShape {
  std::string grid = "1", block = "256", shared = "0";
};

/// A main for a file that has none, as text to stand behind it: it allocates and fills arrays, launches the kernel once and
/// prints what it wrote. `call` is "name(argument, …)": a number or name stands for itself, `in[float:64x1024]` for an array
/// filled with numbers from −1 to 1 (whole numbers: from 0 to 9), `out[float:1024]` for one that nobody has written,
/// `inout[…]` for one that is filled and printed. Throws Error that names the forms.
std::string main_of_call(std::string_view call, const CallShape& shape);

/// The same for a judge's form, `extern "C" void solve(device pointers and numbers)` in `source`, which launches by itself.
/// `json` has the numbers by their names, and where there are several how many elements each pointer has: {"M": 64, "N": 32,
/// "A": "M * N"}. A pointer to const is filled, another is printed.
std::string main_of_solve(std::string_view source, std::string_view json);

}  // namespace tilestep::inspect
