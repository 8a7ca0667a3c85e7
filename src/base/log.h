// SPDX-License-Identifier: Apache-2.0
#ifndef KEEL_SRC_BASE_LOG_H_
#define KEEL_SRC_BASE_LOG_H_

#include <keel/log.h>

// Says something to the application, which may take its time: hold no lock. Any thread.
void log_say(keel_log_level_t level, const char *format, ...) KEEL_PRINTF(2, 3);

#endif
