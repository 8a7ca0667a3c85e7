// SPDX-License-Identifier: Apache-2.0
// Streams that are captured into graphs. What they take in is not modelled, only what a capture
// forbids to others: calls that might have effects outside of it (CALL_UNSAFE) spoil it, unless the
// thread has said that it knows what it does.
#ifndef SIM_CUDA_CAPTURE_H_
#define SIM_CUDA_CAPTURE_H_

#include "cuda/state.h"

// Whether a capture forbids this thread an unsafe call, which spoils it.
bool capture_is_spoilt(void);

// Ends the capture of a stream that goes away.
void capture_forget(CUstream stream);

#endif
