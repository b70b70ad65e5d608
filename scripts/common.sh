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
  memory=$(awk '/MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
  if ((memory < 1)); then memory=1; fi
  echo $((memory < cores ? memory : cores))
}

# ccache where there is one, whoever configures.
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# configure DIR FLAGS...: with Ninja.
configure() {
  local dir=$1
  shift
  cmake -S . -B "$dir" -G Ninja "$@" > "$dir.configure.log" 2>&1 ||
    { cat "$dir.configure.log" >&2; return 1; }
}

configure_release() {
  mkdir -p "$(dirname "$build")"
  configure "$build" -D CMAKE_BUILD_TYPE=Release -D SHARDPROP_TOOLS=ON \
    -D SHARDPROP_TESTS=ON -D SHARDPROP_INSTALL=ON
}
