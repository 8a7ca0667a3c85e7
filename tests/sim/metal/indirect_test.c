// SPDX-License-Identifier: Apache-2.0
// Indirect command buffers: commands that run again and again, and what is refused.
#include "rig.h"

enum { COMMANDS = 8, CONCURRENT_DISPATCH = 1 << 5, UNTRACKED = 1 << 8 };

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void step(device uint *y [[buffer(0)]], constant uint &add [[buffer(1)]])\n"
    "{\n"
    "    *y = *y * 3 + add;\n"
    "}\n";

// A queue, eight commands, and what they use: a word, and what is added to it.
typedef struct scene_t {
    id queue, pipeline, commands, word, adds, command, encoder;
} scene_t;

static id pipeline_new(id device, bool indirect)
{
    id text = m_string(metal.objc_getClass("NSString"), source), error = NULL;
    id library = m_new_library(device, text, NULL, &error);
    id name = m_string(metal.objc_getClass("NSString"), "step");
    id function = m_new_function(library, name);
    id descriptor = m_new(metal.objc_getClass("MTLComputePipelineDescriptor"));
    m_set_function(descriptor, function);
    m_set_indirect(descriptor, indirect);
    id pipeline = m_new_pipeline_of(device, descriptor, 0, NULL, &error);
    CHECK(pipeline);
    m_release(descriptor);
    m_release(function);
    m_release(library);
    return pipeline;
}

static id commands_new(id device)
{
    id descriptor = m_new(metal.objc_getClass("MTLIndirectCommandBufferDescriptor"));
    m_set_types(descriptor, CONCURRENT_DISPATCH);
    m_set_bound(descriptor, 2);
    m_inherit_buffers(descriptor, false);
    m_inherit_pipeline(descriptor, false);
    id commands = m_new_indirect(device, descriptor, COMMANDS, 0);
    m_release(descriptor);
    return commands;
}

static scene_t scene_new(id device)
{
    scene_t scene = {m_new_queue(device, 4),
                     pipeline_new(device, true),
                     commands_new(device),
                     m_new_buffer(device, 4, 0),
                     m_new_buffer(device, COMMANDS * 4, 0),
                     NULL,
                     NULL};
    for (uint32_t i = 0; i < COMMANDS; i++) ((uint32_t *)m_contents(scene.adds))[i] = i;
    return scene;
}

static void scene_end(scene_t *scene)
{
    m_release(scene->adds);
    m_release(scene->word);
    m_release(scene->commands);
    m_release(scene->pipeline);
    m_release(scene->queue);
}

static void encode(const scene_t *scene, size_t index)
{
    id command = m_command_at(scene->commands, index);
    m_set_pipeline(command, scene->pipeline);
    m_set_kernel_buffer(command, scene->word, 0, 0);
    m_set_kernel_buffer(command, scene->adds, index * 4, 1);
    if (index) m_set_barrier(command);
    m_dispatch_concurrently(command, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
}

static void encode_all(const scene_t *scene)
{
    for (size_t i = 0; i < COMMANDS; i++) encode(scene, i);
}

static void begin(scene_t *scene)
{
    scene->command = m_command(scene->queue);
    scene->encoder = m_compute_type(scene->command, 1);
}

static void name_all(const scene_t *scene)
{
    m_use(scene->encoder, scene->word, 3);
    m_use(scene->encoder, scene->adds, 1);
}

static void run(const scene_t *scene)
{
    m_end(scene->encoder);
    m_commit(scene->command);
    m_wait(scene->command);
}

static uint32_t word_of(const scene_t *scene)
{
    return *(uint32_t *)m_contents(scene->word);
}

static uint32_t expected(uint32_t value, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) value = value * 3 + i;
    return value;
}

// In their order, as barriers say; twice; and a part of them.
static void test_executed(id device)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    uint32_t value = 0;
    for (int i = 0; i < 2; i++) {
        begin(&scene);
        name_all(&scene);
        m_execute(scene.encoder, scene.commands, (range_t){0, COMMANDS});
        run(&scene);
        value = expected(value, 0, COMMANDS);
        CHECK(word_of(&scene) == value);
    }
    begin(&scene);
    name_all(&scene);
    m_execute(scene.encoder, scene.commands, (range_t){2, 3});
    run(&scene);
    CHECK(word_of(&scene) == expected(value, 2, 5));
    scene_end(&scene);
}

