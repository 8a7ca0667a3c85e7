#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh SUITE [MIRROR]: whether README's two commands work on a machine that has nothing yet.
# Makes a bare root of a release of Debian or Ubuntu (bookworm, trixie, sid, noble ...) by
# debootstrap, clones the last commit of this tree into it, and runs `make demo` and `make test`
# there as a new user with sudo would, and `make demo SIM=1`. Ends with the versions and the
# results. With KEEL_WERROR=ON a compiler's warning is an error there, as it is for .ci/run.
#
# Needs root: to make the root, to mount /proc, /sys and /dev in it and to enter it. The mounts lie
# in a namespace of their own, so that they and all processes are gone when this ends, however it
# ends. The mirror is that of this machine's apt sources; name one to try another distribution,
# whose keyring must be installed. The root and the log lie in $KEEL_ROOTS (/var/tmp/keel-roots).
# The root is removed when both commands work, and kept to look at when one fails.
set -u
suite=${1:?give the name of a release, such as trixie}
mirror=${2:-}
tree=$(cd "$(dirname "$0")/.." && pwd)
roots=${KEEL_ROOTS:-/var/tmp/keel-roots}
root=$roots/$suite log=$roots/$suite.log

fail() {
    echo "fresh.sh: $*" >&2
    exit 1
}

# The first mirror of this machine's own distribution.
own_mirror() {
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' |
        awk -v own="$(. /etc/os-release && echo "$ID")" 'tolower($1) == own { print $2; exit }'
}

# Packages of Ubuntu that Debian has in main lie in universe.
components() {
    wget -qO- "${mirror%/}/dists/$suite/Release" |
        awk '$1 == "Components:" { found = 1; print / universe/ ? "main,universe" : "main" }
            END { exit !found }'
}

# debootstrap knows releases by their names, but not those that are newer than itself.
root_make() {
    local script=sid with=ca-certificates,git,make,sudo
    [ "$components" = main ] || script=gutsy
    rm -rf --one-file-system "$root" && mkdir -p "$root" || return
    debootstrap --variant=minbase --components="$components" --include=$with \
        "$suite" "$root" "$mirror" "/usr/share/debootstrap/scripts/$script" || return
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts" # which sudo asks for
    chroot "$root" useradd --create-home --shell /bin/bash new || return
    echo 'new ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/new"
    git clone -q --no-hardlinks "$tree" "$root/home/new/keel" || return
    chroot "$root" chown -R new: "$(chroot "$root" sh -c 'echo ~new')/keel"
}

# Runs a command line in the tree in the root, as the new user.
inside() {
    export root
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" &&
            mount --rbind /dev "$root/dev" || exit
        exec chroot "$root" su - new -c "cd keel && export KEEL_WERROR=$2 && $1"' \
        bash "$1" "${KEEL_WERROR:-}" </dev/null
}

# What a line of the table in docs/testing.md needs.
versions() {
    inside '. /etc/os-release; echo "$PRETTY_NAME, Linux $(uname -r), $(uname -m), $(nproc) cores"
        for program in gcc clang-19 cmake git; do $program --version 2>&1 | head -n 1; done
        git log -1 --format="commit %h of %cs"'
}

goal() {
    local start=$SECONDS status result=works
    echo "== make $1"
    inside "make $1"
    status=$?
    [ $status = 0 ] || result="FAILED ($status)"
    results+=("make $1: $result, $((SECONDS - start)) s")
    return $status
}

main() {
    local failed=0
    results=()
    root_make || fail "no root was made in $root"
    goal demo || failed=1
    goal "demo SIM=1" || failed=1
    goal test || failed=1
    echo "== $suite, $(date -u +%F)"
    versions
    printf '%s\n' "${results[@]}"
    cat "$root/home/new/keel/build/logs/total" 2>/dev/null
    return $failed
}

[ "$(id -u)" = 0 ] || fail "needs root, to make a root and to enter it"
for program in debootstrap unshare wget git; do
    command -v $program >/dev/null || fail "there is no $program here: apt-get install $program"
done
[ -n "$mirror" ] || mirror=$(own_mirror)
[ -n "$mirror" ] || fail "apt names no mirror of this machine's distribution: give one"
components=$(components) || fail "$mirror has no release called $suite"
mkdir -p "$roots" || exit 1
main 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" = 0 ] && rm -rf --one-file-system "$root"
exit "$status"
