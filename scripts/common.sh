# Sourced by the other scripts: where things are and how they are said.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${SHARDPROP_BUILD:-build/release}

say() { printf '\n== %s\n' "$*"; }

# $SHARDPROP_JOBS, or as many as there are cores and memory has room for.
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

# launcher_flags DIR: ccache, if there is one when DIR is configured first.
# Another command to compile with would build anew what DIR holds already.
launcher_flags() {
  if [[ ! -f $1/CMakeCache.txt ]] && command -v ccache > /dev/null; then
    echo "-DCMAKE_CXX_COMPILER_LAUNCHER:STRING=ccache"
  fi
}

# configure DIR FLAGS...: with Ninja.
configure() {
  local dir=$1
  shift
  # shellcheck disable=SC2046: one flag or none
  cmake -S . -B "$dir" -G Ninja $(launcher_flags "$dir") "$@" \
    > "$dir.configure.log" 2>&1 ||
    { cat "$dir.configure.log" >&2; return 1; }
}

# configure_preset NAME: a preset of CMakePresets.json, into build/NAME.
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