// A range that the GPU reads; of nothing, too.
static void test_counted(id device)
{
    scene_t scene = scene_new(device);
    id ranges = m_new_buffer(device, 16, 0);
    const uint32_t words[] = {1, 2, 0, 0};
    for (int i = 0; i < 4; i++) ((uint32_t *)m_contents(ranges))[i] = words[i];
    encode_all(&scene);
    begin(&scene);
    name_all(&scene);
    m_execute_counted(scene.encoder, scene.commands, ranges, 0);
    m_execute_counted(scene.encoder, scene.commands, ranges, 8);
    run(&scene);
    CHECK(word_of(&scene) == expected(0, 1, 3));
    m_release(ranges);
    scene_end(&scene);
}

// A kernel writes the range, and nothing orders the two unless there is a barrier.
static void range_written(id device, bool barrier)
{
    scene_t scene = scene_new(device);
    id ranges = m_new_buffer(device, 16, UNTRACKED);
    encode_all(&scene);
    begin(&scene);
    name_all(&scene);
    m_set_pipeline(scene.encoder, scene.pipeline);
    m_set_buffer(scene.encoder, ranges, 4, 0);
    m_set_buffer(scene.encoder, scene.adds, 8, 1);
    m_dispatch(scene.encoder, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    if (barrier) m_barrier(scene.encoder, 1);
    m_execute_counted(scene.encoder, scene.commands, ranges, 0);
    run(&scene);
    CHECK(word_of(&scene) == expected(0, 0, 2));
    m_release(ranges);
    scene_end(&scene);
}

static void test_range_written(id device)
{
    range_written(device, true);
}

static void dies_range_written(id device)
{
    range_written(device, false);
}

// A command that was reset does nothing, and may be encoded again.
static void test_reset(id device)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    m_reset_range(scene.commands, (range_t){1, COMMANDS - 1});
    encode(&scene, 3);
    begin(&scene);
    name_all(&scene);
    m_execute(scene.encoder, scene.commands, (range_t){0, COMMANDS});
    run(&scene);
    CHECK(word_of(&scene) == 3);
    scene_end(&scene);
}

// One that was never encoded kills the command buffer.
static void test_never_encoded(id device)
{
    scene_t scene = scene_new(device);
    encode(&scene, 0);
    begin(&scene);
    name_all(&scene);
    m_execute(scene.encoder, scene.commands, (range_t){0, 2});
    run(&scene);
    CHECK(m_status(scene.command) == 5);
    CHECK(rig_said("indirect command 1 was never encoded"));
    scene_end(&scene);
}

static void dies_plain_pipeline(id device)
{
    scene_t scene = scene_new(device);
    m_set_pipeline(m_command_at(scene.commands, 0), pipeline_new(device, false));
}

static void dies_encoded_twice(id device)
{
    scene_t scene = scene_new(device);
    encode(&scene, 0);
    encode(&scene, 0);
}

static void dies_unbound(id device)
{
    scene_t scene = scene_new(device);
    id command = m_command_at(scene.commands, 0);
    m_set_pipeline(command, scene.pipeline);
    m_set_kernel_buffer(command, scene.word, 0, 0);
    m_dispatch_concurrently(command, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
}

static void dies_bound_beyond(id device)
{
    scene_t scene = scene_new(device);
    m_set_kernel_buffer(m_command_at(scene.commands, 0), scene.word, 0, 2);
}

static void dies_beyond(id device)
{
    scene_t scene = scene_new(device);
    m_command_at(scene.commands, COMMANDS);
}

static void execute(id device, range_t range, bool named)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    begin(&scene);
    if (named) name_all(&scene);
    m_execute(scene.encoder, scene.commands, range);
}

