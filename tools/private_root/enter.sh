#!/bin/sh
# enter.sh ROOT COMMAND...: becomes COMMAND inside ROOT. To be started in a new mount namespace.
#
# Inside, /usr and /etc are the root's, and every other directory is the host's under its own path:
# home directories, clones and models lie where they lay. The clone that this script belongs to is
# in /usr/src/elizainference besides, so that Bazel's settings can name what lies in it.
#
# pivot_root and not chroot, because Bazel's client looks up its server's directory in /proc, which
# shows the paths of a chroot with the root in front: it would restart the server at every call.
set -eu

root=$1
shift

# show HOST_PATH [PATH]: HOST_PATH, if there is such a thing, appears inside the root (as PATH).
show() {
  target=$root${2-$1}
  if [ -d "$1" ]; then
    mkdir -p "$target"
  elif [ -e "$1" ]; then
    mkdir -p "${target%/*}"
    [ -e "$target" ] || : >"$target"
  else
    return 0
  fi
  mount --rbind "$1" "$target"
}

mount --rbind "$root" "$root"
for path in /*; do
  case $path in
    /bin | /boot | /etc | /lib* | /lost+found | /sbin | /usr) ;;
    *) if [ -d "$path" ]; then show "$path"; fi ;;
  esac
done
for path in group hosts npmrc passwd pip.conf resolv.conf ssl xdg/pip; do
  show "/etc/$path"
done
clone=$(cd "$(dirname "$0")/../.." && pwd)
show "$clone" /usr/src/elizainference
case $clone in /usr/*) show "$clone" ;; esac

# What names the host's own programs and libraries means nothing inside.
unset CC CPATH CXX JAVA_HOME LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH PYTHONHOME PYTHONPATH
export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin

directory=$PWD
cd "$root"
pivot_root . .
umount -l .
cd "$directory"
exec "$@"
