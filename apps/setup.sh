# Sourced by apps/quickstart and tests/run: what they need from Debian, and how they build. Not a command by itself.
# Sets `top` (the project's folder) and `jobs`; every message goes to stderr.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)

# What the command line needs to build. Other systems: the same libraries under their own packages' names.
build_packages=(g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev)
# What the tests need beyond that: the test and benchmark libraries, MPI for its backend,
# Python for the checks of the tree and the schemas, numpy for those of random worlds.
test_packages=(doctest-dev libbenchmark-dev libopenmpi-dev openmpi-bin python3 python3-jsonschema python3-numpy git)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 5; }

# need PACKAGE...: installs with apt what is missing; does nothing, without the network, where nothing is.
need() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: expecting the counterparts of: $*"; return 0; }
  local package missing=() installed
  installed=" $(dpkg-query -W -f='${Package}:${db:Status-Status} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do [[ $installed == *" $package:installed "* ]] || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  local root=() log
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "missing packages, and neither root nor sudo to install them: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  say "installing with apt: ${missing[*]}"
  log=$(mktemp)
  if "${root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends \
      "${missing[@]}" >>"$log" 2>&1; then
    rm -f "$log"
  else
    tail -n 30 "$log" >&2
    die "apt could not install ${missing[*]} (all its output: $log)"
  fi
}

# configure FOLDER [CMAKE OPTION...]: Release and Ninja, ccache where it is installed; prints only what goes wrong. Files of a module are compiled
# eight at a time, which takes a third of the time: all parse the same headers, and that is most of it. tests/wheel may have been in the folder.
configure() {
  local folder=$1 launcher=() log
  shift
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  log=$(mktemp)
  cmake -S "$top" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DMESHPLAN_WHEEL=OFF "${launcher[@]}" "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    rm -f "$log"
    die "cmake could not configure $folder"
  }
  rm -f "$log"
}

# build FOLDER [TARGET...]: progress on a terminal; elsewhere only what goes wrong.
build() {
  local folder=$1 quiet=(--quiet)
  shift
  [ -t 2 ] && quiet=()
  say "building in $folder with $jobs jobs"
  ninja -C "$folder" -j "$jobs" "${quiet[@]}" "$@" >&2 || die "the build failed: see above"
}
