// SPDX-License-Identifier: Apache-2.0
// Views: the memory of a buffer that the host sees, as another device sees it.
//
// A view is a buffer of that other device, imported over the memory, which page-locks it. To do so
// takes long. So a view is made by the first copy that needs it, and kept with the buffer. It ends
// with the buffer, or when the other device is closed. The memory of the buffer goes back when the
// last device has unlocked it, and no thread waits for that.
#ifndef KEEL_SRC_KIT_VIEW_H_
#define KEEL_SRC_KIT_VIEW_H_

#include <keel/driver/driver.h>

typedef enum view_state_t {
    VIEW_NONE,    // there is none yet
    VIEW_THERE,   // *address is where the device sees the beginning of the memory
    VIEW_REFUSED, // the device cannot have one
} view_state_t;

// Looks for the device's view of a root, which the caller keeps. Any thread; does not block.
view_state_t view_find(keel_buffer_t *root, const keel_device_t *device, uint64_t *address);

// Makes one. If the device cannot lock the memory, or if the memory is a pool's and so comes and
// goes, that is remembered, and is the error. Blocks as long as the vendor takes. One thread of a
// device at a time for a buffer, or there are two views, which is as good.
keel_status_t view_make(keel_buffer_t *root, keel_device_t *device, uint64_t *address);

// The last reference to a root is gone: ends its views. True: it is to be destroyed now. False:
// `destroy` is called when the last view has gone, on any thread.
bool views_end(keel_buffer_t *root, void (*destroy)(keel_buffer_t *root));

// Ends all views that the device has, when it is closed and its work has ended.
void views_close(keel_device_t *device);

#endif
