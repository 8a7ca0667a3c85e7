// SPDX-License-Identifier: Apache-2.0
// Launches of kernels, counted for each kernel and thread. A count is a record of the trace that
// the thread goes on writing, so that it is in the file however the process ends.
#ifndef KEEL_SRC_CAPTURE_CUDA_LAUNCHES_H_
#define KEEL_SRC_CAPTURE_CUDA_LAUNCHES_H_

// The calling thread has launched a kernel, which the driver tells by an address.
void launches_add(void *kernel);

// The driver may give addresses of kernels to others from now on. Any thread.
void launches_forget(void);

#endif
