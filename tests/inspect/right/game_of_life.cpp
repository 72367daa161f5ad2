// Conway's Game of Life on a torus.
#include <cstdio>
#include <vector>

int main() {
  const int width = 40, height = 25, n = width * height;
  std::vector<int> board(n), next(n);
  for (int i = 0; i < n; ++i) {
    const int x = i % width, y = i / width;
    board[i] = (5 * x * x + x * y + 3 * y * y * y) % 11 < 4;
  }
  for (int g = 1; g <= 5; ++g) {
    int live = 0;
    for (int i = 0; i < n; ++i) {
      int neighbors = -board[i];
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          const int x = (i % width + dx + width) % width, y = (i / width + dy + height) % height;
          neighbors += board[y * width + x];
        }
      }
      next[i] = neighbors == 3 || (board[i] && neighbors == 2);
      live += next[i];
    }
    board = next;
    printf("generation %d: %d live\n", g, live);
  }
  int checksum = 0;
  for (int i = 0; i < n; ++i) checksum += board[i] * i;
  printf("checksum %d\n", checksum);
}
