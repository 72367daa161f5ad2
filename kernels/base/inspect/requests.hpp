#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace tilestep::inspect {

enum class Space : std::uint8_t { global, shared };
enum class Use : std::uint8_t { read, write, atomic };

/// Bytes that global memory moves at a time (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").
inline constexpr std::uintptr_t kSector = 32;
inline constexpr int kLanes = 32;  ///< of a warp

/// One access of a warp: all lanes that came to the same place for the same time.
struct Request {
  std::uint32_t lanes = 0;  ///< those that took part
  std::uint32_t bytes = 0;  ///< of a lane
  std::array<std::uintptr_t, 32> address{};
};

/// What a request moves. Global memory: sectors of 32 bytes, and as many as would hold the bytes that the lanes want.
/// Shared memory: turns, in each of which all 32 banks give a word of 4 bytes (CUDA C++ Programming Guide, "Shared Memory");
/// 8 bytes a lane take two turns at least, 16 four, and half of that where lanes want the same in pairs.
struct Cost {
  int moved = 0;  ///< sectors or turns
  int least = 0;
  std::uint32_t wanted = 0;  ///< different bytes
};
Cost sectors_of(const Request& request);
Cost turns_of(const Request& request);
/// Bytes of the pieces in which a lane's are moved: 1, 2, 4, 8 or 16, by their number and where they lie.
std::uint32_t piece_of(const Request& request);
/// In how many parts of the warp, one after the other, shared memory serves it: no turn gives more than 128 bytes; two parts
/// are one where lanes want the same in pairs, as an H200's counters say.
int parts_of(const Request& request);

/// All requests of one place of the source in a launch.
struct Traffic {
  Space space = Space::global;
  Use use = Use::read;
  std::uint32_t bytes = 0;  ///< of a lane
  std::uint64_t requests = 0, lanes = 0, moved = 0, least = 0, wanted = 0;
  Request worst;  ///< the one with the most to spare
  std::uint32_t worst_block = 0, worst_warp = 0;
  int worst_moved = 0, worst_least = 0;
};

/// Sums up the requests of a launch by call site.
class Requests {
 public:
  void add(std::uint32_t block, std::uint32_t warp, std::uint32_t site, Space space, Use use,
           const Request& request);
  std::map<std::uint32_t, Traffic> take() { return std::exchange(traffic_, {}); }

 private:
  std::map<std::uint32_t, Traffic> traffic_;
};

}  // namespace tilestep::inspect
