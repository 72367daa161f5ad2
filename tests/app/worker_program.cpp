#include <unistd.h>

#include <cstring>

#include "app/worker/worker_loop.hpp"

/// `tilestep worker` and nothing else of tilestep.
int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "worker") != 0) return 2;
  return tilestep::app::worker_loop(STDIN_FILENO, STDOUT_FILENO);
}
