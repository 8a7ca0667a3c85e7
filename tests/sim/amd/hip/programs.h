// SPDX-License-Identifier: Apache-2.0
// Small HIP programs in one binary, for the HIP of any version from 5.2 on. Each is a PROGRAM,
// which CHECKs what it sees. A failed check ends that program, not the others.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <string>
#include <vector>

// What ends a program early.
struct failure {
    std::string why;
};
struct skipped {
    std::string why;
};

inline void check_hip(hipError_t error, const char *what, const char *file, int line)
{
    if (error == hipSuccess) return;
    (void)hipGetLastError();
    throw failure{std::string(file) + ":" + std::to_string(line) + ": " + what + ": " +
                  hipGetErrorString(error)};
}

inline void check_true(bool good, const char *what, const char *file, int line)
{
    if (!good)
        throw failure{std::string(file) + ":" + std::to_string(line) + ": not true: " + what};
}

#define HIP(call)        check_hip((call), #call, __FILE_NAME__, __LINE__)
#define CHECK(condition) check_true((condition), #condition, __FILE_NAME__, __LINE__)

// Launches without shared memory, on the null stream if none is given.
#define LAUNCH(kernel, blocks, threads, stream, ...)                                               \
    do {                                                                                           \
        kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__);                                 \
        HIP(hipGetLastError());                                                                    \
    } while (0)

// A program, known by its name.
struct program {
    const char *name;
    void (*run)();
    bool dies; // it ends its process, and is run only by its name
    program(const char *its_name, void (*function)(), bool it_dies);
};

#define PROGRAM_OF(name, dies)                                                                     \
    static void run_##name();                                                                      \
    static program program_##name(#name, run_##name, dies);                                        \
    static void run_##name()
#define PROGRAM(name)       PROGRAM_OF(name, false)
#define DYING_PROGRAM(name) PROGRAM_OF(name, true)

// How another process of this binary ended.
struct ending {
    int status;         // 0, or a signal's number plus 128, or its own
    std::string output; // both streams
};

// Starts this binary with these arguments, and waits for its end.
ending run_self(const std::vector<std::string> &arguments);

// Memory of the current device.
template <typename T> class device
{
  public:
    explicit device(size_t count) : count_(count) { HIP(hipMalloc(&data_, count * sizeof(T))); }
    explicit device(const std::vector<T> &values) : device(values.size())
    {
        HIP(hipMemcpy(data_, values.data(), count_ * sizeof(T), hipMemcpyHostToDevice));
    }
    device(const device &) = delete;
    device &operator=(const device &) = delete;
    ~device() { (void)hipFree(data_); }
    operator T *() const { return data_; }
    size_t bytes() const { return count_ * sizeof(T); }
    std::vector<T> read() const
    {
        std::vector<T> values(count_);
        HIP(hipMemcpy(values.data(), data_, bytes(), hipMemcpyDeviceToHost));
        return values;
    }

  private:
    T *data_ = nullptr;
    size_t count_;
};

// A stream that ends with its scope.
class stream
{
  public:
    explicit stream(unsigned flags = hipStreamDefault)
    {
        HIP(hipStreamCreateWithFlags(&stream_, flags));
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    ~stream() { (void)hipStreamDestroy(stream_); }
    operator hipStream_t() const { return stream_; }

  private:
    hipStream_t stream_ = nullptr;
};

// 0, 1, 2 and so on, from a beginning.
inline std::vector<unsigned> count_up(size_t count, unsigned first = 0)
{
    std::vector<unsigned> values(count);
    for (size_t n = 0; n < count; n++) values[n] = first + (unsigned)n;
    return values;
}

inline __device__ unsigned global_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// Kernels that several files use.
[[maybe_unused]] static __global__ void add(unsigned *data, unsigned count, unsigned value)
{
    if (global_index() < count) data[global_index()] += value;
}
