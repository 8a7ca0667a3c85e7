// SPDX-License-Identifier: Apache-2.0
// An ordinary HIP program, compiled by hipcc: launches, shared memory, shuffles and votes, math, half
// precision, atomics, recursion, symbols, printf.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, BINS = 16, WAVE = 64 };

static void check(hipError_t error, int line)
{
    if (error == hipSuccess) return;
    printf("line %d: %s\n", line, hipGetErrorString(error));
    exit(1);
}
#define HIP(call) check((call), __LINE__)

static unsigned wrong;

static void expect(bool good, const char *what, unsigned n)
{
    if (good) return;
    if (wrong++ < 10) printf("%s: element %u is wrong\n", what, n);
}

__global__ void histogram(const unsigned *in, unsigned *out)
{
    __shared__ unsigned bins[BINS];
    if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < COUNT) atomicAdd(&bins[in[n] % BINS], 1u);
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

static void test_histogram()
{
    unsigned in[COUNT], out[BINS], *device_in, *device_out;
    for (unsigned n = 0; n < COUNT; n++) in[n] = n * 7;
    HIP(hipMalloc(&device_in, sizeof in));
    HIP(hipMalloc(&device_out, sizeof out));
    HIP(hipMemset(device_out, 0, sizeof out));
    HIP(hipMemcpy(device_in, in, sizeof in, hipMemcpyHostToDevice));
    histogram<<<4, 256>>>(device_in, device_out);
    HIP(hipMemcpy(out, device_out, sizeof out, hipMemcpyDeviceToHost));
    for (unsigned b = 0; b < BINS; b++) {
        unsigned want = 0;
        for (unsigned n = 0; n < COUNT; n++) want += in[n] % BINS == b;
        expect(out[b] == want, "histogram", b);
    }
}

// Sums so far by shuffles; who is odd by votes; a sum of the block in dynamic shared memory.
__global__ void across(unsigned *sums, unsigned long long *odd, unsigned *total)
{
    extern __shared__ unsigned scratch[];
    unsigned lane = threadIdx.x % WAVE, value = threadIdx.x;
    for (unsigned d = 1; d < WAVE; d *= 2) {
        unsigned other = __shfl_up(value, d);
        if (lane >= d) value += other;
    }
    sums[threadIdx.x] = value + __shfl_xor(threadIdx.x, 1) * 0;
    unsigned long long votes = __ballot(__shfl(lane, lane ^ 1) % 2 == 0);
    if (lane == 0) odd[threadIdx.x / WAVE] = votes;
    scratch[threadIdx.x] = threadIdx.x;
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *total = scratch[0];
}

static void test_across()
{
    enum { THREADS = 256 };
    unsigned *sums, *total;
    unsigned long long *odd;
    HIP(hipMallocManaged(&sums, THREADS * sizeof *sums));
    HIP(hipMallocManaged(&odd, 4 * sizeof *odd));
    HIP(hipMallocManaged(&total, sizeof *total));
    across<<<1, THREADS, THREADS * sizeof(unsigned)>>>(sums, odd, total);
    HIP(hipDeviceSynchronize());
    for (unsigned n = 0; n < THREADS; n++) {
        unsigned first = n / WAVE * WAVE;
        expect(sums[n] == n * (n + 1) / 2 - (first ? first * (first - 1) / 2 : 0), "shuffle", n);
    }
    for (unsigned n = 0; n < 4; n++) expect(odd[n] == 0xaaaaaaaaaaaaaaaa, "vote", n);
    expect(*total == THREADS * (THREADS - 1) / 2, "dynamic shared memory", 0);
}

__global__ void math(const double *x, double *out, float *singles)
{
    unsigned n = threadIdx.x;
    double v = x[n];
    float f = (float)v;
    out[8 * n + 0] = sin(v);
    out[8 * n + 1] = cos(v * 1e15); // the angle is reduced by many bits of 2 / pi
    out[8 * n + 2] = exp(v / 8);
    out[8 * n + 3] = log(fabs(v) + 1);
    out[8 * n + 4] = pow(fabs(v), 1.7);
    out[8 * n + 5] = sqrt(fabs(v)) / (v * v + 1);
    out[8 * n + 6] = fmod(v * 100, 7.25);
    out[8 * n + 7] = tgamma(fabs(v) / 8 + 1);
    singles[4 * n + 0] = sinf(f) + cosf(f);
    singles[4 * n + 1] = expf(f / 4) / (1 + f * f);
    singles[4 * n + 2] = powf(fabsf(f) + 0.5f, 0.3f);
    singles[4 * n + 3] = rsqrtf(f * f + 1);
}

static bool near(double got, double want, double ulps, double unit)
{
    return fabs(got - want) <= ulps * unit * fmax(fabs(want), 1e-3);
}

