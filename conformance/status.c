// SPDX-License-Identifier: Apache-2.0
// Statuses.
#include "suite/suite.h"

static int64_t live_statuses(void)
{
    keel_live_t live;
    keel_live_objects(&live);
    return live.statuses;
}

TEST(status, null_is_success)
{
    CHECK_EQ(keel_status_code(NULL), KEEL_OK);
    CHECK(keel_status_message(NULL));
    CHECK_STR(keel_status_path(NULL), "");
    CHECK(keel_status_cause(NULL) == NULL);
    CHECK(keel_status_retain(NULL) == NULL);
    keel_status_release(NULL);
}

TEST(status, make)
{
    keel_status_t status = KEEL_ERROR(KEEL_NOT_FOUND, "no %s among %d", "spoon", 3);
    OWN(status);
    CHECK(status);
    CHECK_EQ(keel_status_code(status), KEEL_NOT_FOUND);
    if (!starved()) CHECK_STR(keel_status_message(status), "no spoon among 3");
    CHECK_STR(keel_status_path(status), "");
    CHECK(keel_status_cause(status) == NULL);
}

TEST(status, make_ok_is_null)
{
    CHECK(KEEL_ERROR(KEEL_OK, "all is well") == NULL);
}

TEST(status, every_code_survives)
{
    static const keel_code_t codes[] = {
#define CODE(name, meaning) KEEL_##name,
        KEEL_CODES(CODE)
#undef CODE
    };
    for (size_t i = 1; i < COUNT(codes); i++) {
        row("%s", keel_code_name(codes[i]));
        keel_status_t status = KEEL_ERROR(codes[i], "x");
        CHECK(status);
        keel_code_t code = keel_status_code(status);
        keel_status_release(status);
        CHECK_EQ(code, codes[i]);
    }
}

TEST(status, code_names)
{
#define CODE(name, meaning) CHECK_STR(keel_code_name(KEEL_##name), #name);
    KEEL_CODES(CODE)
#undef CODE
    CHECK(keel_code_name((keel_code_t)1000));
    CHECK(keel_code_name((keel_code_t)-1));
}

TEST(status, wrap_keeps_the_code)
{
    keel_status_t cause = KEEL_ERROR(KEEL_IO, "the disk is on fire");
    keel_status_t status = keel_status_wrap(cause, "reading '%s'", "weights");
    OWN(status);
    CHECK_EQ(keel_status_code(status), KEEL_IO);
    if (starved()) return;
    CHECK_STR(keel_status_message(status), "reading 'weights'");
    CHECK(keel_status_cause(status));
    CHECK_STR(keel_status_message(keel_status_cause(status)), "the disk is on fire");
    CHECK(keel_status_cause(keel_status_cause(status)) == NULL);
}

TEST(status, wrap_of_success_is_success)
{
    CHECK(keel_status_wrap(NULL, "nothing happened") == NULL);
}

TEST(status, format_tells_all_causes)
{
    keel_status_t status = KEEL_ERROR(KEEL_CORRUPT, "innermost");
    status = keel_status_wrap(status, "in the middle");
    status = keel_status_wrap(status, "outermost");
    OWN(status);
    char text[2000];
    size_t length = keel_status_format(status, text, sizeof text);
    CHECK_EQ(length, strlen(text));
    CHECK_HAS(text, "CORRUPT");
    if (starved()) return;
    CHECK_HAS(text, "innermost");
    CHECK_HAS(text, "in the middle");
    CHECK_HAS(text, "outermost");
}

TEST(status, format_tells_the_place)
{
    keel_status_t status = keel_status_make(KEEL_INTERNAL, "engine_room.c", 4711, "steam");
    OWN(status);
    char text[1000];
    keel_status_format(status, text, sizeof text);
    if (starved()) return;
    CHECK_HAS(text, "engine_room.c");
    CHECK_HAS(text, "4711");
}

TEST(status, format_truncates)
{
    keel_status_t status = KEEL_ERROR(KEEL_ABORTED, "a sentence that does not fit");
    OWN(status);
    size_t whole = keel_status_format(status, NULL, 0);
    CHECK_GE(whole, strlen("ABORTED"));
    for (size_t size = 1; size <= whole + 1; size++) {
        row("size %zu", size);
        char text[500];
        memset(text, 'x', sizeof text);
        CHECK_EQ(keel_status_format(status, text, size), whole);
        CHECK_EQ(strlen(text), size <= whole ? size - 1 : whole);
        CHECK_EQ(text[size], 'x');
    }
}

TEST(status, format_success)
{
    char text[100];
    size_t length = keel_status_format(NULL, text, sizeof text);
    CHECK_EQ(length, strlen(text));
    CHECK_HAS(text, "OK");
}

TEST(status, print)
{
    keel_status_t status = KEEL_ERROR(KEEL_UNSUPPORTED, "cannot fly");
    OWN(status);
    FILE *file = tmpfile();
    CHECK(file);
    char text[500] = "";
    keel_status_print(status, file);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK_GE(length, 1);
    CHECK_HAS(text, "UNSUPPORTED");
    if (!starved()) CHECK_HAS(text, "cannot fly");
}

TEST(status, long_message)
{
    char words[3000];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = 0;
    keel_status_t status = KEEL_ERROR(KEEL_IO, "%s", words);
    OWN(status);
    if (starved()) return;
    CHECK_EQ(strlen(keel_status_message(status)), sizeof words - 1);
}

TEST(status, live_count)
{
    int64_t before = live_statuses();
    keel_status_t status = KEEL_ERROR(KEEL_IO, "one");
    if (!starved()) CHECK_EQ(live_statuses(), before + 1);
    keel_status_retain(status);
    keel_status_release(status);
    if (!starved()) CHECK_EQ(live_statuses(), before + 1);
    keel_status_release(status);
    CHECK_EQ(live_statuses(), before);
}

static void retain_and_release(void *user)
{
    for (int i = 0; i < 10000; i++) keel_status_release(keel_status_retain(user));
    CHECK_EQ(keel_status_code(user), KEEL_CANCELLED);
}

TEST(status, shared_by_threads)
{
    keel_status_t status = KEEL_ERROR(KEEL_CANCELLED, "shared");
    OWN(status);
    thread_t *threads[4];
    for (int i = 0; i < 4; i++) threads[i] = thread_start(retain_and_release, status);
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
    if (!starved()) CHECK_STR(keel_status_message(status), "shared");
}
