// SPDX-License-Identifier: Apache-2.0
#include "cuda/base.h"
#include "cuda/module.h"
#include "cuda/ptx.h"

#include <string.h>

typedef struct thread_t {
    const cuda_host_block_t *block;
    const char *params;
    uint32_t id[3];
    uint64_t registers[PTX_REGISTERS]; // no bits above those of their type
    char frame[PTX_FRAME] __attribute__((aligned(16)));
} thread_t;

static uint64_t mask(ptx_type_t type)
{
    return type.bits == 64 ? UINT64_MAX : ((uint64_t)1 << type.bits) - 1;
}

static uint64_t special(const thread_t *thread, uint32_t index)
{
    if (index == PTX_TIMER) return clock_ns();
    const uint32_t *of[] = {thread->id, thread->block->threads, thread->block->block,
                            thread->block->grid};
    return of[index / 3][index % 3];
}

static uint64_t value(const thread_t *thread, const ptx_operand_t *operand)
{
    switch (operand->base) {
    case PTX_REGISTER: return thread->registers[operand->index] + (uint64_t)operand->offset;
    case PTX_NUMBER: return (uint64_t)operand->offset;
    case PTX_SPECIAL: return special(thread, operand->index);
    case PTX_PARAMETER: return (uintptr_t)thread->params + (uint64_t)operand->offset;
    case PTX_LOCAL: return (uintptr_t)thread->frame + (uint64_t)operand->offset;
    }
    return 0;
}

// With the sign of its type spread to the left, where it has one.
static uint64_t widened(uint64_t bits, ptx_type_t type)
{
    bits &= mask(type);
    if (!type.is_signed || type.bits == 64) return bits;
    uint64_t sign = (uint64_t)1 << (type.bits - 1);
    return (bits ^ sign) - sign;
}

static uint64_t source(const thread_t *thread, const ptx_step_t *step, int number)
{
    return widened(value(thread, &step->operands[number]), step->type);
}

static void store(thread_t *thread, const ptx_step_t *step, int number, uint64_t bits,
                  ptx_type_t type)
{
    thread->registers[step->operands[number].index] = bits & mask(type);
}

// Device code may go anywhere, and a fault is a result. So no sanitizer looks at where it goes.
#define AT_WILL __attribute__((no_sanitize("address"), no_sanitize("undefined"), noinline))

AT_WILL static uint64_t memory_get(uint64_t address, size_t size)
{
    const void *at = (const void *)(uintptr_t)address;
    switch (size) {
    case 1: return *(const volatile uint8_t *)at;
    case 2: return *(const volatile uint16_t *)at;
    case 4: return *(const volatile uint32_t *)at;
    default: return *(const volatile uint64_t *)at;
    }
}

AT_WILL static void memory_set(uint64_t address, size_t size, uint64_t bits)
{
    void *at = (void *)(uintptr_t)address;
    switch (size) {
    case 1: *(volatile uint8_t *)at = (uint8_t)bits; break;
    case 2: *(volatile uint16_t *)at = (uint16_t)bits; break;
    case 4: *(volatile uint32_t *)at = (uint32_t)bits; break;
    default: *(volatile uint64_t *)at = bits; break;
    }
}

static int memory_load(thread_t *thread, const ptx_step_t *step)
{
    size_t size = step->type.bits / 8;
    uint64_t address = value(thread, &step->operands[step->vector]);
    if (address % (size * step->vector)) return PTX_MISALIGNED;
    for (uint32_t i = 0; i < step->vector; i++)
        thread->registers[step->operands[i].index] =
            widened(memory_get(address + i * size, size), step->type);
    return 0;
}

static int memory_store(const thread_t *thread, const ptx_step_t *step)
{
    size_t size = step->type.bits / 8;
    uint64_t address = value(thread, &step->operands[0]);
    if (address % (size * step->vector)) return PTX_MISALIGNED;
    for (uint32_t i = 0; i < step->vector; i++)
        memory_set(address + i * size, size, value(thread, &step->operands[1 + i]));
    return 0;
}

