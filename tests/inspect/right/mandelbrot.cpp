// Mandelbrot iteration counts.
#include <cstdio>

int main() {
  const int width = 45, height = 34, max_iterations = 30;
  int sum = 0, inside = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float c_re = -2.03f + x * 0.0625f, c_im = 1.04f - y * 0.0625f;
      float re = 0.0f, im = 0.0f;
      int count = 0;
      while (count < max_iterations && re * re + im * im <= 4.0f) {
        const float new_re = re * re - im * im + c_re;
        im = 2.0f * re * im + c_im;
        re = new_re;
        ++count;
      }
      sum += count;
      inside += count == max_iterations;
      if (y % 10 == 2) putchar(count == max_iterations ? '#' : count > 5 ? '+' : '.');
    }
    if (y % 10 == 2) putchar('\n');
  }
  printf("inside %d, sum %d\n", inside, sum);
}
