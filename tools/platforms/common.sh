# Shared by the scripts beside it (sourced, not run): where things are put, what a step says, what is done only once.
#
# PLATFORMS is the place for roots, downloads and builds, never inside the checkout. A step that has succeeded leaves a
# stamp there and is passed over the next time; `rm -r` of the place, or of one stamp, forgets it.
set -euo pipefail

checkout="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
PLATFORMS="${PLATFORMS:-${TMPDIR:-/var/tmp}/holdback-platforms}"
mkdir -p "$PLATFORMS/stamps" "$PLATFORMS/cache"
case "$(cd "$PLATFORMS" && pwd)/" in
  "$checkout"/*) echo "PLATFORMS=$PLATFORMS is inside the checkout; choose a place outside it" >&2; exit 1 ;;
esac

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

fail() { # what went wrong, and what helps
  printf 'error: %s\n' "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

once() { # once STAMP COMMAND...: runs the command unless it has succeeded before
  local stamp="$PLATFORMS/stamps/$1"
  shift
  [ -e "$stamp" ] || { "$@" && touch "$stamp"; }
}

need_root() {
  [ "$(id -u)" = 0 ] || fail "roots are made with chroot and mount, which only root may do"
}

need() { # need COMMAND PACKAGE: installs the package where apt can
  command -v "$1" >/dev/null && return
  say "Install $2 (for $1)"
  apt-get update -q && apt-get install -y -q --no-install-recommends "$2" >/dev/null ||
    fail "$1 is missing and could not be installed" "apt-get install $2"
}

mirror() { # where this machine's apt takes Debian from
  local site
  site="$(apt-get indextargets --format '$(LABEL) $(SITE)' 'Created-By: Packages' | sed -n 's/^Debian //p' | head -n 1)"
  [ -n "$site" ] || fail "apt's configuration names no mirror of Debian" "apt-get update, then once more"
  echo "$site"
}

# --- roots -----------------------------------------------------------------------------------------------------------

mounted=()

mount_in() { # mount_in ROOT: what programs expect to find, undone when the script ends
  local root="$1"
  for what in proc dev sys; do
    mountpoint -q "$root/$what" || { mount --rbind --make-rslave "/$what" "$root/$what"; mounted+=("$root/$what"); }
  done
  mkdir -p "$root/cache"
  mountpoint -q "$root/cache" || { mount --bind "$PLATFORMS/cache" "$root/cache"; mounted+=("$root/cache"); }
}

unmount_all() {
  for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do
    umount --recursive --lazy "${mounted[i]}" || true
  done
}
trap unmount_all EXIT

inside() { # inside ROOT COMMAND...: run there, with the caches of cargo and pip shared by all roots
  local root="$1"
  shift
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    DEBIAN_FRONTEND=noninteractive SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    CARGO_HOME=/cache/cargo CARGO_BUILD_JOBS="${CARGO_BUILD_JOBS:-1}" CARGO_TERM_COLOR=never \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_CACHE_DIR=/cache/pip PIP_ROOT_USER_ACTION=ignore \
    PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_PROFILE="${HYPOTHESIS_PROFILE:-ci}" "$@"
}

make_root() { # make_root ROOT ARCHITECTURE SUITE: the smallest Debian that has apt
  local root="$1" architecture="$2" suite="$3" foreign=()
  need_root
  need debootstrap debootstrap
  say "Debian $suite for $architecture in $root (minutes)"
  rm -rf "$root"
  [ "$architecture" = "$(dpkg --print-architecture)" ] || foreign=(--arch "$architecture")
  debootstrap --variant=minbase "${foreign[@]}" --include=ca-certificates "$suite" "$root" "$(mirror)" >"$PLATFORMS/debootstrap.log" 2>&1 || {
    tail -n 5 "$PLATFORMS/debootstrap.log" >&2
    fail "debootstrap failed; all that it said is in $PLATFORMS/debootstrap.log"
  }
  # A machine behind an inspecting proxy trusts more than the root's own list.
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # apt's own options (dates of a snapshot, a proxy) are the machine's, too.
  apt-config dump | grep -E '^Acquire::(http|https|Check-)' >"$root/etc/apt/apt.conf.d/90machine" || true
}

install_in() { # install_in ROOT PACKAGE...
  local root="$1"
  shift
  say "Packages: $*"
  inside "$root" apt-get update -q >/dev/null
  inside "$root" apt-get install -y -q --no-install-recommends "$@" >"$PLATFORMS/apt.log" 2>&1 || {
    tail -n 8 "$PLATFORMS/apt.log" >&2
    fail "apt could not install these; all that it said is in $PLATFORMS/apt.log"
  }
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
}

copy_sources() { # copy_sources PLACE: what git tracks (and would, were it added), nothing that was built here
  rm -rf "$1"
  mkdir -p "$1"
  git -C "$checkout" ls-files -z --cached --others --exclude-standard |
    (cd "$checkout" && xargs -0 ls -d 2>/dev/null | tar -cf - --files-from=-) | tar -xf - -C "$1"
}
