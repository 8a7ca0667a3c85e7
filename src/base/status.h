// SPDX-License-Identifier: Apache-2.0
// What the library needs of statuses beyond <keel/status.h>.
#ifndef KEEL_SRC_BASE_STATUS_H_
#define KEEL_SRC_BASE_STATUS_H_

#include <keel/status.h>

// The status of a failed allocation: static, so that it never fails itself.
keel_status_t status_no_memory(void) KEEL_COLD;

// The status of a wait whose time is up: static, since polling with a timeout of 0 must cost
// nothing.
keel_status_t status_timed_out(void);

// The status of work that failed, long ago, with a cause that is no longer kept: static.
keel_status_t status_forgotten(void);

// The same error, said to have happened at `path`. Consumes `status`; without memory the path is
// left out.
keel_status_t status_at(keel_status_t status, const char *path);

// The same error with another code. Consumes `status`, to which the caller has the only reference.
keel_status_t status_as(keel_status_t status, keel_code_t code);

// The code for an error of the system that concerns a file; KEEL_IO if no other says more.
keel_code_t status_errno_code(int error);

// An error made from errno, for a call into the system.
keel_status_t status_from_errno(keel_code_t code, int error, const char *what);

#endif
