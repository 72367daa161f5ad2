// Sum, minimum and the last index of a value above 70.
#include <algorithm>
#include <cfloat>
#include <cstdio>

int main() {
  float sum = 0.0f, minimum = FLT_MAX;
  int max_index = -1;
  for (int i = 0; i < 777; ++i) {
    const float value = static_cast<float>((i * 29 + 11) % 97 - 20);
    sum += value;
    minimum = std::min(minimum, value);
    if (value > 70.0f) max_index = i;
  }
  printf("sum %.0f, min %.0f, last index above 70: %d\n", sum, minimum, max_index);
}
