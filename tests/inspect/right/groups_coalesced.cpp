#include <algorithm>
#include <cstdio>
#include <vector>

int main() {
  constexpr int n = 200, threads = 64;
  std::vector<int> in(n), sums(threads), before(threads), largest(threads), votes(threads);
  for (int i = 0; i < n; ++i) in[i] = i * 37 % 101;
  int count = 0, sum = 0;
  for (const int each : in) {
    if (each % 2 != 0) ++count, sum += each;
  }
  std::printf("%d odd numbers, sum %d\n", count, sum);

  for (int warp = 0; warp < threads; warp += 32) {
    for (int step = 0; step < 3; ++step) {
      std::vector<int> active;
      for (int i = warp; i < warp + 32; ++i) {
        if (step < in[i] % 4) active.push_back(i);
      }
      unsigned ballot = 0;
      bool even = false;
      for (std::size_t rank = 0; rank < active.size(); ++rank) {
        ballot |= (active[rank] % 3 == 0 ? 1u : 0u) << rank;
        even = even || active[rank] % 2 == 0;
      }
      for (std::size_t rank = 0; rank < active.size(); ++rank) {
        const int after = rank + 1 < active.size() ? active[rank + 1] : active[rank];
        const int other = rank > 0 ? active[rank - 1] : active[rank];
        votes[active[rank]] += after - other + (even ? static_cast<int>(ballot % 1000) : 0);
      }
    }
  }
  for (int i = 0; i < threads; ++i) {
    const bool first = i % 8 == 0;
    sums[i] = (first ? 0 : sums[i - 1]) + in[i];
    before[i] = sums[i] - in[i];
    largest[i] = first ? in[i] : std::max(largest[i - 1], in[i]);
  }
  const auto print = [&](const char* name, const std::vector<int>& all) {
    long long weighted = 0;
    for (int i = 0; i < threads; ++i) weighted += static_cast<long long>(all[i]) * (i + 1);
    std::printf("%s %lld\n", name, weighted);
  };
  print("votes", votes);
  print("sums", sums);
  print("before", before);
  print("largest", largest);
}
