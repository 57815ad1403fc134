#!/bin/sh
# Prints the path of the private root, after making it where it does not exist yet.
#
# The packages named in the file beside this script, with all they depend on, come from Debian
# unstable through the host's apt, and are unpacked below the user's cache directory. They are not
# configured: their scripts would have to run as root, and what a build misses of their work are a
# few links. So the same steps do for root and for anyone else, and the host stays as it is.
#
# Safe to run twice at once and to interrupt: a lock lets one run work, a root appears under its
# name only when complete, and downloaded packages wait for the next attempt.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/elizainference

# Another list of packages, or another way to unpack them, is another root.
key=$(cat "$here/packages" "$here/create.sh" | sha256sum | cut -c 1-12)
root=$cache/private-root-$key
debs=$root.debs
tmp=$root.tmp

say() { printf 'bazelw: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# Dies where the root could not be made or entered, before anything is downloaded.
check_host() {
  for tool in apt-get dpkg-deb flock unshare; do
    command -v "$tool" >/dev/null || die "there is no $tool here. Where the public Bazel registry" \
      "cannot be used, Bazel is set up in a private root, which takes the apt-get and dpkg-deb of" \
      "Debian or Ubuntu and the flock and unshare of util-linux. Anywhere else, install Bazelisk" \
      "(https://bazel.build/install/bazelisk) and run this again with access to bcr.bazel.build."
  done

  if [ "$(id -u)" = 0 ]; then
    unshare --mount true 2>/dev/null || die "root may not create mount namespaces here, as in a" \
      "container without CAP_SYS_ADMIN, and the private root is entered through one. Start the" \
      "container with --cap-add=SYS_ADMIN --security-opt seccomp=unconfined (or --privileged), or" \
      "use an image with Bazelisk and access to bcr.bazel.build."
  else
    unshare --map-root-user --mount true 2>/dev/null || die "$(id -un) is not root and may not" \
      "create user namespaces on this machine, and the private root is entered through one. Run" \
      "this as root, or have root allow it: sysctl kernel.unprivileged_userns_clone=1 on Debian," \
      "kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu."
  fi

  needed=3400000 # kilobytes: 900 MB of packages, 2.2 GB unpacked, and some air
  free=$(df -Pk "$cache" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$needed" ] || die "the private root takes $((needed / 1000)) MB while it is made," \
    "and $cache has $((free / 1000)) MB free. Make room there, or set XDG_CACHE_HOME to a directory" \
    "on another disk."
}

# Prints the Debian mirror: the one that the host's apt uses, unless the user names another.
mirror() {
  if [ "${ELIZA_DEBIAN_MIRROR-}" ]; then
    echo "$ELIZA_DEBIAN_MIRROR"
    return
  fi
  # What an update would fetch, because a fresh image has no package lists to look in.
  found=$(apt-get update --print-uris | sed -n "\|/debian/*/dists/| { s|^'\(.*/debian\)/.*|\1|p; q; }")
  [ "$found" ] || die "the private root comes from a Debian mirror, and this host's apt uses none." \
    "Set ELIZA_DEBIAN_MIRROR to the URL of one that carries sid."
  echo "$found"
}

# apt-get on lists, packages and settings of its own; of the host's it keeps proxies and passwords.
apt() {
  apt-get -y \
    -o APT::Architecture="$(dpkg --print-architecture)" \
    -o APT::Architectures="$(dpkg --print-architecture)" \
    -o APT::Install-Recommends=false \
    -o APT::Sandbox::User= \
    -o APT::Update::Error-Mode=any \
    -o Acquire::Check-Valid-Until=false \
    -o Acquire::Languages=none \
    -o Acquire::Retries=3 \
    -o Dir::Cache="$debs" \
    -o Dir::Cache::archives="$debs/archives" \
    -o Dir::Etc::preferences=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::Etc::sourcelist="$debs/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Log="$debs" \
    -o Dir::State="$debs" \
    -o Dir::State::lists="$debs/lists" \
    -o Dir::State::status="$debs/status" \
    "$@" >&2 || die "apt-get could not fetch the private root's packages; the lines above say why." \
    "ELIZA_DEBIAN_MIRROR names another mirror. What was fetched is kept."
}

# Prints Debian's keyring; where the host is another Debian-like system, out of its own archive.
keyring() {
  for file in /usr/share/keyrings/debian-archive-keyring.* \
    "$debs"/keyring/usr/share/keyrings/debian-archive-keyring.*; do
    [ -e "$file" ] && echo "$file" && return
  done
  mkdir -p "$debs/keyring"
  (cd "$debs/keyring" && apt-get -qq download debian-archive-keyring >&2) ||
    die "Debian's signing keys are missing: install the package debian-archive-keyring."
  dpkg-deb -x "$debs"/keyring/*.deb "$debs/keyring"
  keyring
}

download() {
  # A terminal shows apt's own progress, a log does not.
  if [ -t 2 ]; then quiet=0; else quiet=2; fi
  mkdir -p "$debs/archives/partial" "$debs/lists/partial"
  : >"$debs/status"
  keyring=$(keyring)
  mirror=$(mirror)
  echo "deb [signed-by=$keyring] $mirror sid main" >"$debs/sources.list"

  say "setting up Bazel in $root (once; about a minute, 900 MB to download)"
  say "1/3 reading Debian's package lists"
  apt -o quiet="$quiet" update
  # What an earlier attempt left may have been replaced in the archive since.
  apt -qq autoclean
  say "2/3 downloading packages"
  # shellcheck disable=SC2046 # one argument for each line
  apt -o quiet="$quiet" install --download-only $(cat "$here/packages")
}

unpack() {
  say "3/3 unpacking"
  rm -rf "$tmp"
  mkdir "$tmp"
  # shellcheck disable=SC2016 # expanded by the inner shell
  set -- sh -c '
    dpkg-deb --fsys-tarfile "$2" | tar -x --directory="$1" --keep-directory-symlink \
      --no-same-owner --exclude="./dev/*" --exclude="./usr/share/doc/*" \
      --exclude="./usr/share/locale/*" --exclude="./usr/share/man/*"
  ' sh "$tmp"
  # Through the links of base-files, from /bin and /lib to /usr, all others are unpacked.
  "$@" "$debs"/archives/base-files_*.deb
  printf '%s\0' "$debs"/archives/*.deb | xargs -0 -n 1 -P "$(nproc)" "$@"
}

# Does what a build needs of the scripts that were not run, and adds our settings to Bazel's.
configure() {
  ln -s mawk "$tmp/usr/bin/awk"
  ln -s gcc "$tmp/usr/bin/cc"
  ln -s g++ "$tmp/usr/bin/c++"
  ln -s which.debianutils "$tmp/usr/bin/which"
  ln -s ../lib/jvm/default-java/bin/java ../lib/jvm/default-java/bin/javac "$tmp/usr/bin"
  cat "$tmp"/usr/share/ca-certificates/mozilla/*.crt >"$tmp/etc/ssl/certs/ca-certificates.crt"

  # Debian's settings warn at every start (--host_javabase) and keep every sandbox (--sandbox_debug).
  sed -i '/host_javabase/d; /sandbox_debug/d' "$tmp/etc/bazel/bazelrc"

  # Bazel does not see that the compiler changed under it. So objects are shared only between roots
  # made of the very same packages, and a server does not outlive its root (a server is restarted
  # when its JVM arguments change). The import is the clone's that Bazel is run for; see enter.sh.
  made_of=$(cd "$debs/archives" && printf '%s\n' *.deb | sha256sum | cut -c 1-12)
  cat >>"$tmp/etc/bazel/bazelrc" <<RC

startup --host_jvm_args=-Dprivate_root=$key-$made_of
common --disk_cache="$cache/disk_cache/$made_of"
common --experimental_disk_cache_gc_max_size=10G
import /usr/src/elizainference/tools/private_root/bazelrc
RC
}

if [ ! -d "$root" ]; then
  mkdir -p "$cache"
  check_host
  exec 9>"$cache/private-root.lock"
  if ! flock --nonblock 9; then
    say "another run is setting up Bazel; waiting for it"
    flock 9
  fi
fi
if [ ! -d "$root" ]; then
  trap 'rm -rf "$tmp"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' HUP TERM
  download
  unpack
  configure
  mv "$tmp" "$root"
  rm -rf "$debs"
  say "done"
fi
echo "$root"
