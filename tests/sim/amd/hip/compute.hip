// SPDX-License-Identifier: Apache-2.0
// What kernels compute: numbers, waves, work-group memory, calls, objects.
#include "programs.h"

#include <hip/hip_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

enum { WAVE = 64 };

static __global__ void count_atomics(int *integers, float *single, double *wide,
                                     unsigned long long *large)
{
    int n = (int)global_index();
    atomicAdd(&integers[0], n);
    atomicMax(&integers[1], n);
    atomicMin(&integers[2], -n);
    atomicXor(&integers[3], n);
    atomicOr(&integers[4], 1 << n % 31);
    atomicSub(&integers[5], 2);
    for (int old = integers[6], seen; (seen = atomicCAS(&integers[6], old, old + 3)) != old;) {
        old = seen;
    }
    atomicInc((unsigned *)&integers[7], 9);
    atomicAdd(single, 0.5f);
    atomicAdd(wide, 0.25);
    atomicAdd(large, 1ull << 33);
}

PROGRAM(atomics)
{
    enum { THREADS = 512 };
    device<int> integers(std::vector<int>(8, 0));
    device<float> single(std::vector<float>(1, 0));
    device<double> wide(std::vector<double>(1, 0));
    device<unsigned long long> large(std::vector<unsigned long long>(1, 0));
    LAUNCH(count_atomics, THREADS / 128, 128, 0, integers, single, wide, large);
    std::vector<int> got = integers.read();
    int odd = 0;
    for (int n = 0; n < THREADS; n++) odd ^= n;
    CHECK(got[0] == THREADS * (THREADS - 1) / 2);
    CHECK(got[1] == THREADS - 1 && got[2] == 1 - THREADS && got[3] == odd);
    CHECK(got[4] == INT32_MAX && got[5] == -2 * THREADS && got[6] == 3 * THREADS);
    CHECK(got[7] == THREADS % 10);
    CHECK(single.read()[0] == 0.5f * THREADS && wide.read()[0] == 0.25 * THREADS);
    CHECK(large.read()[0] == (1ull << 33) * THREADS);
}

static __global__ void bit_counts(const unsigned *in, unsigned *out, unsigned count)
{
    unsigned n = global_index();
    if (n >= count) return;
    unsigned x = in[n];
    out[4 * n] = (unsigned)(__popc(x) + 100 * __clz((int)x) + 10000 * __ffs((int)x));
    out[4 * n + 1] = __brev(x) ^ __umulhi(x, 0x9e3779b9u);
    out[4 * n + 2] = __byte_perm(x, ~x, 0x6240u);
    out[4 * n + 3] = (unsigned)__popcll((unsigned long long)x * x) + __umul24(x, 77) % 100;
}

static unsigned reversed(unsigned x)
{
    unsigned result = 0;
    for (int n = 0; n < 32; n++) result |= (x >> n & 1) << (31 - n);
    return result;
}

PROGRAM(bits)
{
    std::vector<unsigned> in(300);
    for (unsigned n = 0; n < in.size(); n++) in[n] = n * 2654435761u >> n % 29;
    device<unsigned> from(in), to(4 * in.size());
    LAUNCH(bit_counts, 3, 128, 0, from, to, (unsigned)in.size());
    std::vector<unsigned> out = to.read();
    for (unsigned n = 0; n < in.size(); n++) {
        unsigned x = in[n], leading = x ? (unsigned)__builtin_clz(x) : 32;
        CHECK(out[4 * n] == (unsigned)__builtin_popcount(x) + 100 * leading +
                                10000 * (unsigned)__builtin_ffs((int)x));
        CHECK(out[4 * n + 1] == (reversed(x) ^ (unsigned)((uint64_t)x * 0x9e3779b9u >> 32)));
        unsigned b = ~x; // bytes 4 to 7 of the selector
        CHECK(out[4 * n + 2] ==
              ((x & 0xff) | (b & 0xff) << 8 | (x >> 16 & 0xff) << 16 | (b >> 16 & 0xff) << 24));
        CHECK(out[4 * n + 3] ==
              (unsigned)__builtin_popcountll((uint64_t)x * x) + (x & 0xffffff) * 77 % 100);
    }
}

