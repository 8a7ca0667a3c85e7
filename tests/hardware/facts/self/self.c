// SPDX-License-Identifier: Apache-2.0
// Facts that come out in every way there is, for a test of main.c. The library is that of C.
#include "tests/hardware/facts/facts.h"

#include <stdlib.h>
#include <unistd.h>

static bool is_sim(void)
{
    return true;
}

static void nothing(void) {}

static void is_true(void)
{
    fact_say("%d", 7);
}

static void is_untrue(void)
{
    REQUIRE(fact_library == NULL);
}

static void is_broken(void)
{
    NEED(fact_library == NULL);
}

static void is_skipped(void)
{
    fact_skip("nothing to see");
}

static void crashes(void)
{
    abort();
}

static void hangs(void)
{
    for (;;) pause();
}

static bool released;

static void release(void *what)
{
    __atomic_store_n(&released, true, __ATOMIC_RELEASE);
}

static void wait_call(void *user)
{
    while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE)) fact_nap(1);
}

static void call(void *user) {}

static void waits(void)
{
    REQUIRE(!fact_waits(&(fact_try_t){call, NULL, release, NULL}, FACT_LONG_MS));
    REQUIRE(released);
    released = false;
    REQUIRE(fact_waits(&(fact_try_t){wait_call, NULL, release, NULL}, FACT_SHORT_MS));
}

static const fact_t facts[] = {
    {"a.true", "", "", is_true, HOLDS, DIFFERS, ""},
    {"b.untrue", "", "", is_untrue, HOLDS, HOLDS, NULL},
    {"c.marked", "", "", is_untrue, DIFFERS, HOLDS, "a reason"},
    {"d.agrees", "", "", is_true, DIFFERS, HOLDS, "no reason"},
    {"e.broken", "", "", is_broken, DIFFERS, HOLDS, "a reason"},
    {"f.skipped", "", "", is_skipped, HOLDS, HOLDS, NULL},
    {"g.not_run", "", "", crashes, NOT_RUN, HOLDS, "it would crash"},
    {"h.crashes", "", "", crashes, DIFFERS, HOLDS, "a reason"},
    {"i.hangs", "", "", hangs, DIFFERS, HOLDS, "a reason"},
    {"j.waits", "", "", waits, HOLDS, HOLDS, NULL},
    {0},
};

static const fact_t *const areas[] = {facts, NULL};
static const fact_vendor_t self = {"malloc", is_sim, nothing, areas};
const fact_vendor_t *const fact_vendors[] = {&self, NULL};
