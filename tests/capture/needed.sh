#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# needed.sh LIBRARY: it is linked with the C library alone: with nothing of a vendor's, and with no
# library that a program might have in another version.
set -eu
readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >needed.txt
[ -s needed.txt ] || { echo "$1 needs nothing at all?"; exit 1; }
if grep -vE '^(lib(c|dl|pthread)\.so\.[0-9]+|ld-linux.*)$' needed.txt; then
    echo "^ $1 needs more than the C library"
    exit 1
fi
# Runtimes load it late, when little is left of the memory that threads have of their own for
# libraries that are loaded with the program: 1664 bytes in all.
own=$(readelf -lW "$1" | awk '$1 == "TLS" { print $6 }')
[ $((own)) -le 512 ] || { echo "$1 has $((own)) bytes of each thread"; exit 1; }
