#!/usr/bin/env bash
# build.sh [FOLDER]: builds the documents as a site, by default in site/. Fails where a link leads nowhere.
#
# MkDocs and its plugins are installed, pinned by hash, below the user's cache directory, once.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$(realpath -m "${1:-$root/site}")

version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in
  3.12 | 3.14) ;;
  *)
    echo "build.sh: requirements.txt is pinned for Python 3.12 and 3.14, and python3 is $version; put one of these on PATH" >&2
    exit 1
    ;;
esac

key=$(cat "$here/requirements.txt" | sha256sum | cut -c 1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/elizainference
tools=$cache/docs-$key
if [ ! -d "$tools" ]; then
  mkdir -p "$cache"
  partial=$(mktemp -d "$cache/docs.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  # Installed beside, not as a virtual environment: one cannot be moved to its place once it is complete.
  python3 -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
    --target "$partial" --requirement "$here/requirements.txt"
  [ -d "$tools" ] || mv "$partial" "$tools"
fi

# A copy, in which links to what is not a document lead to the sources.
work=$(mktemp -d)
trap 'rm -rf "$work" ${partial:+"$partial"}' EXIT
export NO_MKDOCS_2_WARNING=1 PYTHONPATH=$tools:$root/python
python3 "$here/stage.py" "$root" "$work"
python3 -m mkdocs build --quiet --strict --config-file "$work/mkdocs.yml" --site-dir "$out"
echo "$out/index.html"
