// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: how a list of macro arguments is walked. KEEL_EACH_(op, kernel, ...)
// writes op##KIND(kernel, ...) for each argument (KIND, ...), up to 80 of them.
#ifndef KEEL_KERNEL_MAP_H_
#define KEEL_KERNEL_MAP_H_

#define KEEL_PASTE_(a, b)  KEEL_PASTE2_(a, b)
#define KEEL_PASTE2_(a, b) a##b
#define KEEL_STRIP_(...)   __VA_ARGS__
#define KEEL_PARENS_       ()

#define KEEL_RESCAN_(...)  KEEL_RESCAN1_(KEEL_RESCAN1_(KEEL_RESCAN1_(KEEL_RESCAN1_(__VA_ARGS__))))
#define KEEL_RESCAN1_(...) KEEL_RESCAN2_(KEEL_RESCAN2_(KEEL_RESCAN2_(KEEL_RESCAN2_(__VA_ARGS__))))
#define KEEL_RESCAN2_(...) KEEL_RESCAN3_(KEEL_RESCAN3_(KEEL_RESCAN3_(KEEL_RESCAN3_(__VA_ARGS__))))
#define KEEL_RESCAN3_(...) __VA_ARGS__

#define KEEL_EACH_(op, kernel, ...)                                                                \
    __VA_OPT__(KEEL_RESCAN_(KEEL_EACH_ONE_(op, kernel, __VA_ARGS__)))
#define KEEL_EACH_ONE_(op, kernel, tuple, ...)                                                     \
    KEEL_EACH_CALL_(op, kernel, KEEL_STRIP_ tuple)                                                 \
    __VA_OPT__(KEEL_EACH_AGAIN_ KEEL_PARENS_(op, kernel, __VA_ARGS__))
#define KEEL_EACH_AGAIN_()                      KEEL_EACH_ONE_
#define KEEL_EACH_CALL_(...)                    KEEL_EACH_CALL2_(__VA_ARGS__)
#define KEEL_EACH_CALL2_(op, kernel, kind, ...) op##kind(kernel, __VA_ARGS__)

#endif
