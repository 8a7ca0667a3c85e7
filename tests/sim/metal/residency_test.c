// SPDX-License-Identifier: Apache-2.0
// residency_test LIBRARY: what a kernel may reach by an address, with residency=1, and the rules of
// residency sets.
#include "rig.h"

#include <pthread.h>

static const char source[] = "#include <metal_stdlib>\n"
                             "using namespace metal;\n"
                             "kernel void reach(constant ulong &at [[buffer(0)]])\n"
                             "{\n"
                             "    *(device uint *)at = 7;\n"
                             "}\n";

// A queue with a set, and a kernel that reaches a buffer.
typedef struct scene_t {
    id queue, set, buffer, pipeline, command, encoder;
} scene_t;

static id set_new(id device)
{
    id descriptor = m_new(metal.objc_getClass("MTLResidencySetDescriptor"));
    id set = m_new_set(device, descriptor, NULL);
    CHECK(set);
    m_release(descriptor);
    return set;
}

static scene_t scene_new(id device)
{
    id text = m_string(metal.objc_getClass("NSString"), source);
    id library = m_new_library(device, text, NULL, NULL);
    id function = m_new_function(library, m_string(metal.objc_getClass("NSString"), "reach"));
    scene_t scene = {.queue = m_new_queue(device, 4),
                     .set = set_new(device),
                     .buffer = m_new_buffer(device, 64, 0),
                     .pipeline = m_new_pipeline(device, function, NULL)};
    CHECK(scene.pipeline);
    m_add_set(scene.queue, scene.set);
    scene.command = m_command(scene.queue);
    m_release(function);
    m_release(library);
    return scene;
}

static void scene_end(scene_t *scene)
{
    m_release(scene->pipeline);
    m_release(scene->buffer);
    m_release(scene->set);
    m_release(scene->queue);
}

static void begin(scene_t *scene)
{
    scene->encoder = m_compute(scene->command);
    m_set_pipeline(scene->encoder, scene->pipeline);
}

static void reach(const scene_t *scene)
{
    uint64_t at = m_address(scene->buffer);
    m_set_bytes(scene->encoder, &at, sizeof at, 0);
    m_dispatch(scene->encoder, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    m_end(scene->encoder);
}

static void run(const scene_t *scene)
{
    m_commit(scene->command);
    m_wait(scene->command);
    CHECK(*(uint32_t *)m_contents(scene->buffer) == 7);
}

// What was in the set when the command buffer was committed stays for it.
static void test_set(id device)
{
    scene_t scene = scene_new(device);
    id gate = m_new_event(device);
    m_add_allocation(scene.set, scene.buffer);
    m_add_allocation(scene.set, scene.buffer); // once is enough
    m_commit(scene.set);
    m_wait_event(scene.command, gate, 1);
    begin(&scene);
    reach(&scene);
    m_commit(scene.command);
    m_remove_allocation(scene.set, scene.buffer);
    m_commit(scene.set);
    m_set_value(gate, 1);
    m_wait(scene.command);
    CHECK(*(uint32_t *)m_contents(scene.buffer) == 7);
    m_release(gate);
    scene_end(&scene);
}

static void dies_set_not_committed(id device)
{
    scene_t scene = scene_new(device);
    m_add_allocation(scene.set, scene.buffer);
    begin(&scene);
    reach(&scene);
    run(&scene);
}

static void dies_added_after_commit(id device)
{
    scene_t scene = scene_new(device);
    id gate = m_new_event(device);
    m_wait_event(scene.command, gate, 1);
    begin(&scene);
    reach(&scene);
    m_commit(scene.command);
    m_add_allocation(scene.set, scene.buffer);
    m_commit(scene.set);
    m_set_value(gate, 1);
    m_wait(scene.command);
}

static void dies_removed(id device)
{
    scene_t scene = scene_new(device);
    m_add_allocation(scene.set, scene.buffer);
    m_commit(scene.set);
    m_remove_allocation(scene.set, scene.buffer);
    m_commit(scene.set);
    begin(&scene);
    reach(&scene);
    run(&scene);
}

// Of one encoder, and behind its dispatch.
static void dies_used_elsewhere(id device)
{
    scene_t scene = scene_new(device);
    begin(&scene);
    m_use(scene.encoder, scene.buffer, 2);
    m_end(scene.encoder);
    begin(&scene);
    reach(&scene);
    run(&scene);
}

static void dies_used_too_late(id device)
{
    scene_t scene = scene_new(device);
    uint64_t at = m_address(scene.buffer);
    begin(&scene);
    m_set_bytes(scene.encoder, &at, sizeof at, 0);
    m_dispatch(scene.encoder, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    m_use(scene.encoder, scene.buffer, 2);
    m_end(scene.encoder);
    run(&scene);
}

static void dies_many_sets(id device)
{
    id queue = m_new_queue(device, 1);
    for (int i = 0; i < 33; i++) m_add_set(queue, set_new(device));
}

static void *change_for_ever(void *set)
{
    for (;;) m_commit(set);
    return NULL;
}

static void dies_two_threads(id device)
{
    pthread_t thread;
    id set = set_new(device);
    pthread_create(&thread, NULL, change_for_ever, set);
    change_for_ever(set);
}

// Systems before macOS 15 have none; a newer one may refuse.
static void test_no_sets(id device)
{
    CHECK(!m_responds(device, metal.sel_registerName("newResidencySetWithDescriptor:error:")));
}

static void test_refused(id device)
{
    id descriptor = m_new(metal.objc_getClass("MTLResidencySetDescriptor"));
    CHECK(!m_new_set(device, descriptor, NULL));
    m_release(descriptor);
}

static void all(void)
{
    static const char on[] = "residency=1", words[] = "kernel reach reaches byte 0 of a buffer";
    RUN(on, test_set);
    DIES_WITH(on, words, dies_set_not_committed);
    DIES_WITH(on, words, dies_added_after_commit);
    DIES_WITH(on, words, dies_removed);
    DIES_WITH(on, words, dies_used_elsewhere);
    DIES_WITH(on, words, dies_used_too_late);
    DIES("addResidencySet:]: it has 32 sets already", dies_many_sets);
    DIES("another thread changes the set at the same time", dies_two_threads);
    RUN("lacks=newResidencySetWithDescriptor:error:", test_no_sets);
    RUN("fail=newResidencySetWithDescriptor:error:/1", test_refused);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
