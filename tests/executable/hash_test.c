// SPDX-License-Identifier: Apache-2.0
#include "executable/hash.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static void text_of(hash_t hash, char text[65])
{
    for (int i = 0; i < HASH_SIZE; i++) snprintf(text + 2 * i, 3, "%02x", hash.bytes[i]);
}

// What `b2sum -l 256` says of the bytes i * 7 + 3.
static const struct {
    size_t size;
    const char *hash;
} known[] = {
    {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {1, "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
    {127, "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
    {128, "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
    {129, "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
    {256, "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
    {1000, "d62b6c768ce1afc8367e0498ab2f8e3f7c178c35b1429f14c4604b545d200f52"},
};

static void test_known(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    char text[65];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7 + 3);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        text_of(hash_of(bytes, known[i].size), text);
        assert_string_equal(text, known[i].hash);
    }
}

static void test_in_pieces(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    memset(bytes, 0x5a, sizeof bytes);
    hash_t whole = hash_of(bytes, sizeof bytes);
    for (size_t piece = 1; piece < 300; piece++) {
        hash_state_t hash;
        hash_begin(&hash);
        for (size_t at = 0; at < sizeof bytes; at += piece)
            hash_add(&hash, bytes + at, sizeof bytes - at < piece ? sizeof bytes - at : piece);
        hash_t pieces = hash_end(&hash);
        assert_memory_equal(&pieces, &whole, sizeof whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
