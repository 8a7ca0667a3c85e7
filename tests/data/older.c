// SPDX-License-Identifier: Apache-2.0
// What older.sh compiles.
typedef struct {
    char tag;
    double value;
} pair_t;

__attribute__((address_space(3), loader_uninitialized)) int tile[256];
__attribute__((address_space(4))) int table[4] = {1, 2, 3, 4};
int counter;

[[clang::nvptx_kernel]] void saxpy(float *y, const float *x, float a, char b, long n)
{
    y[n] = x[n] * a + b;
}

[[clang::nvptx_kernel]] void grouped(pair_t p, int *out)
{
    tile[out[0]] = out[1];
    out[2] = tile[out[3]] + (int)p.value + table[out[4]];
}
