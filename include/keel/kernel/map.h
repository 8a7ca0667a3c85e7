// SPDX-License-Identifier: Apache-2.0
// Part of <keel/kernel.h>: how a list of macro arguments is walked. KEEL_EACH_(op, kernel, ...)
// writes op##KIND(kernel, ...) for each argument (KIND, ...), up to 80 of them, and op##WRONG(it)
// for one that has another form.
#ifndef KEEL_KERNEL_MAP_H_
#define KEEL_KERNEL_MAP_H_

#define KEEL_PASTE_(a, b)  KEEL_PASTE2_(a, b)
#define KEEL_PASTE2_(a, b) a##b
#define KEEL_STRIP_(...)   __VA_ARGS__
#define KEEL_PARENS_       ()

// 1 for what stands in parentheses, else 0.
#define KEEL_IS_TUPLE_(it)       KEEL_SECOND_(KEEL_PROBE_ it, 0, )
#define KEEL_PROBE_(...)         , 1
#define KEEL_SECOND_(...)        KEEL_SECOND2_(__VA_ARGS__)
#define KEEL_SECOND2_(a, b, ...) b

#define KEEL_RESCAN_(...)  KEEL_RESCAN1_(KEEL_RESCAN1_(KEEL_RESCAN1_(KEEL_RESCAN1_(__VA_ARGS__))))
#define KEEL_RESCAN1_(...) KEEL_RESCAN2_(KEEL_RESCAN2_(KEEL_RESCAN2_(KEEL_RESCAN2_(__VA_ARGS__))))
#define KEEL_RESCAN2_(...) KEEL_RESCAN3_(KEEL_RESCAN3_(KEEL_RESCAN3_(KEEL_RESCAN3_(__VA_ARGS__))))
#define KEEL_RESCAN3_(...) __VA_ARGS__

#define KEEL_EACH_(op, kernel, ...)                                                                \
    __VA_OPT__(KEEL_RESCAN_(KEEL_EACH_ONE_(op, kernel, __VA_ARGS__)))
#define KEEL_EACH_ONE_(op, kernel, tuple, ...)                                                     \
    KEEL_PASTE_(KEEL_EACH_TUPLE_, KEEL_IS_TUPLE_(tuple))(op, kernel, tuple)                        \
        __VA_OPT__(KEEL_EACH_AGAIN_ KEEL_PARENS_(op, kernel, __VA_ARGS__))
#define KEEL_EACH_AGAIN_()                      KEEL_EACH_ONE_
#define KEEL_EACH_TUPLE_0(op, kernel, it)       op##WRONG(it)
#define KEEL_EACH_TUPLE_1(op, kernel, tuple)    KEEL_EACH_CALL_(op, kernel, KEEL_STRIP_ tuple)
#define KEEL_EACH_CALL_(...)                    KEEL_EACH_CALL2_(__VA_ARGS__)
#define KEEL_EACH_CALL2_(op, kernel, kind, ...) op##kind(kernel, __VA_ARGS__)

#endif
