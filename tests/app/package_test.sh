#!/bin/sh
# Installs the build in $1 with the cmake $2, packs it with the cpack $3, and runs the program from
# where each of these put it, in another folder and with nothing of the build's in the environment.
set -eu
build=$(cd "$1" && pwd) cmake=$2 cpack=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# $1: what the command behind it must print.
says() {
  wanted=$1
  shift
  "$@" >"$work/said" || fail "$*"
  grep -q -- "$wanted" "$work/said" || fail "$* does not say $wanted"
}

# $1: the program. Lists, runs and draws with it.
try() {
  [ -x "$1" ] || fail "$1 is not there"
  cd /
  clean="env -i HOME=$work/home PATH=/usr/bin:/bin"
  says '^online-softmax' $clean "$1" list
  says 'checks ok' $clean "$1" run online-softmax --backend emulated
  # A kernel that is edited needs nothing of the build: its headers are in the program.
  rm -rf "$work/mine"
  $clean "$1" exercise reset online-softmax divide-once --out "$work/mine" >"$work/said" || fail "$1 exercise reset"
  if command -v g++ >/dev/null; then
    $clean "$1" run online-softmax --backend emulated --kernel "$work"/mine/*.cu >"$work/said" 2>&1 || true
    grep -q 'your ' "$work/said" || { cat "$work/said"; fail "$1 run --kernel"; }
  else
    echo "no g++ here: edited kernels are not tested"
  fi
  rm -f "$work/a.png"
  $clean "$1" doctor >"$work/said"
  if grep -q 'ok  *pictures' "$work/said"; then
    $clean "$1" shot online-softmax --backend emulated --out "$work/a.png" || fail "$1 shot"
    [ -s "$work/a.png" ] || fail "$1 shot wrote nothing"
  else
    echo "no pictures can be drawn here: shot is not tested"
  fi
}

# $1: the folder that bin, lib and share lie in.
check_tree() {
  for file in share/applications/tilestep.desktop share/icons/hicolor/scalable/apps/tilestep.svg \
    share/man/man1/tilestep.1 share/doc/tilestep/copyright share/doc/tilestep/third-party.txt; do
    [ -s "$1/$file" ] || fail "$1/$file is not there"
  done
  grep -q 'backend' "$1/share/man/man1/tilestep.1" || fail "the man page knows no options of run"
  grep -q 'Open Font License' "$1/share/doc/tilestep/third-party.txt" || fail "no font licence"
  try "$1/bin/tilestep"
  # Where the CUDA module is looked for: what lies there is found, and is none.
  mkdir -p "$1/lib/tilestep"
  echo 'no module' >"$1/lib/tilestep/tilestep_cuda.so"
  says 'lib/tilestep/tilestep_cuda.so' "$1/bin/tilestep" doctor
}

"$cmake" --install "$build" --prefix "$work/installed" >"$work/log" || { cat "$work/log"; exit 1; }
check_tree "$work/installed"

cd "$work"
generators=TGZ
if command -v dpkg-deb >/dev/null; then
  generators='TGZ;DEB'
else
  echo "no dpkg-deb here: the Debian package is not tested"
fi
"$cpack" --config "$build/CPackConfig.cmake" -G "$generators" -B "$work/packed" >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
mkdir moved
tar -xzf packed/*.tar.gz -C moved --strip-components=1
check_tree "$work/moved"
if [ "$generators" != TGZ ]; then
  dpkg-deb -x "$work"/packed/*.deb "$work/deb"
  check_tree "$work/deb/usr"
fi
