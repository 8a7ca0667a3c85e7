// SPDX-License-Identifier: Apache-2.0
#include "bench/command.h"
#include "conformance/command.h"
#include "conformance/graphs/command.h"
#include "tools/commands.h"

#include <keel/device.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int run_bench(int argc, char **argv)
{
    bool simulated = argc > 1 && strcmp(argv[1], "--sim") == 0;
    return simulated ? command_sim_bench(argc, argv) : bench_main(argc, argv);
}

static const struct command_t {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"cc", command_cc, "compile kernels for processors and GPUs into one file"},
    {"inspect", command_inspect, "show what is in a file of kernels"},
    {"devices", command_devices, "list the devices, or one by URI (-v: and what they can do)"},
    {"version", command_version, "print the version of the library"},
    {"conformance", conformance_main, "test whether a device does what Keel promises"},
    {"graphs", graphs_main, "run random submission graphs and compare them with a model"},
    {"stress", stress_main, "make very many small submissions and look for lost wake-ups"},
    {"sim", command_sim, "run a program that finds software AMD GPUs below its ROCm"},
    {"trace", command_trace, "record what a program does with Keel, HIP and AMD GPUs"},
    {"bench", run_bench, "measure Keel beside its peers"},
};

static void print_help(FILE *file)
{
    fprintf(file, "usage: keel [--driver=PATH]... COMMAND [options]\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        fprintf(file, "  %-12s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(file, "  %-12s %s\n", "help", "print this");
    fprintf(file,
            "--driver=PATH adds a driver in a shared object, for all commands with devices\n");
}

static bool load_driver(const char *path)
{
    keel_status_t status = keel_driver_load(path);
    if (!status) return true;
    keel_status_print(status, stderr);
    keel_status_release(status);
    return false;
}

// Runs a command. Its argv[0] are the words that repeat it, drivers included, for its messages.
static int run(const struct command_t *command, const char *drivers, int argc, char **argv)
{
    char words[4096];
    int length = snprintf(words, sizeof words, "keel%s %s", drivers, command->name);
    if (length > 0 && (size_t)length < sizeof words) argv[0] = words;
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    static const char driver[] = "--driver=";
    char drivers[4000] = "";
    while (argc > 1 && strncmp(argv[1], driver, sizeof driver - 1) == 0) {
        const char *path = argv[1] + sizeof driver - 1;
        size_t length = strlen(drivers);
        if (!load_driver(path)) return 2;
        snprintf(drivers + length, sizeof drivers - length, " %s'%s'", driver, path);
        argc--;
        argv++;
    }
    const char *name = argc > 1 ? argv[1] : "help";
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return run(&commands[i], drivers, argc - 1, argv + 1);
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0) {
        print_help(stdout);
        return argc > 1 ? 0 : 2;
    }
    fprintf(stderr, "keel: no command is called %s\n", name);
    print_help(stderr);
    return 2;
}
