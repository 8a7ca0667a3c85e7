// SPDX-License-Identifier: Apache-2.0
// What cannot be recorded is told on standard error: this library has no other who would listen.
#include <keel/log.h>
#include <stdio.h>
#include <unistd.h>

// One line by one call, so that processes do not mix theirs.
static void say(void *user, keel_log_level_t level, const char *text)
{
    char line[1200];
    (void)user, (void)level;
    int length = snprintf(line, sizeof line, "keel trace: %s\n", text);
    if (write(STDERR_FILENO, line, (size_t)length) < 0) return; // nowhere left to tell
}

__attribute__((constructor)) static void say_load(void)
{
    keel_log_set(say, NULL, KEEL_LOG_WARNING);
}
