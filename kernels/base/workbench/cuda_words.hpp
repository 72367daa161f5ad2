#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tilestep::workbench {

/// An edited source as the host's compiler is to read it: CUDA's words that no header can give it are written another
/// way, and what cannot be emulated, or not in an edit, becomes an error that says what to write instead, in the line
/// where it stands. Comments and strings, and the number of every line, stay; columns do where nothing was put in.
///
///     extern __shared__ T name[];      a pointer to the block's dynamic shared memory (simt/toolkit/threads.hpp)
///     reinterpret_cast, __noinline__   words of simt/toolkit of the same length
///
/// A whole program (kernels/base/inspect) may use the host's words of CUDA, and of it becomes also
///
///     k<T><<<grid, block>>>(a, b)      simt_kernel(SIMT_NAME(k<T>), [=](auto... a) { k<T>(a...); }).at(…, grid, block)(a, b)
///     cudaMalloc(&x, bytes)            cudaMalloc(simt_name{"x"}, &x, bytes): errors call the array so
///     int main(                        visible from outside of its module
///     asm("…" : "=r"(a) : "f"(b));     a call with a and b that does the same (inline_ptx.hpp)
///
/// For nvcc (`timed`) only its launches change: `k<<<…, stream>>>(a)` is written between two calls that take its time
/// (kernels/base/inspect/timed.hpp).
enum class Written { kernels, program, timed };
std::string for_emulation(std::string_view text, Written written = Written::kernels);

/// The names in quotes of a source's #include lines.
std::vector<std::string> included_by(std::string_view text);

/// Its words, numbers, signs and literals, without comments, each once.
std::set<std::string> words_in(std::string_view text);

}  // namespace tilestep::workbench
