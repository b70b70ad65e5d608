# The other scripts source this file for common paths and functions.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${SHARDPROP_BUILD:-build/release}

say() { printf '\n== %s\n' "$*"; }

# Prints $SHARDPROP_JOBS, or the number of jobs for which there are cores and
# memory.
jobs_that_fit() {
  if [[ -n ${SHARDPROP_JOBS:-} ]]; then
    echo "$SHARDPROP_JOBS"
    return
  fi
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 2000000) }' /proc/meminfo)
  if ((memory < 1)); then memory=1; fi
  echo $((memory < cores ? memory : cores))
}

# launcher_flags DIR prints the flags for ccache, if it is installed when DIR is
# first configured. Another compile command later would rebuild all of DIR.
launcher_flags() {
  if [[ ! -f $1/CMakeCache.txt ]] && command -v ccache > /dev/null; then
    echo "-DCMAKE_CXX_COMPILER_LAUNCHER:STRING=ccache"
  fi
}

# configure DIR FLAGS... configures DIR with Ninja.
configure() {
  local dir=$1
  shift
  # shellcheck disable=SC2046: one flag or none
  cmake -S . -B "$dir" -G Ninja $(launcher_flags "$dir") "$@" \
    > "$dir.configure.log" 2>&1 ||
    { cat "$dir.configure.log" >&2; return 1; }
}

# configure_preset NAME configures a preset of CMakePresets.json in build/NAME.
configure_preset() {
  # shellcheck disable=SC2046: one flag or none
  cmake --preset "$1" $(launcher_flags "build/$1") > /dev/null
}

# configure_release FLAGS...
configure_release() {
  mkdir -p "$(dirname "$build")"
  configure "$build" -D CMAKE_BUILD_TYPE=Release -D SHARDPROP_TOOLS=ON \
    -D SHARDPROP_TESTS=ON -D SHARDPROP_INSTALL=ON "$@"
}
