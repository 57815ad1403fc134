#!/bin/sh
# Runs the private root's Bazel in the current directory, setting the root up first where needed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(sh "$here/create.sh")
if [ "$(id -u)" = 0 ]; then
  exec unshare --mount sh "$here/enter.sh" "$root" bazel "$@"
else
  exec unshare --mount --map-root-user sh "$here/enter.sh" "$root" bazel "$@"
fi
