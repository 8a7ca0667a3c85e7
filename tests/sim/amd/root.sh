#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# root.sh KEEL INSIDE: `keel sim --rocm` runs the program INSIDE in a root that is made here, with
# namespaces where the machine allows them and by the root's loader where it does not.
set -u
keel=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/usr/lib/keel-sim" "$root/etc"
cp "$2" "$root/usr/bin/inside"
: >"$root/etc/ld.so.cache"
ln -s usr/lib "$root/libraries"
printf '#!/bin/sh\necho "loader $*"\n' >"$root/loader"
chmod +x "$root/loader"
failed=0
expect() { # expect STATUS TEXT: of what was run last
    case $status,$said in
    "$1",*"$2"*) ;;
    *)
        failed=1
        echo "this ended with $status, not $1, or without '$2': $said"
        ;;
    esac
}

said=$("$keel" sim --rocm="$root" -- inside "$root/file" 2>&1)
status=$?
expect 1 "there is no ROCm in $root"
said=$("$keel" sim --rocm=woody -- inside "$root/file" 2>&1)
status=$?
expect 1 "woody: there is no ROCm in "

echo here >"$root/versions"
said=$("$keel" sim --rocm="$root" -- inside "$root/file" 2>&1)
status=$?
case $said in
*"allows no namespaces"*) echo "$said" ;;
*) expect 0 "inside: all is well" ;;
esac

# Without namespaces, for a user without rights, as far as this machine lets us make one.
# shellcheck disable=SC2016 # expanded in there
said=$(unshare -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
    exec setpriv --bounding-set=-sys_admin "$@"' sh \
    "$keel" sim --rocm="$root" -- inside word 2>&1)
status=$?
case $said in
*"allows no namespaces"*)
    expect 0 "runs by the loader"
    expect 0 "loader --library-path"
    expect 0 "/libraries $root/usr/bin/inside word"
    ;;
*) echo "not tried without namespaces: $said" ;;
esac
exit $failed
