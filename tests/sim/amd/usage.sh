#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage.sh KEEL: `keel sim` refuses wrong options, with a message that says what would be right.
set -u
keel=$1 failed=0

refuses() { # refuses TEXT OPTION...
    text=$1
    shift
    said=$("$keel" sim "$@" 2>&1)
    status=$?
    case $status,$said in
    2,*"$text"*) ;;
    *)
        failed=1
        echo "keel sim $* ended with $status and said: $said"
        ;;
    esac
}

refuses "'gfx1030' is none of gfx900, gfx906, gfx908, gfx90a, gfx942" --gpus=gfx900,gfx1030 -- true
refuses "'' is none of gfx900" --gpus gfx900, -- true
five=gfx900,gfx900,gfx900,gfx900,gfx900
refuses "at most 8, not 10" --gpus=$five,$five -- true
refuses "--gpus wants a value" --gpus -- true
refuses "--break wants a value" --break= -- true
refuses "a number from 0 to 18446744073709551615, not 'one'" --seed=one -- true
refuses "a number from 1 to 256, not '0'" --threads=0 -- true
refuses "a number from 1 to 18446744073709551615, not '0'" --weak=0 -- true
refuses "a number from 0 to 1, not '2'" --strict=2 -- true
refuses "a number from 1 to 1024, not '0'" --queues=0 -- true
refuses "a number from 0 to 1, not '2'" --atomics=2 -- true
refuses "a number from 0 to 1, not '2'" --doorbells=2 -- true
refuses "a number from 0 to 1, not '2'" --bar=2 -- true
refuses "not '-1'" --watchdog -1 -- true
refuses "'everything' is none of calls, packets, isa, time" --log=isa,everything -- true
refuses "what is --gpu=gfx900?" --gpu=gfx900 -- true
refuses "--cache wants a value" --cache -- true
refuses "--rocm wants a value" --rocm -- true
refuses "--break and --rocm: " --rocm=trixie --break=add_one -- true
refuses "usage: keel sim" --seed=3
"$keel" sim --gpus=gfx900,gfx90a --seed 0x10 --threads=2 --queues=1 --watchdog=0 \
    --log=calls,isa -- true ||
    failed=1
"$keel" sim -- /nothing/there 2>/dev/null
[ $? = 127 ] || failed=1
for weak in --weak --weak=7; do
    said=$("$keel" sim $weak -- printenv KEEL_SIM_WEAK)
    [ "--weak=$said" = "$weak" ] || [ "$weak,$said" = --weak,1 ] || failed=1
done
exit $failed
