// What a program calls of the C and C++ libraries in place of their own (compile.cpp renames them): its memory on the host
// is noted, and its end is ours. And what the compilers call where code begins that no branch divides, and before
// comparisons.

#include <cstdint>
#include <cstdlib>
#include <new>

#include "kernels/base/inspect/run.hpp"
#include "kernels/base/inspect/session.hpp"

namespace tilestep::inspect {
namespace {

void* noted(void* memory, std::size_t bytes) {
  Session::current().host_allocated(memory, bytes);
  return memory;
}

}  // namespace

extern "C" {

void* tilestep_malloc(std::size_t bytes) {
  return noted(std::malloc(bytes), bytes);
}
void* tilestep_calloc(std::size_t count, std::size_t bytes) {
  return noted(std::calloc(count, bytes), count * bytes);
}
void* tilestep_realloc(void* memory, std::size_t bytes) {
  Session::current().host_freed(memory);
  return noted(std::realloc(memory, bytes), bytes);
}
void* tilestep_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return noted(std::aligned_alloc(alignment, bytes), bytes);
}
void tilestep_free(void* memory) {
  Session::current().host_freed(memory);
  std::free(memory);
}
// Of each form one, since one symbol takes the place of one alone.
#define TILESTEP_NEW(form)                                                                     \
  void* tilestep_new##form(std::size_t bytes) {                                                \
    return noted(::operator new(bytes), bytes);                                                \
  }                                                                                            \
  void* tilestep_new##form##_aligned(std::size_t bytes, std::align_val_t alignment) {          \
    return noted(::operator new(bytes, alignment), bytes);                                     \
  }                                                                                            \
  void tilestep_delete##form(void* memory) {                                                   \
    Session::current().host_freed(memory);                                                     \
    ::operator delete(memory);                                                                 \
  }                                                                                            \
  void tilestep_delete##form##_sized(void* memory, std::size_t) {                              \
    tilestep_delete##form(memory);                                                             \
  }                                                                                            \
  void tilestep_delete##form##_aligned(void* memory, std::align_val_t alignment) {             \
    Session::current().host_freed(memory);                                                     \
    ::operator delete(memory, alignment);                                                      \
  }                                                                                            \
  void tilestep_delete##form##_sized_aligned(void* memory, std::size_t, std::align_val_t to) { \
    tilestep_delete##form##_aligned(memory, to);                                               \
  }
#define TILESTEP_COMPARES(of, type)                           \
  void tilestep_compares##of(type, type) {                    \
    Session::current().compared(__builtin_return_address(0)); \
  }
TILESTEP_COMPARES(1, std::uint8_t)
TILESTEP_COMPARES(2, std::uint16_t)
TILESTEP_COMPARES(4, std::uint32_t)
TILESTEP_COMPARES(8, std::uint64_t)
// One symbol may take the place of one alone.
TILESTEP_COMPARES(_const1, std::uint8_t)
TILESTEP_COMPARES(_const2, std::uint16_t)
TILESTEP_COMPARES(_const4, std::uint32_t)
TILESTEP_COMPARES(_const8, std::uint64_t)
TILESTEP_COMPARES(_float, float)
TILESTEP_COMPARES(_double, double)
TILESTEP_COMPARES(_switch, std::uint64_t)
void tilestep_steps() {
  // The frame of the caller, which keeps frame pointers.
  Session::current().stepped(__builtin_return_address(0),
                             *static_cast<void***>(__builtin_frame_address(0)));
}
TILESTEP_NEW()
TILESTEP_NEW(_array)
[[noreturn]] void tilestep_exit(int status) {
  end_program(status);
}
[[noreturn]] void tilestep_abort() {
  Session::current().find({Kind::crash,
                           0,
                           0,
                           simt::emulated::place_here().callers,
                           {},
                           0,
                           "the program calls abort()"});
  end_program(-1);
}
}

const char* const kProgramWords =
    "malloc tilestep_malloc\n"
    "calloc tilestep_calloc\n"
    "realloc tilestep_realloc\n"
    "aligned_alloc tilestep_aligned_alloc\n"
    "free tilestep_free\n"
    "_Znwm tilestep_new\n"
    "_Znam tilestep_new_array\n"
    "_ZnwmSt11align_val_t tilestep_new_aligned\n"
    "_ZnamSt11align_val_t tilestep_new_array_aligned\n"
    "_ZdlPv tilestep_delete\n"
    "_ZdaPv tilestep_delete_array\n"
    "_ZdlPvm tilestep_delete_sized\n"
    "_ZdaPvm tilestep_delete_array_sized\n"
    "_ZdlPvSt11align_val_t tilestep_delete_aligned\n"
    "_ZdaPvSt11align_val_t tilestep_delete_array_aligned\n"
    "_ZdlPvmSt11align_val_t tilestep_delete_sized_aligned\n"
    "_ZdaPvmSt11align_val_t tilestep_delete_array_sized_aligned\n"
    "exit tilestep_exit\n"
    "abort tilestep_abort\n"
    "__sanitizer_cov_trace_pc tilestep_steps\n"
    "__sanitizer_cov_trace_cmp1 tilestep_compares1\n"
    "__sanitizer_cov_trace_cmp2 tilestep_compares2\n"
    "__sanitizer_cov_trace_cmp4 tilestep_compares4\n"
    "__sanitizer_cov_trace_cmp8 tilestep_compares8\n"
    "__sanitizer_cov_trace_const_cmp1 tilestep_compares_const1\n"
    "__sanitizer_cov_trace_const_cmp2 tilestep_compares_const2\n"
    "__sanitizer_cov_trace_const_cmp4 tilestep_compares_const4\n"
    "__sanitizer_cov_trace_const_cmp8 tilestep_compares_const8\n"
    "__sanitizer_cov_trace_cmpf tilestep_compares_float\n"
    "__sanitizer_cov_trace_cmpd tilestep_compares_double\n"
    "__sanitizer_cov_trace_switch tilestep_compares_switch\n";

}  // namespace tilestep::inspect
