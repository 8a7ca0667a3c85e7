// SPDX-License-Identifier: Apache-2.0
// Which of CUDA's errors say that the device is lost: those after which, by CUDA's documentation,
// every further call fails until the process ends, or the context has gone; and no others.
#include "drivers/cuda/device.h"

static const int lost[] = {
    4,   // deinitialised
    201, // invalid context
    214, // uncorrectable ECC error
    220, // the same of NVLink
    226, // an exception that was contained
    400, // invalid handle: another library has reset the device
    700, // illegal address
    702, // launch timeout
    709, // the context is destroyed
    710, // assert
    714, // hardware stack error
    715, // illegal instruction
    716, // misaligned address
    717, // invalid address space
    718, // invalid program counter
    719, // launch failed
    721, // tensor memory was not given back
    810, // the client of MPS was terminated
    911, // a device outside of CUDA failed
    999, // unknown
};

static bool is_lost(int code)
{
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        if (lost[i] == code) return true;
    return false;
}

static void test_codes(void **state)
{
    (void)state;
    const cuda_symbols_t *symbols = NULL;
    assert_null(cuda_symbols_open(CUDA_LIBRARY, &symbols));
    assert_null(cuda_status_make(symbols, CUDA_SUCCESS, "cuCall"));
    for (int code = 1; code < 1000; code++) {
        keel_status_t status = cuda_status_make(symbols, (CUresult)code, "cuCall");
        bool found = keel_status_code(status) == KEEL_DEVICE_LOST;
        if (found != is_lost(code)) fail_msg("%d: %s", code, keel_status_message(status));
        keel_status_release(status);
    }
}

// What a person can do something about is not called internal.
static void test_others(void **state)
{
    (void)state;
    static const struct {
        int code;
        keel_code_t is;
    } rows[] = {
        {1, KEEL_INVALID_ARGUMENT},     {2, KEEL_RESOURCE_EXHAUSTED},
        {46, KEEL_FAILED_PRECONDITION}, // another process has the device alone
        {100, KEEL_NOT_FOUND},          {200, KEEL_CORRUPT},
        {209, KEEL_UNSUPPORTED},        {801, KEEL_UNSUPPORTED},
    };
    const cuda_symbols_t *symbols = NULL;
    assert_null(cuda_symbols_open(CUDA_LIBRARY, &symbols));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        keel_status_t status = cuda_status_make(symbols, (CUresult)rows[i].code, "cuCall");
        assert_int_equal(keel_status_code(status), rows[i].is);
        keel_status_release(status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
