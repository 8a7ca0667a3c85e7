#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rocm_usage.sh ROCM: the script that fetches a suite says what is wrong, leaves a whole root alone
# and an interrupted one to the next run. Nothing of this needs a network.
set -u
rocm=$1 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
says() { # says STATUS TEXT ARGUMENT...
    want=$1 text=$2
    shift 2
    said=$("$rocm" "$@" 2>&1)
    status=$?
    case $status,$said in
    "$want",*"$text"*) ;;
    *)
        failed=1
        echo "rocm $* ended with $status, not $want, or without '$text': $said"
        ;;
    esac
}

says 2 "rocm SUITE"
says 0 "rocm SUITE" --help
says 1 "what is --now?" --now trixie
says 1 "'Trixie/main' is no name of a suite" Trixie/main
says 1 "one suite at a time, not 'sid' too" trixie sid
# A mirror that is a folder without suites, and one that is nowhere.
if command -v apt-get >/dev/null && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
    mkdir "$folder/mirror"
    says 77 "has no suite trixie" trixie --root="$folder/root" --mirror="file:$folder/mirror"
    says 77 "cannot be used" trixie --root="$folder/root" --mirror=http://127.0.0.1:9/debian
    [ ! -e "$folder/root" ] || { echo "a half-made root is there"; failed=1; }
    flock "$folder/root.part/lock" "$rocm" trixie --root="$folder/root" >/dev/null 2>"$folder/said"
    grep -q "another rocm works on" "$folder/said" || { cat "$folder/said"; failed=1; }
fi
mkdir -p "$folder/whole"
printf 'trixie amd64, today, here\nhipcc 5\nzlib1g 1\n' >"$folder/whole/versions"
says 0 "    hipcc 5" trixie --root="$folder/whole" --mirror=http://127.0.0.1:9/debian
exit $failed
