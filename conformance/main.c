// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include "suite/other.h"
#include "suite/plan.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: keel conformance [--device=URI] [options]\n"
    "  --device=URI      the device under test (cpu://)\n"
    "  --partner=URI     another device of its kind, for tests with two (the device itself)\n"
    "  --mode=MODE       plain; torture: each allocation fails in turn; shuffle: random "
    "scheduling;\n"
    "                    fault: each call of the vendor's library fails in turn\n"
    "  --filter=GLOB     only tests whose name (area.name) matches\n"
    "  --list            print their names and what they need, run nothing\n"
    "  --kernels=FILE    a container of conformance/kernels/kernels.c to use in place of the\n"
    "                    suite's: for a device that this build makes no code for\n"
    "  --expect=FILE     fail when other tests are skipped than FILE says\n"
    "  --seed=N          of everything random (1)\n"
    "  --runs=N          shuffle: seeds per test (3)\n"
    "  --tests=N         only so many, which the seed chooses, of every area if they suffice\n"
    "  --samples=N       torture, fault: at most so many failures of a test, which the seed "
    "chooses\n"
    "  --seconds=N       begin no run after that long\n"
    "  --allocation=N    torture: let only the Nth fail\n"
    "  --call=[F:]N[+|-] fault: let only the Nth call, of function F, fail; with +, the device is\n"
    "                    lost with it; with -, it is only short of memory\n"
    "  --each=N          fault: at most so many calls of each function in each test (all)\n"
    "  --timeout=N       seconds a test may take (20)\n"
    "  --under-tool      all tests in one process, whose threads and descriptors are not counted:\n"
    "                    for tools that take seconds to begin and have some of their own\n"
    "  --json            the results as a JSON document\n"
    "  -j N              tests that run at the same time (one per core)\n"
    "  -v                tell also of tests that pass or are skipped\n";

typedef struct arguments_t {
    settings_t settings;
    bool list, help;
} arguments_t;

enum {
    OPTION_DEVICE = 256,
    OPTION_PARTNER,
    OPTION_MODE,
    OPTION_FILTER,
    OPTION_LIST,
    OPTION_KERNELS,
    OPTION_EXPECT,
    OPTION_SEED,
    OPTION_RUNS,
    OPTION_TESTS,
    OPTION_SAMPLES,
    OPTION_SECONDS,
    OPTION_ALLOCATION,
    OPTION_CALL,
    OPTION_EACH,
    OPTION_TIMEOUT,
    OPTION_UNDER_TOOL,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option options[] = {
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"partner", required_argument, NULL, OPTION_PARTNER},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"filter", required_argument, NULL, OPTION_FILTER},
    {"list", no_argument, NULL, OPTION_LIST},
    {"kernels", required_argument, NULL, OPTION_KERNELS},
    {"expect", required_argument, NULL, OPTION_EXPECT},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"tests", required_argument, NULL, OPTION_TESTS},
    {"samples", required_argument, NULL, OPTION_SAMPLES},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"allocation", required_argument, NULL, OPTION_ALLOCATION},
    {"call", required_argument, NULL, OPTION_CALL},
    {"each", required_argument, NULL, OPTION_EACH},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"under-tool", no_argument, NULL, OPTION_UNDER_TOOL},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool read_number(const char *what, const char *text, double least, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    if (!errno && end != text && !*end && *number >= least) return true;
    fprintf(stderr, "keel conformance: --%s=%s: give a number of at least %g\n", what, text, least);
    return false;
}

static bool read_mode(const char *text, run_mode_t *mode)
{
    static const char *const names[] = {"plain", "torture", "shuffle", "fault"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *mode = (run_mode_t)i;
        return true;
    }
    fprintf(stderr, "keel conformance: --mode=%s: give plain, torture, shuffle or fault\n", text);
    return false;
}

// [FUNCTION:]N[+|-]
static bool read_call(char *text, settings_t *settings)
{
    double number = 0;
    char *colon = strchr(text, ':');
    if (colon) {
        snprintf(settings->symbol, sizeof settings->symbol, "%.*s", (int)(colon - text), text);
        text = colon + 1;
    }
    size_t length = strlen(text);
    char last = length ? text[length - 1] : 0;
    settings->fault = last == '+' ? FAULT_LOST : last == '-' ? FAULT_REFUSED : FAULT_FAILED;
    if (settings->fault != FAULT_FAILED) text[length - 1] = 0;
    if (!read_number("call", text, 1, &number)) return false;
    settings->place = (uint64_t)number;
    return true;
}

