// SPDX-License-Identifier: Apache-2.0
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

// How far y is from the true result in units of its last place, less what is allowed besides.
static double distance(double y, long double truth, double beside)
{
    double nearest = (double)truth;
    if (isnan(nearest) || isinf(nearest) || isnan(y) || isinf(y)) {
        bool same = y == nearest || (isnan(y) && isnan(nearest));
        bool edge = fabs(y) >= DBL_MAX && fabs(nearest) >= DBL_MAX && (y > 0) == (nearest > 0);
        return same || edge ? 0.0 : INFINITY;
    }
    int exponent;
    frexpl(truth, &exponent);
    long double unit = ldexpl(1.0L, (exponent < -1021 ? -1021 : exponent) - 53);
    long double error = fabsl((long double)y - truth) - beside;
    return error <= 0 ? 0.0 : (double)(error / unit);
}

static unsigned judge_beside(const char *name, double x, double got, long double truth,
                             double bound, double beside)
{
    // Where long double is no longer than double, the truth itself is off by some.
    if (LDBL_MANT_DIG == DBL_MANT_DIG && bound > 0.5) bound += 1;
    if (distance(got, truth, beside) <= bound) return 0;
    printf("%s of double %a is %a, not %.21Lg within %g ulp\n", name, x, got, truth, bound);
    return 1;
}

static unsigned judge(const char *name, double x, double got, long double truth, double bound)
{
    return judge_beside(name, x, got, truth, bound, 0);
}

static unsigned judge_bounded(double x, const doubles_t *a)
{
    unsigned wrong = 0;
    double small = exp(x) < DBL_MIN ? 1 : 0, small2 = exp2(x) < DBL_MIN ? 1 : 0;
    wrong += judge("exp", x, a->exp, expl(x), 2 + small);
    wrong += judge("exp2", x, a->exp2, exp2l(x), 2 + small2);
    wrong += judge("log", x, a->log, logl(x), 2);
    wrong += judge("log2", x, a->log2, log2l(x), 3);
    wrong += judge("erf", x, a->erf, erfl(x), 3);
    wrong += judge("tanh", x, a->tanh, tanhl(x), 3);
    wrong += judge("rsqrt", x, a->rsqrt, 1.0L / sqrtl(x), 2);
    if (fabs(x) <= 1e6) {
        wrong += judge_beside("sin", x, a->sin, sinl(x), 3, 1e-22);
        wrong += judge_beside("cos", x, a->cos, cosl(x), 3, 1e-22);
    }
    return wrong;
}

// x to the y-th, where -0 is 0, and the x-th power of another number.
static unsigned judge_powers(const item_t *item, double x, const doubles_t *a)
{
    unsigned wrong = 0;
    double other = positive_of(item);
    long double truth = powl(x + 0.0, item->y), power = powl(other, x);
    if (x >= 0 && !isnan(item->y)) wrong += judge("pow", x, a->pow, truth, truth < DBL_MIN ? 3 : 2);
    return wrong + judge("power", x, a->power, power, power < DBL_MIN ? 3 : 2);
}

// With one rounding or with two.
static unsigned judge_mad(double x, double y, double got)
{
    volatile double product = x * y;
    return got == product + 1.0 ? 0 : judge("mad", x, got, fma(x, y, 1.0), 0);
}

static unsigned judge_bits(double x, uint64_t got)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (got == bits || isnan(x)) return 0;
    printf("bits_of double %a is %#llx\n", x, (unsigned long long)got);
    return 1;
}

static unsigned judge_exact(double x, double y, const doubles_t *a)
{
    unsigned wrong = 0;
    wrong += judge("sqrt", x, a->sqrt, sqrt(x), 0);
    wrong += judge("fma", x, a->fma, fma(x, y, 1.0), 0);
    wrong += judge("floor", x, a->floor, floor(x), 0);
    wrong += judge("rint", x, a->rint, rint(x), 0);
    wrong += judge("min", x, a->min, fmin(x, y), 0);
    wrong += judge("max", x, a->max, fmax(x, y), 0);
    wrong += judge("clamp", x, a->clamp, fmin(fmax(x, -1.0), 1.0), 0);
    wrong += judge("quotient", x, a->quotient, x / y, 0);
    wrong += judge_mad(x, y, a->mad) + judge_bits(x, a->bits);
    return wrong;
}

unsigned doubles_judge(const item_t *items, const doubles_t *answers, size_t count)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < count && wrong < 20; i++) {
        double x = double_of(&items[i]);
        wrong += judge_exact(x, items[i].y, &answers[i]) + judge_bounded(x, &answers[i]);
        wrong += judge_powers(&items[i], x, &answers[i]);
    }
    return wrong;
}
