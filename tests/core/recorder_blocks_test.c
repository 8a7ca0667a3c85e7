// SPDX-License-Identifier: Apache-2.0
// How blocks lie in the stream of commands: the records, and where each says the others are.
#include <keel/keel.h>

#include <string.h>

#include "kit/command.h"
#include "unit.h"

static keel_device_t *device;
static keel_buffer_t *buffer;

static int setup(void **state)
{
    (void)state;
    keel_buffer_options_t options = {.size = 64};
    assert_null(keel_device_open("cpu://inline", NULL, &device));
    assert_null(keel_buffer_create(device, &options, &buffer));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keel_buffer_release(buffer);
    keel_device_release(device);
    return 0;
}

// Letters for operations: ? if, : else, @ while, # switch, a digit a case, . end, f fill, |
// barrier.
static keel_op_t op_of(char letter)
{
    keel_ref_t value = keel_span(buffer, 0, 4);
    switch (letter) {
    case '?': return keel_op_if(value);
    case ':': return keel_op_else();
    case '@': return keel_op_while(value);
    case '#': return keel_op_switch(value);
    case '.': return keel_op_end();
    case 'f': return keel_op_fill(keel_span(buffer, 8, 4), 0, 1);
    case '|': return keel_op_barrier();
    default: return keel_op_case((uint32_t)(letter - '0'));
    }
}

static char letter_of(const keel_command_t *c)
{
    switch ((keel_cmd_t)c->kind) {
    case KEEL_CMD_IF: return '?';
    case KEEL_CMD_ELSE: return ':';
    case KEEL_CMD_WHILE: return '@';
    case KEEL_CMD_SWITCH: return '#';
    case KEEL_CMD_CASE: return (char)('0' + ((const keel_cmd_block_t *)(const void *)c)->match);
    case KEEL_CMD_END: return '.';
    case KEEL_CMD_FILL: return 'f';
    case KEEL_CMD_BARRIER: return '|';
    default: return '!';
    }
}

static keel_recording_t *record(const char *letters)
{
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    for (; *letters; letters++) {
        keel_op_t op = op_of(*letters);
        assert_null(keel_recording_add(recording, &op, 1));
    }
    assert_null(keel_recording_end(recording));
    return recording;
}

// The index of the command at an offset, as a letter.
static char place_of(const keel_commands_t *commands, uint32_t offset)
{
    const keel_command_t *to = keel_commands_at(commands, offset);
    int index = 0;
    for (const keel_command_t *c = keel_commands_first(commands); c != to; index++) {
        assert_ptr_not_equal(c, keel_commands_end(commands));
        c = keel_command_next(c);
    }
    return (char)('a' + index);
}

static const struct {
    const char *ops;
    const char *links; // begin, next, end and depth of each record of a block; - for others
    const char *tree;
} rows[] = {
    {"f", "-", "f"},
    {"?.", "abb0 abb0", "?()"},
    {"?f.", "acc0 - acc0", "?(f)"},
    {"f?ff.f", "- bee0 - - bee0 -", "f?(ff)f"},
    {"?:.", "abc0 acc0 acc0", "?()()"},
    {"?f:.", "acd0 - add0 add0", "?(f)()"},
    {"?:f.", "abd0 add0 - add0", "?()(f)"},
    {"?f:ff.", "acf0 - aff0 - - aff0", "?(f)(ff)"},
    {"@.", "abb0 abb0", "@()"},
    {"@ff.", "add0 - - add0", "@(ff)"},
    {"#.", "abb0 abb0", "#"},
    {"#3.", "abc0 acc0 acc0", "#(3)"},
    {"#3f0.", "abe0 ade0 - aee0 aee0", "#(3f)(0)"},
    {"#3f7ff.f", "abg0 adg0 - agg0 - - agg0 -", "#(3f)(7ff)f"},
    {"?f.?f.", "acc0 - acc0 dff0 - dff0", "?(f)?(f)"},
    {"??.:?..", "adg0 bcc1 bcc1 agg0 eff1 eff1 agg0", "?(?())(?())"},
    {"@?f:@f..|.f", "ajj0 bdh1 - bhh1 egg2 - egg2 bhh1 - ajj0 -", "@(?(f)(@(f))|)f"},
    {"#1#2f.3?..", "abj0 agj0 cdf1 cff1 - cff1 ajj0 hii1 hii1 ajj0", "#(1#(2f))(3?())"},
};

static void links_of(const keel_commands_t *commands, char *text)
{
    uint32_t index = 0;
    KEEL_EACH_COMMAND (c, commands) {
        const keel_cmd_block_t *b = (const keel_cmd_block_t *)(const void *)c;
        if (index) *text++ = ' ';
        if (c->kind < KEEL_CMD_IF) {
            *text++ = '-';
        } else {
            assert_int_equal(b->index, index);
            *text++ = place_of(commands, b->begin);
            *text++ = place_of(commands, b->next);
            *text++ = place_of(commands, b->end);
            *text++ = (char)('0' + b->depth);
        }
        index++;
    }
    *text = 0;
}

// Walks as a driver does that nests.
static char *tree_of(const keel_commands_t *commands, const keel_command_t *from,
                     const keel_command_t *to, char *text)
{
    for (const keel_command_t *c = from; c != to; c = keel_command_next(c)) {
        *text++ = letter_of(c);
        if (!command_has_value(c->kind)) continue;
        const keel_cmd_block_t *block = (const keel_cmd_block_t *)(const void *)c;
        KEEL_EACH_WAY(way, commands, block)
        {
            *text++ = '(';
            if (way->head.kind == KEEL_CMD_CASE) *text++ = letter_of(&way->head);
            text = tree_of(commands, keel_command_next(&way->head),
                           keel_commands_at(commands, way->next), text);
            *text++ = ')';
        }
        c = keel_commands_at(commands, block->end);
    }
    *text = 0;
    return text;
}

static void test_structure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_recording_t *recording = record(rows[i].ops);
        const keel_commands_t *commands = recording->commands;
        char text[256];
        links_of(commands, text);
        assert_string_equal(text, rows[i].links);
        tree_of(commands, keel_commands_first(commands), keel_commands_end(commands), text);
        assert_string_equal(text, rows[i].tree);
        assert_int_equal(commands->count, strlen(rows[i].ops)); // nothing but what was recorded
        keel_recording_release(recording);
    }
}

// A refused operation leaves the block as it was: what follows finds its place.
static void test_refused(void **state)
{
    (void)state;
    keel_recording_t *recording = NULL;
    assert_null(keel_recording_create(device, NULL, &recording));
    const char *const letters = "#1f1:f.";
    for (const char *c = letters; *c; c++) {
        keel_op_t op = op_of(*c);
        keel_status_t status = keel_recording_add(recording, &op, 1);
        assert_int_equal(status != NULL, c == letters + 3 || c == letters + 4); // 1 again; an else
        keel_status_release(status);
    }
    assert_null(keel_recording_end(recording));
    char text[64];
    links_of(recording->commands, text);
    assert_string_equal(text, "abe0 aee0 - - aee0");
    keel_recording_release(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