// One that the same kernel takes without indirect commands.
static void dies_large_group(id device)
{
    scene_t scene = scene_new(device);
    id command = m_command_at(scene.commands, 0);
    m_set_pipeline(command, scene.pipeline);
    m_set_kernel_buffer(command, scene.word, 0, 0);
    m_set_kernel_buffer(command, scene.adds, 0, 1);
    m_dispatch_concurrently(command, (extent_t){1, 1, 1}, (extent_t){33, 1, 1});
}

static void dies_executed_beyond(id device)
{
    execute(device, (range_t){4, COMMANDS}, true);
}

static void dies_not_named(id device)
{
    execute(device, (range_t){0, COMMANDS}, false);
}

static void dies_not_touched(id device)
{
    execute(device, (range_t){0, COMMANDS}, true);
}

// What was set before is not there after it.
static void dies_without_state(id device)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    begin(&scene);
    name_all(&scene);
    m_set_pipeline(scene.encoder, scene.pipeline);
    m_execute(scene.encoder, scene.commands, (range_t){0, 1});
    m_dispatch(scene.encoder, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
}

// Commands that are changed while a command buffer is to execute them: by each way to change one.
static scene_t commit_waiting(id device)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    scene.command = m_command(scene.queue);
    m_wait_event(scene.command, m_new_event(device), 1);
    scene.encoder = m_compute_type(scene.command, 1);
    name_all(&scene);
    m_execute(scene.encoder, scene.commands, (range_t){0, COMMANDS});
    m_end(scene.encoder);
    m_commit(scene.command);
    return scene;
}

static void dies_reset_in_flight(id device)
{
    scene_t scene = commit_waiting(device);
    m_reset_range(scene.commands, (range_t){0, 1});
}

static void dies_one_reset_in_flight(id device)
{
    scene_t scene = commit_waiting(device);
    m_reset(m_command_at(scene.commands, 0));
}

static void dies_encoded_in_flight(id device)
{
    scene_t scene = commit_waiting(device);
    m_set_barrier(m_command_at(scene.commands, 0));
}

// What a command buffer that died has not executed it never will.
static void test_reset_after_death(id device)
{
    scene_t scene = scene_new(device);
    encode_all(&scene);
    begin(&scene);
    name_all(&scene);
    m_execute(scene.encoder, scene.commands, (range_t){0, COMMANDS});
    run(&scene);
    CHECK(m_status(scene.command) == 5 && word_of(&scene) == 0);
    m_reset_range(scene.commands, (range_t){0, COMMANDS});
    encode_all(&scene);
    scene_end(&scene);
}

static void dies_on_virtual(id device)
{
    commands_new(device);
}

static void all(void)
{
    RUN("kill=1:3", test_reset_after_death);
    DIES("resetWithRange:]: a command buffer that is committed has yet to execute the commands",
         dies_reset_in_flight);
    DIES("reset]: a command buffer that is committed has yet to", dies_one_reset_in_flight);
    DIES("setBarrier]: a command buffer that is committed has yet to", dies_encoded_in_flight);
    DIES_WITH("virtual=1", "a virtual GPU asserts", dies_on_virtual);
    RUN("", test_executed);
    RUN("seed=3 residency=1", test_executed);
    RUN("", test_counted);
    RUN("hazards=1", test_range_written);
    DIES_WITH("hazards=1", "a range of commands reads byte 4 of an untracked buffer of 16 bytes",
              dies_range_written);
    RUN("", test_reset);
    RUN("", test_never_encoded);
    DIES("was made without supportIndirectCommandBuffers", dies_plain_pipeline);
    DIES("it must be reset before it is encoded again", dies_encoded_twice);
    DIES("kernel step: nothing is bound at buffer(1)", dies_unbound);
    DIES("index 2: maxKernelBufferBindCount is 2", dies_bound_beyond);
    DIES("1 commands from 8: there are 8", dies_beyond);
    DIES("8 commands from 4: there are 8", dies_executed_beyond);
    DIES("does not name (useResource:) its buffer(0)", dies_not_named);
    DIES_WITH("family=8", "GPUs before Apple 9 want its pipeline to be set", dies_not_touched);
    DIES_WITH("indirectthreads=32", "33 x 1 x 1 threads in a threadgroup: must be 1 to 32",
              dies_large_group);
    DIES("no pipeline is set", dies_without_state);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
