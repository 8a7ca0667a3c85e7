# SPDX-License-Identifier: Apache-2.0
# What the tests of keel trace share. A test sets `keel`, sources this, and is then in `folder`, a
# new one that is removed at its end. `here` is the folder of the tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
summary=err # the file that has a summary

fail() {
    echo "$1"
    [ ! -f err ] || cat err
    exit 1
}
is() { # is WHAT GOT EXPECTED
    [ "$2" = "$3" ] || fail "$1: $2, not $3"
}
has() { # has COMMAND: it is installed
    command -v "$1" >/dev/null
}
calls() { # calls NAME: how often the summary says it was called
    awk -v name="$1" '$0 ~ "%  " name "( [(].*)?$" { print $1 }' "$summary"
}
# refuse STATUS WORDS ARGUMENTS...: keel trace exits with that status and says these words.
refuse() {
    status=0 expected=$1 words=$2
    shift 2
    "$keel" trace "$@" >out 2>err || status=$?
    is "status of keel trace $*" "$status" "$expected"
    grep -qF -- "$words" err || fail "keel trace $*: it does not say: $words"
}
