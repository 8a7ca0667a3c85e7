// SPDX-License-Identifier: Apache-2.0
// counter_test LIBRARY: times of encoders, and the limits of counter sample buffers.
#include "rig.h"

#include <string.h>

enum { SAMPLES_MOST = 4096, BUFFERS_MOST = 32 };

static id samples_new(id device, size_t count, id *error)
{
    id descriptor = m_new(metal.objc_getClass("MTLCounterSampleBufferDescriptor"));
    m_set_counter_set(descriptor, m_at(m_counter_sets(device), 0));
    m_set_sample_count(descriptor, count);
    id samples = m_new_samples(device, descriptor, error);
    m_release(descriptor);
    return samples;
}

// A blit encoder whose begin and end are samples 0 and `last`.
static id sampled(id command, id samples, size_t last)
{
    id pass = m_blit_pass(metal.objc_getClass("MTLBlitPassDescriptor"));
    id attachment = m_attachment(m_attachments(pass), 0);
    m_set_samples(attachment, samples);
    m_set_first_sample(attachment, 0);
    m_set_last_sample(attachment, last);
    return m_blit_of(command, pass);
}

// The times of two encoders, of which one is empty.
static void take_times(id device, uint64_t times[2][2])
{
    id queue = m_new_queue(device, 4), samples = samples_new(device, 2, NULL);
    id buffer = m_new_buffer(device, 1024, 0);
    CHECK(samples);
    for (int i = 0; i < 2; i++) {
        id command = m_command(queue), blit = sampled(command, samples, 1);
        if (i == 1) m_fill(blit, buffer, (range_t){512, 16}, 1);
        m_end(blit);
        blit = m_blit(command);
        m_resolve(blit, samples, (range_t){0, 2}, buffer, 256);
        m_end(blit);
        m_commit(command);
        m_wait(command);
        memcpy(times[i], (char *)m_contents(buffer) + 256, sizeof times[i]);
    }
    m_release(buffer);
    m_release(samples);
    m_release(queue);
}

// An encoder that does nothing tells nothing.
static void test_times(id device)
{
    uint64_t times[2][2];
    CHECK(m_supports_sampling(device, 0) && !m_supports_sampling(device, 1));
    take_times(device, times);
    CHECK(times[0][0] == 0 && times[0][1] == 0);
    CHECK(times[1][0] > 0 && times[1][1] >= times[1][0]);
}

static void test_zero_times(id device)
{
    uint64_t times[2][2];
    take_times(device, times);
    CHECK(times[1][0] == 0 && times[1][1] == 0);
}

static void test_no_times(id device)
{
    CHECK(!m_supports_sampling(device, 0) && m_count(m_counter_sets(device)) == 0);
}

static void test_size(id device)
{
    id error = NULL, most = samples_new(device, SAMPLES_MOST, &error);
    CHECK(most && !error);
    CHECK(!samples_new(device, SAMPLES_MOST + 1, &error) && error);
    CHECK(!strcmp(m_utf8(m_text(error)), "the sample count is out of range"));
    error = NULL;
    CHECK(!samples_new(device, 0, &error) && error);
    m_release(most);
}

static void test_number(id device)
{
    id all[BUFFERS_MOST], error = NULL;
    for (int i = 0; i < BUFFERS_MOST; i++) CHECK((all[i] = samples_new(device, 1, &error)) != NULL);
    CHECK(!samples_new(device, 1, &error) && error);
    CHECK(!strcmp(m_utf8(m_text(error)), "there are too many counter sample buffers"));
    m_release(all[0]);
    CHECK((all[0] = samples_new(device, 1, NULL)) != NULL);
    for (int i = 0; i < BUFFERS_MOST; i++) m_release(all[i]);
}

static void resolve(id device, range_t range, size_t offset)
{
    id blit = m_blit(m_command(m_new_queue(device, 4)));
    m_resolve(blit, samples_new(device, 2, NULL), range, m_new_buffer(device, 512, 0), offset);
}

static void dies_resolved_beyond(id device)
{
    resolve(device, (range_t){1, 2}, 0);
}

static void dies_resolved_unaligned(id device)
{
    resolve(device, (range_t){0, 2}, 8);
}

static void dies_resolved_outside(id device)
{
    resolve(device, (range_t){0, 2}, 512);
}

static void dies_sampled_beyond(id device)
{
    sampled(m_command(m_new_queue(device, 4)), samples_new(device, 2, NULL), 2);
}

static void all(void)
{
    RUN("", test_times);
    RUN("samples=2", test_zero_times);
    RUN("samples=0", test_no_times);
    RUN("", test_size);
    RUN("", test_number);
    DIES("2 samples from 1 on: there are 2", dies_resolved_beyond);
    DIES("offset 8 must be a multiple of 256", dies_resolved_unaligned);
    DIES("16 bytes from 512 are not in the buffer of 512", dies_resolved_outside);
    DIES("1 samples from 2 on: there are 2", dies_sampled_beyond);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
