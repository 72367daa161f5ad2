#include <cmath>
#include <cstdio>
#include <vector>

int number(int i) {
  return i * 5 % 13 - 6;
}

std::vector<double> filled(int count, int first) {
  std::vector<double> all(count);
  for (int i = 0; i < count; ++i) all[i] = number(first + i);
  return all;
}

void print(const char* name, const std::vector<double>& all) {
  double sum = 0, weighted = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += all[i];
    weighted += all[i] * static_cast<double>(i % 7 + 1);
  }
  std::printf("%s %.3f %.3f\n", name, sum, weighted);
}

int main() {
  constexpr int m = 9, n = 7, k = 5, lda = 11, ldb = 8, ldc = 10;
  const std::vector<double> a = filled(lda * k, 0), b = filled(ldb * k, 1);
  std::vector<double> c = filled(ldc * n, 2);
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += a[row + lda * i] * b[column + ldb * i];
      c[row + ldc * column] = 2 * sum + 0.5 * c[row + ldc * column];
    }
  }
  print("sgemm", c);

  const std::vector<double> da = filled(k * m, 3), db = filled(k * n, 4);
  std::vector<double> dc(m * n);
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      for (int i = 0; i < k; ++i) dc[row + m * column] += da[i + k * row] * db[i + k * column];
    }
  }
  print("dgemm", dc);

  const std::vector<double> x = filled(32, 5);
  std::vector<double> y = filled(32, 6);
  for (int row = 0; row < m; ++row) {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += a[row + lda * i] * x[2 * i];
    y[3 * row] = 2 * sum;
  }
  print("sgemv", y);
  for (int i = 0; i < k; ++i) {
    double sum = 0;
    for (int row = 0; row < m; ++row) sum += a[row + lda * i] * x[row];
    y[k - 1 - i] = 0.5 * sum + 2 * y[k - 1 - i];
  }
  print("sgemv", y);
  for (int i = 0; i < 16; ++i) y[i] += 0.5 * x[2 * i];
  for (int i = 0; i < 8; ++i) y[4 * i] *= 2;
  print("saxpy", y);
  double product = 0, squares = 0;
  for (int i = 0; i < 32; ++i) {
    product += x[i] * y[i];
    squares += x[i] * x[i];
  }
  std::printf("%.3f %.3f\n", product, std::sqrt(squares));
}
