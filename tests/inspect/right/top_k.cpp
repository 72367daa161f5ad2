// The four largest values of each row with their columns.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

int main() {
  const int cols = 150;
  for (int r = 0; r < 9; r += 4) {
    std::vector<std::pair<int, int>> row;  // negated value, column
    for (int c = 0; c < cols; ++c) row.push_back({-((c * c + r * 31 + c * 3) % 127), c});
    std::sort(row.begin(), row.end());
    printf("row %d:", r);
    for (int i = 0; i < 4; ++i) printf(" %d@%d", -row[i].first, row[i].second);
    printf("\n");
  }
}
