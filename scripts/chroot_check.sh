#!/usr/bin/env bash
# Runs both commands of the README in a Debian 12 chroot with a fresh clone of
# HEAD and no packages. Both must succeed.
#
#   sudo scripts/chroot_check.sh [FOLDER]
#
# The script needs root and debootstrap. Packages come from the sources of this
# machine's apt. The folder (a new one in TMPDIR) is kept if a command fails.
set -euo pipefail
source "$(dirname "$0")/common.sh"

if ((EUID != 0)) || ! command -v debootstrap > /dev/null; then
  echo "scripts/chroot_check.sh needs root and debootstrap" >&2
  exit 2
fi
root=${1:-$(mktemp -d "${TMPDIR:-/tmp}/shardprop-chroot.XXXXXX")}

mirror=$(apt-get indextargets \
  --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' |
  awk '$2 == "bookworm" && $3 == "main" { uri = $1 } END { print uri }')
if [[ -z $mirror ]]; then
  echo "this machine's apt knows no Debian 12 to install from" >&2
  exit 2
fi

say "Debian 12 into $root"
if [[ ! -x $root/usr/bin/apt-get ]]; then
  debootstrap --variant=minbase bookworm "$root" "$mirror" > "$root.log" 2>&1 ||
    { tail -20 "$root.log"; exit 1; }
fi
# The chroot needs the same settings as this machine to reach the mirror.
cp /etc/resolv.conf "$root/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*proxy*; do
  if [[ -f $file ]]; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
done

mounted=()
clean_up() {
  for folder in "${mounted[@]}"; do umount "$folder"; done
}
trap clean_up EXIT
if ! mountpoint -q "$root/proc" && mount -t proc proc "$root/proc" 2> /dev/null; then
  mounted+=("$root/proc")
fi

rm -rf "$root/opt/shardprop"
git clone -q --no-hardlinks . "$root/opt/shardprop"

inside() {
  say "In the chroot: $*"
  local began=$SECONDS
  chroot "$root" /usr/bin/env -i HOME=/opt TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} \
    ${SHARDPROP_JOBS:+SHARDPROP_JOBS="$SHARDPROP_JOBS"} \
    /bin/bash -c "cd /opt/shardprop && $*"
  echo "($((SECONDS - began)) s)"
}
inside scripts/quickstart.sh --yes
inside scripts/test.sh

say "Both commands ended well at $(git -C "$root/opt/shardprop" rev-parse --short=12 HEAD)"
clean_up
mounted=()
if (($# == 0)); then rm -rf "$root" "$root.log"; fi