struct shape {
    __device__ shape(float size) : size_(size) {}
    __device__ virtual float area() const = 0;
    __device__ virtual ~shape() {}
    float size_;
};
struct square : shape {
    __device__ square(float size) : shape(size) {}
    __device__ float area() const override { return size_ * size_; }
};
struct triangle : shape {
    __device__ triangle(float size) : shape(size) {}
    __device__ float area() const override { return size_ * size_ / 2; }
};

template <typename F> __device__ float twice(F function, float x)
{
    return function(function(x));
}

static __global__ void measure(float *out)
{
    unsigned n = threadIdx.x;
    square a((float)n);
    triangle b((float)n);
    shape *either = n % 3 ? (shape *)&a : (shape *)&b;
    float offset = (float)n;
    out[n] = either->area() + twice([=](float x) { return 2 * x + offset; }, 1.0f);
}

PROGRAM(classes)
{
    device<float> out(WAVE);
    LAUNCH(measure, 1, WAVE, 0, out);
    std::vector<float> got = out.read();
    for (int n = 0; n < WAVE; n++) {
        float area = n % 3 ? (float)(n * n) : (float)(n * n) / 2;
        CHECK(got[(size_t)n] == area + 4 + 3.0f * (float)n);
    }
}

static __device__ __noinline__ int plus(int a, int b)
{
    return a + b;
}
static __device__ __noinline__ int times(int a, int b)
{
    return a * b;
}
static __device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// clang-17 calls the first lane's function for the whole wave, so there the waves take turns.
#if __clang_major__ == 17
enum { TURN = WAVE };
#else
enum { TURN = 1 };
#endif

static __global__ void call_many(int *out)
{
    int n = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    int (*function)(int, int) = n / TURN % 2 ? plus : times;
    int local[16];
    for (int k = 0; k < 16; k++) local[k] = function(k, n);
    out[n] = local[n % 16] + fibonacci(n % 10);
}

