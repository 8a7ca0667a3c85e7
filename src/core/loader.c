// SPDX-License-Identifier: Apache-2.0
// Drivers in shared objects.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "core/registry.h"

// That the functions of Keel which the object calls are ours. The system's loader looks for them in
// the program and its libraries first, then in the object and those that it was linked with.
static keel_status_t check_keel(void *object)
{
    keel_status_t (*function)(const keel_driver_t *) = keel_driver_register;
    void *program = dlopen(NULL, RTLD_LAZY), *ours;
    memcpy(&ours, &function, sizeof ours);
    void *theirs = program ? dlsym(program, "keel_driver_register") : NULL;
    if (program) dlclose(program);
    if (!theirs) theirs = dlsym(object, "keel_driver_register");
    CHECK(theirs, KEEL_UNSUPPORTED,
          "it cannot call Keel, which this program does not export: link the program with "
          "libkeel.so, or with -rdynamic");
    CHECK(theirs == ours, KEEL_UNSUPPORTED,
          "it would call a second copy of Keel, for this program does not export its own: link the "
          "program with libkeel.so, or with -rdynamic");
    return NULL;
}

static keel_status_t object_driver(void *object, const keel_driver_t **driver)
{
    KEEL_TRY(check_keel(object));
    void *symbol = dlsym(object, "keel_driver_entry");
    CHECK(symbol, KEEL_UNSUPPORTED,
          "it exports no keel_driver_entry (KEEL_DRIVER_ENTRY of <keel/driver/driver.h>)");
    const keel_driver_t *(*entry)(void);
    memcpy(&entry, &symbol, sizeof entry);
    *driver = entry();
    return registry_check_driver(*driver);
}

// The system cannot load it whole. One that is for another version lacks functions: then that is
// what is wrong with it. `status` is consumed.
static keel_status_t object_blame(const char *path, keel_status_t status)
{
    const keel_driver_t *driver;
    void *object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!object) return status;
    keel_status_t better = object_driver(object, &driver);
    dlclose(object);
    if (!better) return status;
    keel_status_release(status);
    return better;
}

static keel_status_t object_load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        return object_blame(
            path, KEEL_ERROR(KEEL_UNSUPPORTED, "the system cannot load it: %s", why ? why : ""));
    }
    const keel_driver_t *driver = NULL;
    keel_status_t status = object_driver(object, &driver);
    if (!status) status = keel_driver_register(driver);
    if (status) dlclose(object);
    return status;
}

keel_status_t keel_driver_load(const char *path)
{
    CHECK_NOT_NULL(path);
    CHECK(strchr(path, '/'), KEEL_INVALID_ARGUMENT,
          "path is '%s'; it needs a slash, as in ./%s: no folders are searched", path, path);
    CHECK(access(path, F_OK) == 0, KEEL_NOT_FOUND, "'%s': %s", path, strerror(errno));
    return keel_status_wrap(object_load(path), "'%s' is refused as a driver", path);
}
