#include "kernels/systems/parallelism/run/team.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tilestep::parallelism {

void* Team::take(int rank, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 18, kAligned = 256;
  Pieces& pieces = pieces_[at(rank)];
  const std::size_t room = (bytes + kAligned - 1) / kAligned * kAligned;
  if (pieces.all.empty() || pieces.used + room > pieces.all.back().count()) {
    pieces.all.emplace_back(ranks_->at(rank), std::max(room, kPiece));
    pieces.all.back().fill(0xFF);
    pieces.used = 0;
  }
  void* made = pieces.all.back().span().data + pieces.used;
  pieces.used += room;
  return made;
}

int Team::add(const CallShape& shape, std::size_t notes) {
  Call& call = calls_.emplace_back();
  call.shape = shape;
  call.shape.ranks = count();
  call.to.fill(-1);
  call.from.fill(-1);
  const std::size_t room = at(room_of(call.shape) * kPack);
  const std::size_t blocks = at(shape.blocks);
  for (int rank = 0; rank < count(); ++rank) {
    call.room[at(rank)] = unwritten<float>(rank, room);
    call.flags[at(rank)] = uploaded(rank, std::vector<unsigned>(blocks * at(count()), 0u));
    call.epochs[at(rank)] = uploaded(rank, std::vector<unsigned>(blocks, 0u));
    if (notes > 0) call.tapes.push_back(std::make_unique<simt::Trace>(ranks_->at(rank), notes));
  }
  return static_cast<int>(calls_.size()) - 1;
}

void Team::join(int call, int rank, simt::Span<const float> in, simt::Span<float> out) {
  Call& its = calls_[at(call)];
  its.in[at(rank)] = in;
  its.out[at(rank)] = out;
}

void Team::neighbours(int call, int rank, int to, int from) {
  Call& its = calls_[at(call)];
  its.to[at(rank)] = to;
  its.from[at(rank)] = from;
}

void Team::make(int call, int rank) {
  Call& its = calls_[at(call)];
  const std::size_t place = at(rank);
  CallShape shape = its.shape;
  shape.rank = rank;
  shape.to = its.to[place];
  shape.from = its.from[place];
  CallArrays arrays;
  arrays.in = its.in[place];
  arrays.out = its.out;
  arrays.room = its.room;
  arrays.flags = its.flags;
  arrays.epochs = its.epochs[place];
  kernels_.call(*ranks_, call, shape, arrays,
                its.tapes.empty() ? simt::Tape{} : its.tapes[place]->tape());
}

void Team::require_met() const {
  for (const simt::Stuck& one : ranks_->stuck()) {
    throw Error(fmt::format("rank {} waited in vain for rank {}, in call {}", one.rank, one.from,
                            one.call + 1),
                ExitCode::check_failed);
  }
}

simt::Trace::Log Team::log(int call, int rank) const {
  return calls_[at(call)].tapes[at(rank)]->download();
}

std::vector<double> link_bytes(const Team& team, int call) {
  const auto ranks = static_cast<std::size_t>(team.count());
  std::vector<double> bytes(ranks * ranks, 0.0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const simt::TraceRecord& one : team.log(call, static_cast<int>(rank)).records) {
      if (one.site < kRoom) continue;
      const std::size_t owner = one.site % kRoom;
      if (owner == rank) continue;
      const bool stored = one.kind == simt::AccessKind::store;
      bytes[stored ? rank * ranks + owner : owner * ranks + rank] += one.bytes;
    }
  }
  return bytes;
}

}  // namespace tilestep::parallelism