static void test_math()
{
    double *x, *out;
    float *singles;
    HIP(hipMallocManaged(&x, WAVE * sizeof *x));
    HIP(hipMallocManaged(&out, 8 * WAVE * sizeof *out));
    HIP(hipMallocManaged(&singles, 4 * WAVE * sizeof *singles));
    for (unsigned n = 0; n < WAVE; n++) x[n] = ((double)n - 31.5) * 0.7310585786300049;
    math<<<1, WAVE>>>(x, out, singles);
    HIP(hipDeviceSynchronize());
    for (unsigned n = 0; n < WAVE; n++) {
        double v = x[n];
        const double want[8] = {sin(v),
                                cos(v * 1e15),
                                exp(v / 8),
                                log(fabs(v) + 1),
                                pow(fabs(v), 1.7),
                                sqrt(fabs(v)) / (v * v + 1),
                                fmod(v * 100, 7.25),
                                tgamma(fabs(v) / 8 + 1)};
        for (unsigned k = 0; k < 8; k++) expect(near(out[8 * n + k], want[k], 16, 0x1p-52), "double", k);
        float f = (float)v;
        const double single[4] = {sin(f) + cos(f), exp(f / 4) / (1 + f * f), pow(fabs(f) + 0.5, 0.3),
                                  1 / sqrt(f * f + 1)};
        for (unsigned k = 0; k < 4; k++) {
            expect(near(singles[4 * n + k], single[k], 16, 0x1p-23), "single", k);
        }
    }
}

__global__ void halves(const __half *x, __half *out)
{
    unsigned n = threadIdx.x;
    __half2 pair = __halves2half2(x[n], __float2half(2.0f));
    pair = __hfma2(pair, pair, __float2half2_rn(0.5f));
    out[2 * n] = __low2half(pair);
    out[2 * n + 1] = __hadd(__high2half(pair), hsqrt(x[n]));
}

static void test_halves()
{
    __half *x, *out;
    HIP(hipMallocManaged(&x, WAVE * sizeof *x));
    HIP(hipMallocManaged(&out, 2 * WAVE * sizeof *out));
    for (unsigned n = 0; n < WAVE; n++) x[n] = __float2half(n * 0.25f);
    halves<<<1, WAVE>>>(x, out);
    HIP(hipDeviceSynchronize());
    for (unsigned n = 0; n < WAVE; n++) {
        float v = n * 0.25f;
        expect(near(__half2float(out[2 * n]), v * v + 0.5f, 1, 0x1p-10), "half", n);
        expect(near(__half2float(out[2 * n + 1]), 4.5f + sqrtf(v), 2, 0x1p-10), "half sum", n);
    }
}

__global__ void atomics(int *integers, float *sum, double *wide, unsigned long long *large)
{
    int n = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    atomicMax(&integers[0], n);
    atomicMin(&integers[1], -n);
    atomicXor(&integers[2], n);
    atomicCAS(&integers[3], 0, n + 1);
    atomicAdd_system(&integers[4], 2);
    atomicAdd(sum, 0.5f);
    atomicAdd(wide, 0.25);
    atomicAdd(large, 1ull << 33);
    __threadfence_system();
}

static void test_atomics()
{
    enum { THREADS = 512 };
    int *integers, odd = 0;
    float *sum;
    double *wide;
    unsigned long long *large;
    HIP(hipMalloc(&integers, 5 * sizeof *integers));
    HIP(hipMalloc(&sum, sizeof *sum));
    HIP(hipMalloc(&wide, sizeof *wide));
    HIP(hipMalloc(&large, sizeof *large));
    HIP(hipMemset(integers, 0, 5 * sizeof *integers));
    HIP(hipMemset(sum, 0, sizeof *sum));
    HIP(hipMemset(wide, 0, sizeof *wide));
    HIP(hipMemset(large, 0, sizeof *large));
    atomics<<<THREADS / 128, 128>>>(integers, sum, wide, large);
    int got[5];
    float got_sum;
    double got_wide;
    unsigned long long got_large;
    HIP(hipMemcpy(got, integers, sizeof got, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&got_sum, sum, sizeof got_sum, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&got_wide, wide, sizeof got_wide, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&got_large, large, sizeof got_large, hipMemcpyDeviceToHost));
    for (int n = 0; n < THREADS; n++) odd ^= n;
    expect(got[0] == THREADS - 1 && got[1] == 1 - THREADS && got[2] == odd && got[3] > 0, "atomic", 0);
    expect(got[4] == 2 * THREADS && got_sum == 0.5f * THREADS, "atomic", 1);
    expect(got_wide == 0.25 * THREADS && got_large == (1ull << 33) * THREADS, "atomic", 2);
}

__constant__ int factors[4] = {1, 2, 3, 4};
__device__ int offset = 5;

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// clang-17 calls the first lane's function for the whole wave, so there the waves take turns.
#if __clang_major__ == 17
enum { TURN = WAVE };
#else
enum { TURN = 1 };
#endif

__global__ void calls(int *out)
{
    int n = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    int (*function)(int, int) = n / TURN % 2 ? add : multiply;
    int local[16];
    for (int k = 0; k < 16; k++) local[k] = function(k, n);
    out[n] = local[n % 16] + fibonacci(n % 10) + factors[n % 4] + offset;
}

static void test_calls()
{
    static const int fibonaccis[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    int *out, changed = 7;
    HIP(hipMallocManaged(&out, 96 * sizeof *out));
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(offset), &changed, sizeof changed));
    calls<<<1, dim3(8, 4, 3)>>>(out);
    HIP(hipDeviceSynchronize());
    for (int n = 0; n < 96; n++) {
        int want = (n / TURN % 2 ? n % 16 + n : n % 16 * n) + fibonaccis[n % 10] + n % 4 + 1 + changed;
        expect(out[n] == want, "calls", (unsigned)n);
    }
}

__global__ void speak(int number) { printf("lane %d has %d\n", (int)threadIdx.x, number); }

int main()
{
    test_histogram();
    test_across();
    test_math();
    test_halves();
    test_atomics();
    test_calls();
    speak<<<1, 2>>>(42);
    HIP(hipDeviceSynchronize());
    printf("%u wrong\n", wrong);
    return wrong != 0;
}