AT_WILL static uint64_t swap(const thread_t *thread, const ptx_step_t *step)
{
    uint64_t address = value(thread, &step->operands[1]);
    uint64_t old = source(thread, step, 2), new = source(thread, step, 3);
    if (step->type.bits == 64) {
        __atomic_compare_exchange_n((uint64_t *)(uintptr_t)address, &old, new, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return old;
    }
    uint32_t expected = (uint32_t)old;
    __atomic_compare_exchange_n((uint32_t *)(uintptr_t)address, &expected, (uint32_t)new, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

static bool compare(ptx_compare_t how, uint64_t a, uint64_t b, bool is_signed)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (how) {
    case PTX_EQ: return a == b;
    case PTX_NE: return a != b;
    case PTX_LT: return less;
    case PTX_LE: return less || a == b;
    case PTX_GT: return !less && a != b;
    case PTX_GE: return !less;
    }
    return false;
}

static uint64_t divide(uint64_t a, uint64_t b, const ptx_step_t *step)
{
    bool rest = step->op == PTX_REM;
    if (!b) return rest ? a : UINT64_MAX; // which PTX leaves open
    if (!step->type.is_signed) return rest ? a % b : a / b;
    if (b == UINT64_MAX) return rest ? 0 : -a;
    return (uint64_t)(rest ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static uint64_t multiply_high(uint64_t a, uint64_t b, ptx_type_t type)
{
    if (type.bits < 64) return a * b >> type.bits;
    if (!type.is_signed) return (uint64_t)((unsigned __int128)a * b >> 64);
    return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
}

// Amounts beyond the type's bits shift everything out.
static uint64_t shift(uint64_t a, uint64_t by, const ptx_step_t *step)
{
    bool over = by >= step->type.bits;
    if (step->op == PTX_SHL) return over ? 0 : a << by;
    if (step->type.is_signed) return (uint64_t)((int64_t)a >> (over ? 63 : by));
    return over ? 0 : a >> by;
}

static uint64_t compute(const thread_t *thread, const ptx_step_t *step)
{
    uint64_t a = source(thread, step, 1), b = source(thread, step, 2);
    bool is_signed = step->type.is_signed;
    switch ((ptx_op_t)step->op) {
    case PTX_MOV: return a;
    case PTX_CONVERT: return widened(value(thread, &step->operands[1]), step->from);
    case PTX_ADD: return a + b;
    case PTX_SUB: return a - b;
    case PTX_MUL:
    case PTX_MUL_WIDE: return a * b;
    case PTX_MUL_HIGH: return multiply_high(a, b, step->type);
    case PTX_MAD: return a * b + source(thread, step, 3);
    case PTX_MAD_WIDE: return a * b + value(thread, &step->operands[3]);
    case PTX_DIV:
    case PTX_REM: return divide(a, b, step);
    case PTX_MIN: return compare(PTX_LT, a, b, is_signed) ? a : b;
    case PTX_MAX: return compare(PTX_GT, a, b, is_signed) ? a : b;
    case PTX_AND: return a & b;
    case PTX_OR: return a | b;
    case PTX_XOR: return a ^ b;
    case PTX_NOT: return ~a;
    case PTX_NEG: return -a;
    case PTX_SHL:
    case PTX_SHR: return shift(a, value(thread, &step->operands[2]) & UINT32_MAX, step);
    case PTX_COMPARE: return compare(step->detail, a, b, is_signed);
    case PTX_SELECT: return value(thread, &step->operands[3]) & 1 ? a : b;
    case PTX_SWAP: return swap(thread, step);
    default: return 0;
    }
}

// What CUDA has for device code. The arguments lie in the frame, in the order they are declared in.
static void call(thread_t *thread, const ptx_step_t *step)
{
    uint64_t arguments[4] = {0};
    const char *grid = (const char *)(uintptr_t)value(thread, &step->operands[2]);
    for (int i = 0; i < 4; i++) {
        const ptx_operand_t *operand = &step->operands[1 + i];
        if (operand->base == PTX_LOCAL)
            memcpy(&arguments[i], thread->frame + operand->offset, sizeof arguments[i]);
    }
    void *node = (void *)(uintptr_t)arguments[0];
    uint32_t dims[3];
    int result = 0;
    switch ((ptx_function_t)step->detail) {
    case PTX_SET_CONDITIONAL:
        services.set_conditional(arguments[0], (uint32_t)arguments[1]);
        return;
    case PTX_SET_GRID:
        memcpy(dims, grid, sizeof dims);
        result = services.node_set_grid(node, dims[0], dims[1], dims[2]);
        break;
    case PTX_SET_ENABLED: result = services.node_set_enabled(node, (int)arguments[1]); break;
    case PTX_SET_PARAM:
        result = services.node_set_param(node, arguments[1], (const void *)(uintptr_t)arguments[2],
                                         arguments[3]);
        break;
    case PTX_FUNCTIONS: break;
    }
    memcpy(thread->frame + step->operands[0].offset, &result, sizeof result);
}

static ptx_type_t result_type(const ptx_step_t *step)
{
    ptx_type_t type = step->type;
    if (step->op == PTX_COMPARE) type.bits = 1;
    if (step->op == PTX_MUL_WIDE || step->op == PTX_MAD_WIDE) type.bits *= 2;
    return type;
}

// ThreadSanitizer knows no fences. It knows that this orders the threads that do it.
static void fence(void)
{
#if defined(__SANITIZE_THREAD__)
    static int word;
    __atomic_fetch_add(&word, 0, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static int thread_run(thread_t *thread, const ptx_kernel_t *kernel)
{
    int trap = 0;
    for (uint32_t at = 0; !trap; at++) {
        const ptx_step_t *step = &kernel->steps[at];
        if (step->guarded && (thread->registers[step->guard] & 1) != step->wanted) continue;
        switch ((ptx_op_t)step->op) {
        case PTX_RETURN: return 0;
        case PTX_TRAP: return PTX_TRAPPED;
        case PTX_BRANCH: at = step->target - 1; break;
        case PTX_CALL: call(thread, step); break;
        case PTX_LOAD: trap = memory_load(thread, step); break;
        case PTX_STORE: trap = memory_store(thread, step); break;
        case PTX_FENCE: fence(); break;
        default: store(thread, step, 0, compute(thread, step), result_type(step)); break;
        }
    }
    return trap;
}

int ptx_run(const ptx_kernel_t *kernel, const void *params, const cuda_host_block_t *block)
{
    thread_t thread = {.block = block, .params = params};
    uint32_t *id = thread.id;
    for (id[2] = 0; id[2] < block->threads[2]; id[2]++)
        for (id[1] = 0; id[1] < block->threads[1]; id[1]++)
            for (id[0] = 0; id[0] < block->threads[0]; id[0]++) {
                int trap = thread_run(&thread, kernel);
                if (trap) return trap;
            }
    return 0;
}
