// SPDX-License-Identifier: Apache-2.0
// runtime_test LIBRARY: messages, counts, pools, strings, devices.
#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_device(id device)
{
    CHECK(!strcmp(m_utf8(m_name(device)), "Software Metal 0"));
    extent_t most = rig_max_threads(device, true);
    CHECK(most.width == 1024 && most.height == 1024 && most.depth == 1024);
    CHECK(m_responds(device, metal.sel_registerName("newSharedEvent")));
    CHECK(!m_responds(device, metal.sel_registerName("newMTL4CommandQueue")));
    CHECK(metal.objc_getClass("NSString") && !metal.objc_getClass("MTL4Compiler"));
}

static void test_devices(id device)
{
    id all = metal.MTLCopyAllDevices();
    CHECK(m_count(all) == 3 && m_at(all, 0) == device && m_at(all, 2) != device);
    m_release(all);
}

static void test_no_devices(id device)
{
    CHECK(!device);
    id all = metal.MTLCopyAllDevices();
    CHECK(m_count(all) == 0);
    m_release(all);
}

// A process that ends with two events.
static void test_leaks(id device)
{
    id event = m_new_event(device);
    pid_t child = fork();
    if (child == 0) exit(!m_new_event(device));
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(rig_said("2 objects of MTLSharedEvent are alive at exit"));
    m_release(event);
}

static void test_nil_answers_zero(id device)
{
    CHECK(m_retain(NULL) == NULL && m_status(NULL) == 0 && m_start_time(NULL) == 0.0);
}

static void test_strings(id device)
{
    id text = m_string(metal.objc_getClass("NSString"), "keel");
    CHECK(!strcmp(m_utf8(text), "keel"));
    CHECK(metal.simMetalObjects("NSString") == 1);
}

static void test_pools_nest(id device)
{
    id class = metal.objc_getClass("NSString");
    void *pool = metal.objc_autoreleasePoolPush();
    id kept = m_retain(m_string(class, "kept"));
    m_string(class, "lost");
    metal.objc_autoreleasePoolPop(pool);
    CHECK(metal.simMetalObjects("NSString") == 1 && !strcmp(m_utf8(kept), "kept"));
    m_release(kept);
}

static void test_messages_are_counted(id device)
{
    uint64_t before = metal.simMetalMessages();
    m_name(device);
    m_retain(NULL);
    CHECK(metal.simMetalMessages() == before + 2);
}

// The second of these answers nil, and all events do.
static void test_fail(id device)
{
    id first = m_new_buffer(device, 64, 0), second = m_new_buffer(device, 64, 0);
    id third = m_new_buffer(device, 64, 0);
    CHECK(first && !second && third);
    CHECK(!m_new_event(device) && !m_new_event(device));
    m_release(first);
    m_release(third);
}

// As virtual machines have it: an old GPU, and no residency sets.
static void test_virtual(id device)
{
    CHECK(!strcmp(m_utf8(m_name(device)), "Apple Paravirtual device"));
    CHECK(m_supports_family(device, 1005) && !m_supports_family(device, 1006));
    CHECK(!m_supports_family(device, 5001));
    CHECK(!m_responds(device, metal.sel_registerName("newResidencySetWithDescriptor:error:")));
    CHECK(!metal.objc_getClass("MTLResidencySetDescriptor"));
}

static void dies_unknown_selector(id device)
{
    m_commit(device);
}

static void dies_released(id device)
{
    id event = m_new_event(device);
    m_release(event);
    m_value(event);
}

static void dies_no_pool(id device)
{
    void *pool = metal.objc_autoreleasePoolPush();
    (void)pool;
    metal.objc_autoreleasePoolPop((void *)2);
    metal.objc_autoreleasePoolPop((void *)1); // the test's own
    m_name(device);
}

static void dies_pool_order(id device)
{
    void *outer = metal.objc_autoreleasePoolPush();
    metal.objc_autoreleasePoolPush();
    metal.objc_autoreleasePoolPop(outer);
}

#if defined(__x86_64__)
static void dies_struct(id device)
{
    rig_max_threads(device, false);
}

static void dies_no_struct(id device)
{
    ((id(*)(id, id))metal.objc_msgSend_stret)(device, metal.sel_registerName("name"));
}
#endif

// What an older system does not have: asked for, it is not there; sent all the same, it is unknown.
static void test_lacking(id device)
{
    CHECK(!m_responds(device, metal.sel_registerName("newSharedEvent")));
    CHECK(m_responds(device, metal.sel_registerName("newFence")));
}

static void dies_lacking(id device)
{
    m_new_event(device);
}

static void all(void)
{
    RUN("lacks=newSharedEvent lacks=newEvent", test_lacking);
    DIES_WITH("lacks=newSharedEvent", "-[MTLDevice newSharedEvent]: unrecognized selector",
              dies_lacking);
    RUN("virtual=1", test_virtual);
    RUN("", test_device);
    RUN("devices=3", test_devices);
    RUN("devices=0", test_no_devices);
    RUN("leaks=1", test_leaks);
    RUN("", test_nil_answers_zero);
    RUN("", test_strings);
    RUN("", test_pools_nest);
    RUN("", test_messages_are_counted);
    RUN("fail=newBufferWithLength:options:/2 fail=newSharedEvent/1+", test_fail);
    DIES("-[MTLDevice commit]: unrecognized selector", dies_unknown_selector);
    DIES("-[MTLSharedEvent signaledValue]: the object was released", dies_released);
    DIES("an NSString was autoreleased on a thread without a pool", dies_no_pool);
    DIES("autorelease pool 2 is popped, but 3 is the innermost", dies_pool_order);
#if defined(__x86_64__)
    DIES("objc_msgSend_stret must be used here", dies_struct);
    DIES("name: sent by objc_msgSend_stret, but", dies_no_struct);
#endif
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