PROGRAM(calls)
{
    static const int fibonaccis[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    device<int> out(96);
    LAUNCH(call_many, 1, dim3(8, 4, 3), 0, out);
    std::vector<int> got = out.read();
    for (int n = 0; n < 96; n++) {
        CHECK(got[(size_t)n] == (n / TURN % 2 ? n % 16 + n : n % 16 * n) + fibonaccis[n % 10]);
    }
}

static __global__ void read_clocks(long long *out)
{
    long long first = clock64(), wall = (long long)__builtin_amdgcn_s_memrealtime();
    for (int n = 0; n < 100; n++) __builtin_amdgcn_s_sleep(1);
    out[2 * threadIdx.x] = clock64() - first;
    out[2 * threadIdx.x + 1] = (long long)__builtin_amdgcn_s_memrealtime() - wall;
}

PROGRAM(clocks)
{
    device<long long> out(2 * WAVE);
    LAUNCH(read_clocks, 1, WAVE, 0, out);
    for (long long passed : out.read()) CHECK(passed > 0);
}

static __global__ void find_place(unsigned *out)
{
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

PROGRAM(grids)
{
    const dim3 grids[] = {{5}, {3, 4}, {2, 3, 4}}, blocks[] = {{7}, {16, 3}, {4, 5, 6}, {1024}};
    for (dim3 grid : grids) {
        for (dim3 block : blocks) {
            unsigned threads = block.x * block.y * block.z, count = grid.x * grid.y * grid.z;
            device<unsigned> out(threads * count);
            LAUNCH(find_place, grid, block, 0, out);
            std::vector<unsigned> got = out.read();
            for (unsigned n = 0; n < got.size(); n++) {
                CHECK(got[n] == n / threads * 1000 + n % threads);
            }
        }
    }
    // More threads than a workgroup may have.
    device<unsigned> out(1);
    find_place<<<1, 2000>>>(out);
    CHECK(hipGetLastError() != hipSuccess);
}

static __global__ void half_numbers(const __half *x, __half *out)
{
    unsigned n = threadIdx.x;
    __half2 pair = __halves2half2(x[n], __float2half(2.0f));
    pair = __hfma2(pair, pair, __float2half2_rn(0.5f));
    out[2 * n] = __low2half(pair);
    out[2 * n + 1] = __hadd(__high2half(pair), hsqrt(x[n]));
}

static bool near_to(double got, double want, double ulps, double unit)
{
    return fabs(got - want) <= ulps * unit * fmax(fabs(want), 1);
}

PROGRAM(halves)
{
    std::vector<__half> in(WAVE);
    for (int n = 0; n < WAVE; n++) in[(size_t)n] = __float2half((float)n * 0.25f);
    device<__half> x(in), out(2 * WAVE);
    LAUNCH(half_numbers, 1, WAVE, 0, x, out);
    std::vector<__half> got = out.read();
    for (size_t n = 0; n < WAVE; n++) {
        float v = (float)n * 0.25f;
        CHECK(near_to(__half2float(got[2 * n]), v * v + 0.5f, 1, 0x1p-10));
        CHECK(near_to(__half2float(got[2 * n + 1]), 4.5f + sqrtf(v), 2, 0x1p-10));
    }
}

static __global__ void functions(const double *x, double *out, float *singles)
{
    unsigned n = threadIdx.x;
    double v = x[n];
    float f = (float)v;
    out[6 * n + 0] = sin(v) + cos(v * 1e15); // that angle is reduced by many bits of 2 / pi
    out[6 * n + 1] = exp(v / 8) + log(fabs(v) + 1);
    out[6 * n + 2] = pow(fabs(v), 1.7) + cbrt(v);
    out[6 * n + 3] = sqrt(fabs(v)) / (v * v + 1);
    out[6 * n + 4] = fmod(v * 100, 7.25) + atan2(v, 2.0);
    out[6 * n + 5] = tgamma(fabs(v) / 8 + 1) + erf(v / 4);
    singles[4 * n + 0] = sinf(f) + cosf(f);
    singles[4 * n + 1] = expf(f / 4) / (1 + f * f);
    singles[4 * n + 2] = powf(fabsf(f) + 0.5f, 0.3f);
    singles[4 * n + 3] = rsqrtf(f * f + 1) + __fdividef(f, 3.0f);
}

PROGRAM(math)
{
    std::vector<double> in(WAVE);
    for (int n = 0; n < WAVE; n++) in[(size_t)n] = (n - 31.5) * 0.7310585786300049;
    device<double> x(in), out(6 * WAVE);
    device<float> singles(4 * WAVE);
    LAUNCH(functions, 1, WAVE, 0, x, out, singles);
    std::vector<double> got = out.read();
    std::vector<float> single = singles.read();
    for (size_t n = 0; n < WAVE; n++) {
        double v = in[n];
        float f = (float)v;
        const double want[] = {sin(v) + cos(v * 1e15),
                               exp(v / 8) + log(fabs(v) + 1),
                               pow(fabs(v), 1.7) + cbrt(v),
                               sqrt(fabs(v)) / (v * v + 1),
                               fmod(v * 100, 7.25) + atan2(v, 2.0),
                               tgamma(fabs(v) / 8 + 1) + erf(v / 4)};
        for (size_t k = 0; k < 6; k++) CHECK(near_to(got[6 * n + k], want[k], 16, 0x1p-50));
        const double wants[] = {sin(f) + cos(f), exp(f / 4) / (1 + f * f), pow(fabs(f) + 0.5, 0.3),
                                1 / sqrt(f * f + 1) + f / 3};
        for (size_t k = 0; k < 4; k++) CHECK(near_to(single[4 * n + k], wants[k], 16, 0x1p-21));
    }
}

enum { TILE = 16, SIDE = 48 };

static __global__ void __launch_bounds__(TILE *TILE)
    multiply(const float *a, const float *b, float *c)
{
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
    unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * TILE + x,
             row = blockIdx.y * TILE + y;
    float sum = 0;
    for (unsigned k = 0; k < SIDE; k += TILE) {
        left[y][x] = a[row * SIDE + k + x];
        right[y][x] = b[(k + y) * SIDE + column];
        __syncthreads();
        for (unsigned n = 0; n < TILE; n++) sum += left[y][n] * right[n][x];
        __syncthreads();
    }
    c[row * SIDE + column] = sum;
}

PROGRAM(matrices)
{
    std::vector<float> a(SIDE * SIDE), b(SIDE * SIDE);
    for (unsigned n = 0; n < a.size(); n++) a[n] = (float)(n % 7), b[n] = (float)(n % 5) - 2;
    device<float> left(a), right(b), product(a.size());
    LAUNCH(multiply, dim3(SIDE / TILE, SIDE / TILE), dim3(TILE, TILE), 0, left, right, product);
    std::vector<float> got = product.read();
    for (unsigned y = 0; y < SIDE; y++) {
        for (unsigned x = 0; x < SIDE; x++) {
            float want = 0; // exact: small integers
            for (unsigned k = 0; k < SIDE; k++) want += a[y * SIDE + k] * b[k * SIDE + x];
            CHECK(got[y * SIDE + x] == want);
        }
    }
}

// Sums so far over many blocks, in one pass: each block adds what those before it have published.
static __global__ void scan(const unsigned *in, unsigned *out, unsigned long long *published,
                            unsigned *ticket)
{
    __shared__ unsigned sums[256], block, before;
    if (threadIdx.x == 0) block = atomicAdd(ticket, 1u);
    __syncthreads();
    unsigned n = block * 256 + threadIdx.x;
    sums[threadIdx.x] = in[n];
    for (unsigned d = 1; d < 256; d *= 2) {
        __syncthreads();
        unsigned other = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
    }
    if (threadIdx.x == 255) {
        unsigned long long seen = block ? 0 : 1;
        while (!seen) {
            seen = __hip_atomic_load(&published[block - 1], __ATOMIC_ACQUIRE,
                                     __HIP_MEMORY_SCOPE_AGENT);
        }
        before = (unsigned)(seen >> 1);
        __hip_atomic_store(&published[block], (unsigned long long)(before + sums[255]) << 1 | 1,
                           __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    }
    __syncthreads();
    out[n] = before + sums[threadIdx.x];
}

PROGRAM(scans)
{
    enum { BLOCKS = 40 };
    std::vector<unsigned> in = count_up(256 * BLOCKS, 3);
    device<unsigned> from(in), to(in.size()), ticket(std::vector<unsigned>(1, 0));
    device<unsigned long long> published(std::vector<unsigned long long>(BLOCKS, 0));
    LAUNCH(scan, BLOCKS, 256, 0, from, to, published, ticket);
    std::vector<unsigned> got = to.read();
    unsigned sum = 0;
    for (size_t n = 0; n < in.size(); n++) CHECK(got[n] == (sum += in[n]));
}

static __global__ void sort_block(unsigned *data)
{
    extern __shared__ unsigned sorted[];
    unsigned n = threadIdx.x;
    sorted[n] = data[blockIdx.x * blockDim.x + n];
    for (unsigned size = 2; size <= blockDim.x; size *= 2) {
        for (unsigned d = size / 2; d; d /= 2) {
            __syncthreads();
            unsigned other = n ^ d, low = sorted[n], high = sorted[other];
            bool up = !(n & size);
            __syncthreads();
            if (other > n && (low > high) == up) sorted[n] = high, sorted[other] = low;
        }
    }
    __syncthreads();
    data[blockIdx.x * blockDim.x + n] = sorted[n];
}

PROGRAM(sorts)
{
    enum { SIZE = 512, BLOCKS = 4 };
    std::vector<unsigned> in(SIZE * BLOCKS);
    for (unsigned n = 0; n < in.size(); n++) in[n] = n * 2654435761u >> 7;
    device<unsigned> data(in);
    sort_block<<<BLOCKS, SIZE, SIZE * sizeof(unsigned)>>>(data);
    HIP(hipGetLastError());
    std::vector<unsigned> got = data.read();
    for (size_t block = 0; block < BLOCKS; block++) {
        auto first = in.begin() + (long)(block * SIZE);
        std::sort(first, first + SIZE);
    }
    CHECK(got == in);
}

static __constant__ int factors[4] = {1, 2, 3, 4};
static __device__ int offset = 5;
static __device__ int results[WAVE];

static __global__ void use_symbols()
{
    results[threadIdx.x] = (int)threadIdx.x * factors[threadIdx.x % 4] + offset;
}

PROGRAM(symbols)
{
    const int changed[] = {1, 10, 100, 1000}, seven = 7;
    void *address = nullptr;
    size_t size = 0;
    int got[WAVE];
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(factors), changed, sizeof changed));
    HIP(hipGetSymbolAddress(&address, HIP_SYMBOL(offset)));
    HIP(hipMemcpy(address, &seven, sizeof seven, hipMemcpyHostToDevice));
    HIP(hipGetSymbolSize(&size, HIP_SYMBOL(results)));
    CHECK(size == sizeof got);
    LAUNCH(use_symbols, 1, WAVE, 0);
    HIP(hipMemcpyFromSymbol(got, HIP_SYMBOL(results), sizeof got));
    for (int n = 0; n < WAVE; n++) CHECK(got[n] == n * changed[n % 4] + seven);
}

static __global__ void vectors(const float4 *in, uchar4 *bytes, double2 *pairs, short *shorts)
{
    unsigned n = threadIdx.x;
    float4 v = in[n];
    bytes[n] =
        make_uchar4((unsigned char)v.x, (unsigned char)v.y, (unsigned char)v.z, (unsigned char)v.w);
    pairs[n] = make_double2(v.x + v.y, v.z * v.w);
    shorts[n] = (short)(v.x - v.w);
}

PROGRAM(vector_types)
{
    std::vector<float4> in(WAVE);
    for (unsigned n = 0; n < WAVE; n++) {
        float f = (float)n;
        in[n] = make_float4(f, f + 1.5f, 2 * f, 255 - f);
    }
    device<float4> from(in);
    device<uchar4> bytes(WAVE);
    device<double2> pairs(WAVE);
    device<short> shorts(WAVE);
    LAUNCH(vectors, 1, WAVE, 0, from, bytes, pairs, shorts);
    std::vector<uchar4> b = bytes.read();
    std::vector<double2> p = pairs.read();
    std::vector<short> s = shorts.read();
    for (size_t n = 0; n < WAVE; n++) {
        CHECK(b[n].x == n && b[n].y == n + 1 && b[n].z == 2 * n && b[n].w == 255 - n);
        CHECK(p[n].x == 2.0 * (double)n + 1.5 && p[n].y == 2.0 * (double)(n * (255 - n)));
        CHECK(s[n] == 2 * (int)n - 255);
    }
}

// Sums so far by shuffles; the odd lanes by votes; a reduction over the wave.
static __global__ void across(unsigned *sums, unsigned long long *odd, unsigned *flags)
{
    unsigned lane = threadIdx.x % WAVE, value = threadIdx.x;
    for (unsigned d = 1; d < WAVE; d *= 2) {
        unsigned other = __shfl_up(value, d);
        if (lane >= d) value += other;
    }
    sums[threadIdx.x] = value;
    unsigned long long votes = __ballot(__shfl(lane, (int)(lane ^ 1)) % 2 == 0);
    if (lane == 0) odd[threadIdx.x / WAVE] = votes;
    unsigned widest = lane;
    for (int d = WAVE / 2; d; d /= 2) widest = max(widest, __shfl_xor(widest, d));
    flags[threadIdx.x] = (unsigned)(__all((int)threadIdx.x < 128) + 2 * __any(lane == 63)) +
                         4 * widest + 1000 * (unsigned)(__shfl_down(lane, 1) - lane);
}

PROGRAM(waves)
{
    enum { THREADS = 256 };
    device<unsigned> sums(THREADS), flags(THREADS);
    device<unsigned long long> odd(THREADS / WAVE);
    LAUNCH(across, 1, THREADS, 0, sums, odd, flags);
    std::vector<unsigned> sum = sums.read(), flag = flags.read();
    for (unsigned n = 0; n < THREADS; n++) {
        unsigned first = n / WAVE * WAVE, next = n % WAVE == WAVE - 1 ? 0 : 1;
        CHECK(sum[n] == n * (n + 1) / 2 - (first ? first * (first - 1) / 2 : 0));
        CHECK(flag[n] == (n < 128 ? 1u : 0u) + 2 + 4 * 63 + 1000 * next);
    }
    for (unsigned long long votes : odd.read()) CHECK(votes == 0xaaaaaaaaaaaaaaaa);
}
