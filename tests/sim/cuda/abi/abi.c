// SPDX-License-Identifier: Apache-2.0
// Compares the numbers of sim/cuda/types.h with those of the vendor's header.
#include "numbers.h"

#include <stdio.h>

int main(void)
{
    unsigned wrong = 0, count = 0;
    for (; abi_ours[count].name; count++) {
        if (abi_ours[count].value == abi_vendors[count].value) continue;
        fprintf(stderr, "%s is %lld, and %lld in the vendor's header\n", abi_ours[count].name,
                abi_ours[count].value, abi_vendors[count].value);
        wrong++;
    }
    printf("%u passed, %u failed\n", count - wrong, wrong);
    return wrong || !count;
}
