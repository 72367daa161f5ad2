#pragma once

/// \file
/// CUDA's words for the host compiler. Included by simt.hpp.

#include <tuple>
#include <utility>

#include "kernels/base/simt/checked.hpp"
#include "kernels/base/simt/emulator/emulated_atomics.hpp"
#include "kernels/base/simt/emulator/emulated_math.hpp"
#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"
#include "kernels/base/simt/emulator/emulator.hpp"
#include "kernels/base/simt/launch.hpp"

namespace tilestep::simt {

/// What a kernel takes for an array in global memory.
template <class T>
using Global = Checked<T>;
/// The same, with the promise that nothing else points to the elements (`T* __restrict__` on a
/// GPU).
template <class T>
using GlobalRestrict = Checked<T>;
/// A part of dynamic shared memory.
template <class T>
using Shared = Checked<T>;

/// `span` as a kernel argument; `name` is for error texts (a string literal).
template <class T>
Global<T> global(Span<T> span, const char* name) {
  emulated::name_memory(span.data, sizeof(T), name);
  return {span.data, span.count, name};
}

/// Shows a number: each thread that comes here adds `value` to the table *Watched* of the run.
template <class Number>
void watch(const char* name, Number value, Location at = Location::current()) {
  emulated::watch(name, static_cast<double>(value), at);
}

/// `count` elements of the block's dynamic shared memory, from `byte_offset` on (a multiple of T's
/// alignment). Under emulation they start with all bits set (NaN), and `count`, `byte_offset` and
/// each access are checked.
template <class T>
Shared<T> dynamic_shared(std::size_t count, std::size_t byte_offset = 0,
                         const char* name = "dynamic shared memory") {
  return {
      static_cast<T*>(emulated::dynamic_shared_memory(count * sizeof(T), byte_offset, alignof(T))),
      count, name};
}

namespace emulated {
/// An argument that is an array is memory that the launch uses.
template <class T>
void note_use(const Checked<T>& array, MemoryUse* uses, std::size_t& count) {
  if (array) uses[count++] = array.use();
}
template <class T>
void note_use(const T&, MemoryUse*, std::size_t&) {}
}  // namespace emulated

/// Runs `kernel` on every thread of the launch and waits for the end. Throws Error that names the
/// kernel for a launch that exceeds a limit of the device and for whatever goes wrong in a thread;
/// Cancelled if the device was asked to stop.
template <class... Params, class... Args>
void launch(Device& device, const Launch& shape, void (*kernel)(Params...), Args&&... args) {
  static_assert(sizeof...(Params) == sizeof...(Args),
                "the kernel takes another number of arguments");
  using Bound = std::pair<void (*)(Params...), std::tuple<Params...>>;
  // A stream may keep it beyond this call.
  const auto bound =
      std::make_shared<Bound>(kernel, std::tuple<Params...>(std::forward<Args>(args)...));
  MemoryUse uses[sizeof...(Params) + 1];
  std::size_t count = 0;
  std::apply([&](const auto&... each) { (emulated::note_use(each, uses, count), ...); },
             bound->second);
  emulated::launch(device, shape,
                   [](void* data) {
                     const Bound& call = *static_cast<const Bound*>(data);
                     std::apply(call.first, call.second);
                   },
                   bound, {uses, count});
}

}  // namespace tilestep::simt

// What people write and no kernel of ours needs: our own need not wait for a compiler that reads it.
#if defined(SIMT_EDITED)
#include "kernels/base/simt/toolkit/words.hpp"
#endif
