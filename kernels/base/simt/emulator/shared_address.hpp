#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/location.hpp"

namespace tilestep::simt::emulated {

/// A 32-bit address of shared memory, as PTX has them. It has the same remainder by 1024 as the
/// pointer. A thread whose pointer leads elsewhere ends with an Error.
std::uint32_t shared_address_of(const void* memory);
/// The memory at such an address. A thread ends with an Error where `bytes` from there do not lie
/// in the block's shared memory, or the address is no multiple of `alignment`.
void* shared_memory_at(std::uint32_t address, std::size_t bytes, std::size_t alignment);

}  // namespace tilestep::simt::emulated
