# Sourced by ./run and ./test: the Debian packages that tilestep needs to build, and their installation.

build_packages=(
  cmake ninja-build g++ pkg-config
  libglfw3-dev libimgui-dev libfreetype-dev libfmt-dev nlohmann-json3-dev libcli11-dev libmd4c-dev
  libstb-dev zlib1g-dev libsqlite3-dev libboost-dev libboost-context-dev libseccomp-dev
  libegl-dev libgl-dev libegl1 libgl1 libgl1-mesa-dri libegl-mesa0 libglx-mesa0
  fonts-inter fonts-jetbrains-mono
)
test_packages=(catch2 chromium xvfb xauth xdotool procps clang clang-format lld ccache openssh-client bubblewrap)
# The SSH server is for a test over loopback. Under a service manager the package would start a public server,
# so installing it is left to the machine's owner, and the test says that it is skipped.
[ -d /run/systemd/system ] || test_packages+=(openssh-server)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# Runs a command with its output in the file $1, which is shown if the command fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Installs those of the packages named that are missing. Where that cannot be done it says what is
# needed and goes on: the libraries may be there without the package system knowing.
need_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "no apt-get here; these Debian packages (or equivalents) are needed: $*"
    return 0
  fi
  local missing=() package
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
      say "please install as root: apt-get install ${missing[*]}"
      return 0
    fi
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log=$root/build/packages.log
  quietly "$log" "${as_root[@]}" apt-get -q update || say "the package lists could not be updated"
  local known=()
  for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      known+=("$package")
    else
      say "this system has no package $package"
    fi
  done
  [ ${#known[@]} -gt 0 ] || return 0
  quietly "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install "${known[@]}" ||
    say "not everything could be installed; continuing without it"
}

# Processor seconds and wall time of stages, in build/stages.txt: tests/cost/report prints them.
begin_stages() {
  mkdir -p "$root/build"
  : >"$root/build/stages.txt"
}
# Runs a command as the stage $1, and records its time. `times` must run in this very shell: a subshell has other
# children.
stage() {
  local name=$1 status=0 wall=$SECONDS before after
  shift
  times >"$root/build/times.txt"
  before=$(processor_seconds)
  printf '%s\t-\t-\n' "$name" >>"$root/build/stages.txt"  # begun, should it be the last
  "$@" || status=$?
  times >"$root/build/times.txt"
  after=$(processor_seconds)
  printf '%s\t%s\t%s\n' "$name" $((after - before)) $((SECONDS - wall)) >>"$root/build/stages.txt"
  return $status
}
# Processor seconds of all finished commands, from the output of `times`.
processor_seconds() {
  LC_ALL=C sed -n 2p "$root/build/times.txt" | LC_ALL=C awk '{
    for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); sum += part[1] * 60 + part[2] }
    printf "%d", sum }'
}

# Configures the preset $1 and builds it with all cores, in build/$2. The remaining arguments go to the
# first configuration.
build_preset() {
  local preset=$1 folder=$root/build/$2
  local generator=()
  if [ ! -f "$folder/CMakeCache.txt" ]; then
    generator=("${@:3}")
    if command -v ninja >/dev/null; then
      generator+=(-G Ninja)
      if command -v ccache >/dev/null && [ -z "${TILESTEP_NO_CCACHE:-}" ]; then
        generator+=(-D "CMAKE_CXX_COMPILER_LAUNCHER=$root/.ci/compile" -D "CMAKE_CUDA_COMPILER_LAUNCHER=$root/.ci/compile")
      fi
    fi
  fi
  (cd "$root" && quietly "$root/build/$2-configure.log" cmake --preset "$preset" "${generator[@]}") ||
    return 1  # said here because `set -e` does not hold where a caller tests the result
  cuda_line=$(grep -h 'CUDA backend' "$root/build/$2-configure.log" | sed 's/^-- //' || true)
  say "$cuda_line"
  say "building $preset"
  if [ -t 2 ]; then
    (cd "$root" && cmake --build --preset "$preset" --parallel "$(nproc)" >&2)
  else
    (cd "$root" && cmake --build --preset "$preset" --parallel "$(nproc)" 2>&1) |
      tee "$root/build/$2-build.log" | every_ten_percent || {
        tail -n 100 "$root/build/$2-build.log" >&2
        return 1
      }
  fi
}

# Reduces a build's output, when it is not on a terminal, to one line per ten percent.
every_ten_percent() {
  local line next=10 started=$SECONDS
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      local percent=$((100 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    elif [[ $line =~ ^\[\ *([0-9]+)%\] ]]; then
      local percent=${BASH_REMATCH[1]}
    else
      continue
    fi
    if [ "$percent" -ge $next ]; then
      say "  $percent % after $((SECONDS - started)) s"
      next=$((percent / 10 * 10 + 10))
    fi
  done
}
