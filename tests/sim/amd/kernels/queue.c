// SPDX-License-Identifier: Apache-2.0
// Kernels for tests of queues: small, and some of them wrong on purpose.
#include "device.h"

// The number of the die that a workgroup runs on: HW_REG_XCC_ID, all 32 bits of it.
KERNEL void die(uint32_t *out)
{
    if (lane_in_group() == 0) out[group_id()] = __builtin_amdgcn_s_getreg(20 | 31 << 11);
}

KERNEL void add_one(uint32_t *data, uint32_t count)
{
    uint32_t n = group_id() * GROUP_SIZE + lane_in_group();
    if (n < count) data[n] += 1;
}

KERNEL void append(uint32_t *log, uint32_t value)
{
    if (lane_in_group() == 0) log[1 + __atomic_fetch_add(log, 1, __ATOMIC_RELAXED)] = value;
}

// The order in which groups come by.
KERNEL void append_group(uint32_t *log)
{
    if (lane_in_group() == 0) log[1 + __atomic_fetch_add(log, 1, __ATOMIC_RELAXED)] = group_id();
}

// Stores through a pointer that it was not given, from one lane only.
KERNEL void stray(uint32_t *data)
{
    if (lane_in_group() == 7) *(volatile uint32_t *)0xdead0000 = 1;
    data[lane_in_group()] = 1;
}

KERNEL void stop_here(uint32_t *data)
{
    data[0] = 1;
    __builtin_trap();
}

// An instruction that no GFX9 has.
KERNEL void illegal(uint32_t *data)
{
    data[0] = 1;
    __asm__ volatile(".long 0xffffffff");
}

// Reads behind the end of the group's memory.
LOCAL uint32_t words[64];
KERNEL void beyond(uint32_t *data)
{
    volatile LOCAL_AT uint32_t *last = words;
    data[0] = last[4096 + lane_in_group()];
}

// A group begins with no lane at all and ends with eight.
KERNEL void lanes_off(uint32_t *data)
{
    uint32_t value = 1, other = 0;
    uint64_t exec;
    __asm__ volatile("s_mov_b64 %2, exec\n s_mov_b64 exec, 0\n v_mov_b32 %0, 7\n"
                     "s_mov_b64 exec, 0xff\n v_mov_b32 %1, 7\n s_mov_b64 exec, %2"
                     : "+v"(value), "+v"(other), "=&s"(exec));
    data[group_id() * GROUP_SIZE + lane_in_group()] = value;
}

// Waits until the host has written its number.
KERNEL void wait_for(uint32_t *flag, uint32_t value, uint32_t *out)
{
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) __builtin_amdgcn_s_sleep(1);
    out[lane_in_group()] = value;
}

// Says that it runs, and goes on when the host has answered.
KERNEL void answer(uint32_t *flag, uint32_t spare)
{
    if (lane_in_group() != 0) return;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != 2) __builtin_amdgcn_s_sleep(1);
    flag[1] = spare;
}

KERNEL void set_word(uint32_t *word, uint32_t value)
{
    if (lane_in_group() == 0) __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Waits until so many groups are here.
KERNEL void meet(uint32_t *count, uint32_t groups)
{
    if (lane_in_group() != 0) return;
    __atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) != groups) __builtin_amdgcn_s_sleep(1);
}

// How many groups are here at a time, at most: each stays for so many looks at a word.
static void be_here(uint32_t *now, uint32_t *most, uint32_t looks)
{
    if (lane_in_group() != 0) return;
    uint32_t here = __atomic_add_fetch(now, 1, __ATOMIC_RELAXED);
    __atomic_fetch_max(most, here, __ATOMIC_RELAXED);
    while (looks-- && __atomic_load_n(now, __ATOMIC_RELAXED)) __builtin_amdgcn_s_sleep(1);
    __atomic_fetch_sub(now, 1, __ATOMIC_RELAXED);
}

KERNEL void crowd(uint32_t *now, uint32_t *most, uint32_t looks)
{
    be_here(now, most, looks);
}

// The same with 128 registers.
KERNEL void crowd_wide(uint32_t *now, uint32_t *most, uint32_t looks)
{
    __asm__ volatile("" ::: "v127");
    be_here(now, most, looks);
}

// Says that it is here, waits for a word, and sets another.
KERNEL void hold(uint32_t *here, uint32_t *flag, uint32_t *out)
{
    if (lane_in_group() != 0) return;
    __atomic_store_n(here, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) __builtin_amdgcn_s_sleep(1);
    __atomic_store_n(out, 1, __ATOMIC_RELEASE);
}

// Sets a word and looks for another, so many times or until it is set; how often it looked.
KERNEL void look(uint32_t *flag, uint32_t *word, uint32_t looks, uint32_t *out)
{
    if (lane_in_group() != 0) return;
    uint32_t n = 0;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    while (n < looks && !__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        n++;
        __builtin_amdgcn_s_sleep(1);
    }
    *out = n;
}

// Puts a packet into another queue and rings its doorbell, as the host would.
KERNEL void enqueue(uint64_t *ring, uint64_t mask, uint64_t *write_index, uint64_t *doorbell,
                    const uint64_t *packet)
{
    if (lane_in_group() != 0) return;
    uint64_t index = __atomic_fetch_add(write_index, 1, __ATOMIC_RELAXED);
    uint64_t *slot = ring + 8 * (index & mask);
    for (unsigned k = 1; k < 8; k++) slot[k] = packet[k];
    __atomic_store_n(slot, packet[0], __ATOMIC_RELEASE);
    __atomic_store_n(doorbell, index, __ATOMIC_RELEASE);
}

#if defined(__GFX9__) // what later GPUs do not have, or write otherwise

// Formats of graphics are not modelled.
KERNEL void format(uint32_t *data)
{
    __asm__ volatile("buffer_load_format_x v0, v0, s[0:3], 0 offen" ::: "v0");
    data[0] = 1;
}

// Loads that go to the group's memory, of which the last lanes have none.
KERNEL void load_beyond(uint32_t *data)
{
    typedef uint32_t resource_t __attribute__((ext_vector_type(4)));
    uint64_t address = (uint64_t)data;
    resource_t buffer = {(uint32_t)address, (uint32_t)(address >> 32) & 0xffff, 4096, 0x20000};
    __asm__ volatile("s_mov_b32 m0, 192\n buffer_load_dword %0, %1, 0 offen lds\n"
                     "s_waitcnt vmcnt(0)" ::"v"(4 * lane_in_group()),
                     "s"(buffer)
                     : "memory");
    volatile LOCAL_AT uint32_t *first = words;
    data[0] = first[lane_in_group()];
}

// The groups of a cooperative launch: each counts itself, waits for all, and sees the count.
KERNEL void all_meet(uint32_t *count, uint32_t groups, uint32_t *seen)
{
    if (lane_in_group() != 0) return;
    for (uint32_t round = 1; round <= 3; round++) {
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        __builtin_amdgcn_ds_gws_barrier(groups - 1, 0);
        uint32_t all = __atomic_load_n(count, __ATOMIC_ACQUIRE);
        if (round == 1) seen[group_id()] = all;
        __builtin_amdgcn_ds_gws_barrier(groups - 1, 0);
    }
}

// Makes a barrier of the GPU ready for so many waves.
KERNEL void all_ready(uint32_t waves)
{
    __builtin_amdgcn_ds_gws_init(waves - 1, 0);
}

#endif
