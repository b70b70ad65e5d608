#!/usr/bin/env bash
# Installs the packages of Debian 12 that building and testing shardprop need.
#
#   scripts/install_packages.sh [--yes] [--full]
#
# It prints the packages and, on a terminal, asks first unless --yes is given.
# --full adds the packages for scripts/check_full.sh (clang 19 and its tools).
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config python3               # the tools
  libexpected-dev libfmt-dev libboost-dev libeigen3-dev          # the library
  nlohmann-json3-dev libzip-dev zlib1g-dev libtomlplusplus-dev  # files
  libcli11-dev                                                  # command line
  doctest-dev librapidcheck-dev                                 # tests
)
full=(git clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev
  libbenchmark-dev python3-venv)

ask=true
for flag in "$@"; do
  case $flag in
    --yes) ask=false ;;
    --full) packages+=("${full[@]}") ;;
    *)
      echo "usage: scripts/install_packages.sh [--yes] [--full]" >&2
      exit 2
      ;;
  esac
done

if ! command -v apt-get > /dev/null; then
  echo "No apt-get here. On Debian 12 these packages are needed; install what"
  echo "your system calls them: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2> /dev/null || true)
  if [[ $status != "install ok installed" ]]; then missing+=("$package"); fi
done
if ((${#missing[@]} == 0)); then
  echo "All packages are installed."
  exit 0
fi

as_root=()
if ((EUID != 0)); then as_root=(sudo); fi
echo "To be installed with apt-get: ${missing[*]}"
if $ask && [[ -t 0 && -t 1 ]]; then
  read -r -p "Go on? [Y/n] " answer
  if [[ -n $answer && $answer != [Yy]* ]]; then
    echo "Nothing was installed."
    exit 1
  fi
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
