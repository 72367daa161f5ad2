// Conway's Game of Life on a torus. The two boards swap roles after each generation.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                            \
    }                                                                                \
  } while (0)

constexpr int kWidth = 40, kHeight = 25, kGenerations = 5;

__global__ void step(const unsigned char* now, unsigned char* next, int* live) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  bool alive = false;
  if (x < kWidth && y < kHeight) {
    const int self = now[y * kWidth + x];
    int neighbors = -self;
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        neighbors += now[(y + dy + kHeight) % kHeight * kWidth + (x + dx + kWidth) % kWidth];
      }
    }
    alive = neighbors == 3 || (self == 1 && neighbors == 2);
    next[y * kWidth + x] = alive;
  }
  // A warp is one row of the block.
  const unsigned mask = __ballot_sync(0xffffffffu, alive);
  if (threadIdx.x == 0) atomicAdd(live, __popc(mask));
}

int main() {
  const int n = kWidth * kHeight;
  std::vector<unsigned char> board(n);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x)
      board[y * kWidth + x] = (5 * x * x + x * y + 3 * y * y * y) % 11 < 4;
  }

  unsigned char *d_now, *d_next;
  int* d_live;
  CHECK(cudaMalloc(&d_now, n));
  CHECK(cudaMalloc(&d_next, n));
  CHECK(cudaMalloc(&d_live, kGenerations * sizeof(int)));
  CHECK(cudaMemcpy(d_now, board.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_live, 0, kGenerations * sizeof(int)));

  const dim3 block(32, 8);
  const dim3 grid((kWidth + block.x - 1) / block.x, (kHeight + block.y - 1) / block.y);
  for (int g = 0; g < kGenerations; ++g) {
    step<<<grid, block>>>(d_now, d_next, d_live + g);
    CHECK(cudaGetLastError());
    std::swap(d_now, d_next);
  }
  CHECK(cudaDeviceSynchronize());

  int live[kGenerations];
  CHECK(cudaMemcpy(live, d_live, sizeof(live), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(board.data(), d_now, n, cudaMemcpyDeviceToHost));
  for (int g = 0; g < kGenerations; ++g) printf("generation %d: %d live\n", g + 1, live[g]);
  int checksum = 0;
  for (int i = 0; i < n; ++i) checksum += board[i] * i;
  printf("checksum %d\n", checksum);

  CHECK(cudaFree(d_now));
  CHECK(cudaFree(d_next));
  CHECK(cudaFree(d_live));
}