static bool read_kernels(const char *path, settings_t *settings)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *image = size > 0 ? malloc((size_t)size) : NULL;
    if (image) rewind(file);
    bool read = image && fread(image, 1, (size_t)size, file) == (size_t)size;
    if (file) fclose(file);
    free(settings->image);
    settings->kernels = path;
    settings->image = read ? image : NULL;
    settings->image_size = (size_t)size;
    if (read) return true;
    free(image);
    fprintf(stderr, "keel conformance: --kernels=%s: it cannot be read, or is empty\n", path);
    return false;
}

static bool read_option(arguments_t *arguments, int option)
{
    settings_t *settings = &arguments->settings;
    double number = 0;
    switch (option) {
    case OPTION_DEVICE: settings->uri = optarg; return true;
    case OPTION_PARTNER: settings->partner = optarg; return true;
    case OPTION_MODE: return read_mode(optarg, &settings->mode);
    case OPTION_FILTER: settings->filter = optarg; return true;
    case OPTION_KERNELS: return read_kernels(optarg, settings);
    case OPTION_EXPECT: settings->expect = optarg; return true;
    case OPTION_LIST: arguments->list = true; return true;
    case OPTION_UNDER_TOOL: settings->under_tool = true; return true;
    case OPTION_JSON: settings->json = true; return true;
    case OPTION_HELP: arguments->help = true; return true;
    case 'v': settings->verbose = true; return true;
    case OPTION_SEED:
        if (!read_number("seed", optarg, 0, &number)) return false;
        settings->seed = (uint64_t)number;
        return true;
    case OPTION_RUNS:
        if (!read_number("runs", optarg, 1, &number)) return false;
        settings->runs = (unsigned)number;
        return true;
    case OPTION_TESTS:
        if (!read_number("tests", optarg, 1, &number)) return false;
        settings->tests = (size_t)number;
        return true;
    case OPTION_SAMPLES:
        if (!read_number("samples", optarg, 1, &number)) return false;
        settings->samples = (unsigned)number;
        return true;
    case OPTION_ALLOCATION:
        if (!read_number("allocation", optarg, 1, &number)) return false;
        settings->place = (uint64_t)number;
        return true;
    case OPTION_CALL: return read_call(optarg, settings);
    case OPTION_EACH:
        if (!read_number("each", optarg, 1, &number)) return false;
        settings->each = (unsigned)number;
        return true;
    case 'j':
        if (!read_number("j", optarg, 1, &number)) return false;
        settings->parallel = (unsigned)number;
        return true;
    case OPTION_SECONDS: return read_number("seconds", optarg, 0, &settings->seconds);
    case OPTION_TIMEOUT: return read_number("timeout", optarg, 0.1, &settings->limit_s);
    default: return false;
    }
}

static bool read_arguments(int argc, char **argv, arguments_t *arguments)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *arguments = (arguments_t){.settings = {.command = argv[0],
                                            .uri = "cpu://",
                                            .seed = 1,
                                            .limit_s = 20,
                                            .filter = "*",
                                            .runs = 3,
                                            .parallel = cores > 0 ? (unsigned)cores : 1}};
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, "j:v", options, NULL)) != -1;) {
        if (!read_option(arguments, option)) return false;
    }
    if (optind == argc) return true;
    fprintf(stderr, "keel conformance: %s: no such argument\n", argv[optind]);
    return false;
}

// Whether the driver of the URI is one of these words.
static bool is_for(const char *drivers, const char *uri)
{
    size_t length = strcspn(uri, ":");
    for (const char *word = drivers; *word; word += strcspn(word, " "), word += *word == ' ')
        if (strcspn(word, " ") == length && strncmp(word, uri, length) == 0) return true;
    return false;
}

static bool is_selected(const settings_t *settings, const test_t *test)
{
    char name[128];
    if (test->driver && !is_for(test->driver, settings->uri)) return false;
    if (fnmatch(settings->filter, test_name(test, name, sizeof name), 0) != 0) return false;
    if (!settings->under_tool || !test->loses) return true;
    fprintf(stderr, "%s is left out: it loses the device, which the others need\n", name);
    return false;
}

static void select_tests(report_t *report)
{
    size_t count;
    test_t **tests = test_all(&count);
    report->records = calloc(count + 1, sizeof *report->records);
    if (!report->records) abort();
    for (size_t i = 0; i < count; i++) {
        if (!is_selected(report->settings, tests[i])) continue;
        report->records[report->count++].test = tests[i];
    }
}

static bool has_managed(const keel_caps_t *caps)
{
    const uint32_t both = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE;
    for (size_t i = 0; i < sizeof caps->memory_types / sizeof caps->memory_types[0]; i++) {
        if ((caps->memory_types[i] & both) == both) return true;
    }
    return false;
}

static bool is_of(const char *uri, const char *scheme)
{
    return strncmp(uri, scheme, strlen(scheme)) == 0;
}

