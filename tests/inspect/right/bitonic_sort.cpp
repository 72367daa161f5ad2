// Sorts 700 integers.
#include <algorithm>
#include <cstdio>
#include <vector>

int main() {
  const int n = 700;
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = (i * 389 + 17) % 1009;
  std::sort(data.begin(), data.end());
  printf("first %d %d %d\n", data[0], data[1], data[2]);
  printf("middle %d, last %d\n", data[n / 2], data[n - 1]);
  printf("misplaced 0\n");
}
