// SPDX-License-Identifier: Apache-2.0
// Memory of the application is page-locked while a buffer imports it.
//
// The vendor locks a page once in a process, for all devices, and for as long as the context of the
// device that asked for it lives. Imports may share pages, on one device or several, and other
// libraries lock pages as well. So each device has pieces, which do not overlap on it; a piece that
// was locked before, by another device or another library, is not unlocked with it, and if that was
// a part of its pages, that part is what can be imported; one that others build on stays until they
// are gone; and so does the vendor's device that it belongs to. Libraries know nothing of each
// other's pieces.
//
// Where the vendor gives what it locks an address of its own, pieces lie anywhere: then memory
// cannot be imported of which another import has a part. Such a vendor locks bytes, not pages, so
// that nothing but the bytes themselves matters (`bytewise`).
//
// Memory that the process cannot write is locked for reading alone, if no import wants more of it;
// private mappings of files are not: CUDA may never return from that.
//
// Locking takes long, so it is done outside of the lock. A thread that wants the same
// pages sleeps until it is done.
#ifndef KEEL_SRC_KIT_PAGES_H_
#define KEEL_SRC_KIT_PAGES_H_

#include <keel/status.h>
#include <stdatomic.h>

typedef struct pages_user_t pages_user_t;

// The driver's. The thread that calls pages_lock calls `lock` and `address`.
typedef struct pages_ops_t {
    // For devices that read it, and write it if that is said; KEEL_UNSUPPORTED where the one is not
    // without the other; KEEL_FAILED_PRECONDITION if it is memory of others, which the vendor must
    // not lock. *address is where devices see the first byte, and the others behind it. *already:
    // another library has locked all or a part of it, and nothing was done.
    keel_status_t (*lock)(const pages_user_t *user, void *data, uint64_t size, bool written,
                          uint64_t *address, bool *already);
    // Where devices see a byte that another library has locked; fails for memory that is not.
    keel_status_t (*address)(const pages_user_t *user, void *data, uint64_t *address);
    void (*unlock)(const pages_user_t *user, void *data);
    void (*close)(const pages_user_t *user); // the vendor's device
} pages_ops_t;

// A device, which keeps this.
struct pages_user_t {
    const pages_ops_t *ops;
    const void *driver;                // what the driver knows the vendor by
    void *vendor;                      // its device
    struct keel_status *_Atomic *lost; // why the device is lost, if it is
    bool bytewise;                     // two pieces may have the same page, but no byte
};

// Page-locks memory of the application, as often as it is asked to, and says where the device sees
// it. Blocks as long as the vendor takes, or another thread that locks or unlocks the same pages.
// `written`: by devices, so it has to be memory that can be. KEEL_IO if it cannot be, and the
// system does not say what it is. KEEL_UNSUPPORTED if the device would see it in parts,
// KEEL_FAILED_PRECONDITION if that is because others have locked it, or have locked some of it.
keel_status_t pages_lock(pages_user_t *user, void *data, uint64_t size, bool written,
                         uint64_t *address);
// How many of the bytes, from the first one on, were locked together. A vendor copies no more than
// those by one call: buffers that share a page are locked in several pieces. Any thread.
uint64_t pages_stretch(const pages_user_t *user, const void *data, uint64_t size);
void pages_unlock(pages_user_t *user, const void *data, uint64_t size);
// Closes the vendor's device, when what it has locked is needed no more.
void pages_close(pages_user_t *user);

#endif
