// SPDX-License-Identifier: Apache-2.0
// The times of dispatches for the application itself. Its own completion signal is completed by a
// barrier packet after the dispatch, and has that packet's times. So an application that asks for
// the times of its signal is answered from here.
#ifndef KEEL_SRC_CAPTURE_HSA_TIMES_H_
#define KEEL_SRC_CAPTURE_HSA_TIMES_H_

#include "capture/hsa/flight.h"

// A dispatch that has `own` for its completion signal is in flight. False: there is no memory. Any
// thread, for all of these.
bool times_expect(hsa_signal_t own, const flight_t *flight);

// It has ended; its own signal is about to be used anew.
void times_settle(hsa_signal_t own, const flight_t *flight, hsa_time_t time);

// The signal completes something else; of a flight that is not NULL: it has no times.
void times_forget(hsa_signal_t own, const flight_t *flight);

// In the child of a fork, which has nothing in flight. A thread that is not there may have been
// about to change a table, so these are left as they were, and no longer used.
void times_child(void);

// What replaces the runtime's function.
hsa_status_t times_get(hsa_agent_t agent, hsa_signal_t signal, hsa_time_t *time);

#endif
