#!/bin/sh
# reproducible.sh [TARGET...]: builds TARGETs twice, in two directories, each from nothing, and compares.
#
# By default the packages of //dist that leave the machine. The second clone lies elsewhere, with an
# output base of its own, and neither may take results from a cache: what is equal is equal because it was
# made equal. Takes two whole builds; .ci/nightly runs it.
set -eu

[ $# -gt 0 ] || set -- //dist:linux_sdk
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)

clean() {
  for clone in "$work/one" "$work/another/place"; do
    if [ -d "$clone" ]; then
      (cd "$clone" && ./bazelw --output_base="$work/base-$(basename "$clone")" shutdown) || :
    fi
  done
  chmod -R u+w "$work"
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

# sums CLONE TARGET...: the sha256 of each file that the targets make.
sums() {
  clone=$1
  shift
  mkdir -p "$clone"
  git -C "$top" archive HEAD | tar -x -C "$clone"
  (
    cd "$clone"
    bazelw() { ./bazelw --output_base="$work/base-$(basename "$clone")" "$@"; }
    bazelw build --disk_cache= "$@" >&2
    bazelw cquery --output=files "$@" 2>/dev/null | sort | while read -r file; do
      sha256sum "$file"
    done
  )
}

sums "$work/one" "$@" >"$work/sums-one"
sums "$work/another/place" "$@" >"$work/sums-another"
if ! [ -s "$work/sums-one" ]; then
  echo "reproducible: $* make no files" >&2
  exit 1
fi
if ! diff "$work/sums-one" "$work/sums-another"; then
  echo "reproducible: the two builds differ" >&2
  exit 1
fi
echo "reproducible: two builds in two directories are bit-identical:"
cat "$work/sums-one"
