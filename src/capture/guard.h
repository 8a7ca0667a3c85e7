// SPDX-License-Identifier: Apache-2.0
// One lock for what is seldom changed: names of kernels, and ranges that any thread may end. It is
// free in the child of a fork, whichever thread held it.
#ifndef KEEL_SRC_CAPTURE_GUARD_H_
#define KEEL_SRC_CAPTURE_GUARD_H_

void guard_enter(void);
void guard_leave(void);

#endif
