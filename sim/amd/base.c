// SPDX-License-Identifier: Apache-2.0
#include "amd/base.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned log_topics;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static void log_init(void)
{
    static const struct {
        const char *name;
        unsigned topic;
    } topics[] = {
        {"calls", LOG_CALLS}, {"packets", LOG_PACKETS}, {"isa", LOG_ISA}, {"time", LOG_TIME}};
    const char *text = getenv("KEEL_SIM_LOG");
    while (text && *text) {
        size_t length = strcspn(text, ",");
        bool known = false;
        for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
            if (strlen(topics[i].name) != length || strncmp(topics[i].name, text, length)) continue;
            log_topics |= topics[i].topic;
            known = true;
        }
        if (!known) {
            fprintf(stderr, "sim: KEEL_SIM_LOG knows calls, packets, isa and time, not '%.*s'\n",
                    (int)length, text);
        }
        text += length + (text[length] == ',');
    }
}

bool log_enabled(log_topic_t topic)
{
    pthread_once(&log_once, log_init);
    return topic == LOG_ERROR || (log_topics & topic);
}

void log_line(log_topic_t topic, const char *format, ...)
{
    if (!log_enabled(topic)) return;
    char line[1024] = "sim: ";
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + 5, sizeof line - 6, format, arguments);
    va_end(arguments);
    size_t count = 5 + (length < 0 ? 0 : (size_t)length);
    if (count > sizeof line - 2) count = sizeof line - 2;
    line[count++] = '\n';
    if (write(STDERR_FILENO, line, count) < 0) return; // nowhere left to complain
}

static settings_t settings;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;

static uint64_t number(const char *name, uint64_t usual, uint64_t least, uint64_t most)
{
    const char *text = getenv(name);
    if (!text || !*text) return usual;
    char *end;
    uint64_t value = strtoull(text, &end, 0);
    if (!*end && value >= least && value <= most) return value;
    fprintf(stderr, "sim: %s wants a number from %llu to %llu, not '%s'\n", name,
            (unsigned long long)least, (unsigned long long)most, text);
    return usual;
}

static void settings_init(void)
{
    settings.weak = number("KEEL_SIM_WEAK", 0, 0, UINT64_MAX);
    settings.seed = number("KEEL_SIM_SEED", settings.weak, 0, UINT64_MAX);
    settings.threads = (unsigned)number("KEEL_SIM_THREADS", 1, 1, 256);
    settings.queues = (unsigned)number("KEEL_SIM_QUEUES", 24, 1, 1024);
    settings.strict = number("KEEL_SIM_STRICT", 0, 0, 1);
    settings.atomics = number("KEEL_SIM_ATOMICS", 1, 0, 1);
    settings.bar = number("KEEL_SIM_BAR", 0, 0, 1);
    settings.doorbells = number("KEEL_SIM_DOORBELLS", 1, 0, 1);
    settings.links = number("KEEL_SIM_LINKS", 1, 0, 1);
    settings.svm = number("KEEL_SIM_SVM", 0, 0, 1);
    settings.watchdog_s = number("KEEL_SIM_WATCHDOG", 10, 0, 1000000);
}

const settings_t *sim_settings(void)
{
    pthread_once(&settings_once, settings_init);
    return &settings;
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