// A vendor's library works in the process that began with it.
static bool works_after_fork(const char *uri)
{
    return !is_of(uri, "amdgpu:") && !is_of(uri, "cuda:") && !is_of(uri, "hip:") &&
           !is_of(uri, "metal:");
}

// Which of the NEED_ bits there are, as far as can be told before a test runs.
static uint32_t others_of(const char *uri, const probe_t *probe)
{
    const keel_caps_t *caps = &probe->caps;
    bool serial = uri_has(uri, "serial=1");
    uint32_t others = NEED_EXACT_USAGE; // tests look at the buffer
    if (probe->survives) others |= NEED_LOSS;
    if (probe->reads_only) others |= NEED_READ_ONLY_HOST;
    if (caps->nodes > 1 || strncmp(uri, "cpu:", 4) == 0) others |= NEED_NODES;
    if (caps->workers > 0) others |= NEED_WORKERS;
    if (works_after_fork(uri)) others |= NEED_FORK;
    if (!uri_has(uri, "lib=")) others |= NEED_LISTED; // one at a path is on no list
    if (caps->memory_types[0] & KEEL_MEMORY_HOST_VISIBLE) others |= NEED_MAPPABLE_FD;
    if (caps->queue_families & 1 << KEEL_QUEUE_TRANSFER) others |= NEED_TRANSFER_QUEUES;
    if (has_managed(caps)) others |= NEED_MANAGED;
    if (caps->max_commands <= 1 << 24) others |= NEED_BOUNDED_RECORDINGS;
    if (!serial) others |= NEED_OVERLAP;
    if (!is_of(uri, "amdgpu:")) others |= NEED_POINT_OBJECTS;
    if (!is_of(uri, "metal:")) others |= NEED_DESCRIPTORS;
    // Without events of its own a driver puts the commands of a recording in one order.
    if (!serial && !uri_has(uri, "commands=stream") && caps->native & KEEL_CAP_EVENTS)
        others |= NEED_PARALLEL_RECORDINGS;
    if (other_side(uri)->create) others |= NEED_OTHER_SIDE;
#if !defined(__SANITIZE_THREAD__) // which lets the child of a fork start no threads
    others |= NEED_PROCESS;
#endif
    return others;
}

static void skip_tests(report_t *report, const keel_caps_t *caps)
{
    uint32_t others = report->expected.others;
    for (size_t i = 0; i < report->count; i++) {
        const test_t *test = report->records[i].test;
        uint32_t lacking = test->needs & ~caps->bits, also = test->also & ~others;
        if (!lacking && !also) continue;
        report_skip(report, &report->records[i], need_name(lacking, also),
                    "the device does not have it");
    }
}

static void list_tests(const report_t *report)
{
    for (size_t i = 0; i < report->count; i++) {
        const test_t *test = report->records[i].test;
        char name[128];
        printf("%-48s", test_name(test, name, sizeof name));
        for (unsigned bit = 0; bit < 32; bit++) {
            if (test->needs >> bit & 1) printf(" %s", need_name(1u << bit, 0));
        }
        for (unsigned bit = 0; bit < 32; bit++) {
            if (test->also >> bit & 1) printf(" %s", need_name(0, 1u << bit));
        }
        printf("\n");
    }
}

static int run_tests(const settings_t *settings, report_t *report)
{
    probe_t probe;
    if (settings->expect && !(expect_read(&report->expected, settings->expect, settings->uri) &&
                              expect_all_used(&report->expected))) {
        return 2;
    }
    if (report->count == 0) {
        fprintf(stderr, "keel conformance: no test is called %s\n", settings->filter);
        return 2;
    }
    if (settings->mode == MODE_FAULT && !fault_vendor(settings->uri)) {
        fprintf(stderr,
                "keel conformance: --mode=fault: there is no stand-in for the library of such "
                "devices; cuda://, hip:// and metal:// have one\n");
        return 2;
    }
    if (!plan_probe(settings, &probe)) return 2;
    report->expected.native = probe.caps.native;
    report->expected.others = others_of(settings->uri, &probe);
    skip_tests(report, &probe.caps);
    if (!plan_run(settings, report)) return 130;
    return report_total(report) ? 0 : 1;
}

int conformance_main(int argc, char **argv)
{
    arguments_t arguments;
    if (!read_arguments(argc, argv, &arguments)) {
        fputs(usage, stderr);
        return 2;
    }
    if (arguments.help) {
        fputs(usage, stdout);
        return 0;
    }
    report_t report = {.settings = &arguments.settings};
    select_tests(&report);
    int status = 0;
    if (arguments.list) {
        list_tests(&report);
    } else {
        status = run_tests(&arguments.settings, &report);
    }
    report_finish(&report);
    free(arguments.settings.image);
    return status;
}
