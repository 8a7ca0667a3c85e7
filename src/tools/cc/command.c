// SPDX-License-Identifier: Apache-2.0
// `keel cc`: one source of kernels to one container, by the compilers of this machine.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "executable/container.h"
#include "tools/cc/check.h"
#include "tools/cc/compiler.h"
#include "tools/cc/file.h"
#include "tools/cc/interrupt.h"
#include "tools/cc/log.h"
#include "tools/cc/msl/msl.h"
#include "tools/cc/record.h"
#include "tools/commands.h"

static const char usage[] =
    "usage: keel cc SOURCE -o FILE [--target=LIST] [options] [options of the compiler]\n"
    "  -o FILE           the container to write\n"
    "  --target=LIST     what for, separated by commas; host if neither it nor --image is given\n"
    "      host              this machine's kind, in all levels of its vectors\n"
    "      x86_64-linux[:v2|:v3|:v4]  aarch64-linux[:sve|:sve2]\n"
    "      nvptx:sm_70       NVIDIA's GPUs from that one on\n"
    "      gfx90a            one of AMD's GPUs\n"
    "      msl               Metal, as text\n"
    "  --image=KIND:TARGET=FILE  an image of the same kernels that was made elsewhere\n"
    "  --bare            write the image of the one target itself, not a container\n"
    "  --clang=PROGRAM   the clang to use; the latest on PATH if not given\n"
    "  --host-cc=PROGRAM the compiler for host targets; clang, or else cc\n"
    "  --compress        compress the images\n"
    "  --verbose         print the compilers' command lines\n"
    "  --help            print this\n"
    "-O -D -U -I -f -W -g -std= -include -isystem -MD -MF -MT -MQ go to the compilers.\n";

typedef struct command_t {
    const char *source, *output, *targets, *clang, *host_cc;
    bool compress, verbose, bare;
    arguments_t images;       // KIND:TARGET=FILE
    arguments_t passed;       // to every compiler
    arguments_t dependencies; // to the first: -MD and its like
    target_list_t list;
    compilers_t compilers;
    char include[4096];       // the folder of keel/kernel.h, if it lies beside this program
    char folder[MADE_FOLDER]; // for the compilers' files
} command_t;

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool value_of(const char *argument, const char *name, const char **value)
{
    if (!begins(argument, name)) return false;
    *value = argument + strlen(name);
    return true;
}

// Options of the compiler: how many arguments they take, 0 if it is none that is passed on.
static int passed_on(const char *argument, const char *next)
{
    static const char *const with_value[] = {"-D",       "-U",  "-I",  "-include",
                                             "-isystem", "-MF", "-MT", "-MQ"};
    for (size_t i = 0; i < sizeof with_value / sizeof with_value[0]; i++)
        if (!strcmp(argument, with_value[i])) return next ? 2 : 0;
    static const char *const alone[] = {"-O", "-D", "-U", "-I", "-f", "-W", "-g", "-std=", "-MD"};
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (begins(argument, alone[i])) return 1;
    return 0;
}

static bool option_parse(command_t *c, char **argv, int *i)
{
    const char *argument = argv[*i], *next = argv[*i + 1];
    if (!strcmp(argument, "-o")) {
        c->output = next;
        ++*i;
        return next || !fprintf(stderr, "keel cc: -o takes the name of a file\n");
    }
    if (value_of(argument, "--target=", &c->targets) || value_of(argument, "--clang=", &c->clang) ||
        value_of(argument, "--host-cc=", &c->host_cc))
        return true;
    const char *image;
    if (value_of(argument, "--image=", &image)) {
        arguments_add(&c->images, image);
        return true;
    }
    if (!strcmp(argument, "--bare")) return c->bare = true;
    if (!strcmp(argument, "--compress")) return c->compress = true;
    if (!strcmp(argument, "--verbose")) return c->verbose = true;
    int count = passed_on(argument, next);
    arguments_t *to = begins(argument, "-M") ? &c->dependencies : &c->passed;
    for (int k = 0; k < count; k++) arguments_add(to, argv[*i + k]);
    *i += count ? count - 1 : 0;
    if (!count) fprintf(stderr, "keel cc: no option is called %s\n%s", argument, usage);
    return count > 0;
}

static bool targets_parse(command_t *c, bool compiles)
{
    if (compiles && !target_list_parse(c->targets ? c->targets : "host", &c->list)) return false;
    for (int i = 0; i < c->images.count; i++)
        if (!target_list_give(c->images.items[i], &c->list)) return false;
    if (!c->bare || c->list.count == 1) return true;
    fprintf(stderr, "keel cc: --bare writes one image, and %d are to be made\n", c->list.count);
    return false;
}

static bool command_parse(command_t *c, int argc, char **argv)
{
    if (argc > ARGUMENTS_MAX / 2) {
        fprintf(stderr, "keel cc: more than %d arguments\n", ARGUMENTS_MAX / 2);
        return false;
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (!option_parse(c, argv, &i)) return false;
        } else if (c->source) {
            fprintf(stderr, "keel cc: %s and %s are given, and one source makes a container\n",
                    c->source, argv[i]);
            return false;
        } else {
            c->source = argv[i];
        }
    }
    bool compiles = c->targets || !c->images.count;
    if ((!c->source && compiles) || !c->output) {
        fprintf(stderr, "keel cc: %s\n%s", c->source ? "-o FILE is missing" : "no source is given",
                usage);
        return false;
    }
    if (c->source && access(c->source, R_OK) != 0) {
        fprintf(stderr, "keel cc: cannot read %s: %s\n", c->source, strerror(errno));
        return false;
    }
    return targets_parse(c, compiles);
}

// Installed, this program is bin/keel, and the headers lie in include beside bin.
static void include_find(command_t *c)
{
    char program[3072], header[4200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return;
    program[length] = 0;
    char *slash = strrchr(program, '/');
    if (!slash) return;
    *slash = 0;
    snprintf(c->include, sizeof c->include, "%s/../include", program);
    snprintf(header, sizeof header, "%s/keel/kernel.h", c->include);
    if (access(header, R_OK) != 0) c->include[0] = 0;
}

// Files that a target's compiler makes and takes.
typedef struct made_file_t {
    char path[MADE_PATH];
    char sizes[MADE_PATH];           // of groups, for code of AMD: see sizes_write
    char with_sizes[MADE_PATH + 32]; // the option that names it; "": not yet
} made_file_t;

// The version of PTX for a GPU, "90a" for example: that of CUDA 12.0, or the first that has the
// GPU.
static const char *ptx_version(const char *gpu)
{
    static const struct {
        const char *gpu, *version; // of several rows that fit the first counts
    } later[] = {
        {"100f", "+ptx88"}, {"100", "+ptx86"},  {"101f", "+ptx88"}, {"101", "+ptx86"},
        {"103", "+ptx88"},  {"120f", "+ptx88"}, {"120", "+ptx87"},  {"121", "+ptx88"},
    };
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        if (begins(gpu, later[i].gpu)) return later[i].version;
    return atoi(gpu) <= 90 ? "+ptx80" : "+ptx90";
}

// The version of PTX is the same on every machine. By itself clang takes that of the toolkit that
// is installed, which an older driver refuses, and without one a version that lacks sub-groups.
static void ptx_version_fix(const target_t *target, arguments_t *a)
{
    const char *version = ptx_version(target->text + strlen("nvptx:sm_"));
    const char *const options[] = {"--cuda-path=/nonexistent", "-Xclang", "-target-feature",
                                   "-Xclang", version};
    for (int i = 0; i < 5; i++) arguments_add(a, options[i]);
}

static void target_arguments(const command_t *c, const target_t *target, arguments_t *a)
{
    bool on_host = target->family == TARGET_HOST;
    bool by_host = on_host && !target->foreign && c->compilers.host[0];
    bool clang = !by_host || c->compilers.host_is_clang;
    arguments_add(a, by_host ? c->compilers.host : c->compilers.clang);
    if (clang) {
        arguments_add(a, "-target");
        arguments_add(a, target->triple);
        arguments_add(a, "-fmacro-backtrace-limit=1");
        arguments_add(a, "-Wno-pass-failed");
    } else {
        arguments_add(a, "-ftrack-macro-expansion=0");
    }
    arguments_add(a, "-std=gnu2x"); // the name of C23 that compilers before it know, too
    if (target->machine[0]) arguments_add(a, target->machine);
    static const char *const common[] = {"-O3", "-fno-math-errno", "-fno-trapping-math",
                                         "-fvisibility=hidden"};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) arguments_add(a, common[i]);
    if (on_host) {
        arguments_add(a, "-fopenmp-simd");
        arguments_add(a, "-shared");
        arguments_add(a, "-fPIC");
        if (begins(target->text, "aarch64") || begins(target->triple, "aarch64"))
            arguments_add(a, "-mno-outline-atomics");
        // The system's start files have variables, which would keep executables from sharing.
        arguments_add(a, clang ? "-nostdlib" : "-nostartfiles");
        // A worker's stack has room for a frame of that size: KEEL_PRIVATE lies on it.
        arguments_add(a,
                      clang ? "-Wframe-larger-than=1048576" : "-Werror=frame-larger-than=1048576");
        if (clang) arguments_add(a, "-Werror=frame-larger-than");
        // The padding that protection from writes takes is ten times as long as a small image.
        if (strstr(target->triple, "linux")) arguments_add(a, "-Wl,-z,norelro");
        if (clang && target->foreign) {
            arguments_add(a, "-fuse-ld=lld");
            arguments_add(a, "-ffreestanding"); // there are no headers of that system here
        }
        return;
    }
    arguments_add(a, "-ffreestanding");
    if (target->family == TARGET_MSL) return;
    arguments_add(a, "-nogpulib");
    arguments_add(a, target->family == TARGET_NVPTX ? "-S" : "-mcode-object-version=4");
    if (target->family == TARGET_NVPTX) ptx_version_fix(target, a);
    if (target->family == TARGET_AMDGCN) {
        // Local memory is what the kernel declares: the rest belongs to the launch.
        arguments_add(a, "-mllvm");
        arguments_add(a, "-disable-promote-alloca-to-lds");
    }
}

// LLVM's text, in which kernels call nothing: Metal wants to know of each pointer where it points,
// and that is known where all code is in one place. Behind the user's options: less would not do.
static void msl_arguments(arguments_t *a)
{
    static const char *const options[] = {"-DKEEL_MSL=1",
                                          "-O2",
                                          "-g0",
                                          "-S",
                                          "-emit-llvm",
                                          "-fno-vectorize",
                                          "-fno-slp-vectorize",
                                          "-fno-unroll-loops",
                                          "-fdiscard-value-names",
                                          "-Wno-atomic-alignment",
                                          "-mllvm",
                                          "-inline-threshold=1000000"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) arguments_add(a, options[i]);
}

static void job_prepare(const command_t *c, const target_t *target, job_t *job, made_file_t *file)
{
    arguments_t *a = &job->arguments;
    size_t index = (size_t)(target - c->list.items);
    snprintf(job->log, sizeof job->log, "%s/%zu.log", c->folder, index);
    snprintf(file->path, sizeof file->path, "%s/%zu.image", c->folder, index);
    snprintf(file->sizes, sizeof file->sizes, "%s/%zu.sizes", c->folder, index);
    target_arguments(c, target, a);
    for (int i = 0; i < c->passed.count; i++) arguments_add(a, c->passed.items[i]);
    if (target->family == TARGET_MSL) msl_arguments(a);
    if (file->with_sizes[0]) {
        arguments_add(a, "-mllvm");
        arguments_add(a, file->with_sizes);
    } else if (target->family == TARGET_AMDGCN) {
        arguments_add(a, "-DKEEL_DESCRIBE");
        arguments_add(a, "-w");
    }
    if (c->include[0]) {
        arguments_add(a, "-I");
        arguments_add(a, c->include);
    }
    if (index == 0 && c->dependencies.count) {
        for (int i = 0; i < c->dependencies.count; i++) arguments_add(a, c->dependencies.items[i]);
        bool named = false;
        for (int i = 0; i < c->dependencies.count; i++)
            named |=
                begins(c->dependencies.items[i], "-MT") || begins(c->dependencies.items[i], "-MQ");
        if (!named) {
            arguments_add(a, "-MQ");
            arguments_add(a, c->output);
        }
    }
    arguments_add(a, c->source);
    arguments_add(a, "-o");
    arguments_add(a, file->path);
    if (!c->verbose) return;
    for (int i = 0; i < a->count; i++) fprintf(stderr, i ? " %s" : "%s", a->items[i]);
    fputc('\n', stderr);
}

static int no_code(const target_t *target)
{
    fprintf(stderr, "keel cc: no code for %s\n", target->text);
    return 1;
}

// What the compilers said. A mistake in the source is one on every target, and is shown for the
// first; warnings are shown once each.
static void logs_print(const command_t *c, const job_t *jobs, int failed)
{
    char *texts[TARGETS_MAX] = {0};
    for (int i = 0; i < c->list.count; i++) {
        size_t size;
        bool said = failed >= 0 && failed != i;
        texts[i] = file_read(jobs[i].log, &size);
        for (int k = 0; k < i; k++) said |= texts[i] && texts[k] && !strcmp(texts[i], texts[k]);
        if (texts[i] && (!said || failed == i)) log_print(texts[i], stderr);
    }
    for (int i = 0; i < c->list.count; i++) free(texts[i]);
    if (failed >= 0) no_code(&c->list.items[failed]);
}

// The first job that did, or -1.
static int jobs_failed(const job_t *jobs, int count)
{
    for (int i = 0; i < count; i++)
        if (jobs[i].result) return i;
    return -1;
}

static int fail(keel_status_t status, const char *what)
{
    char text[1024];
    keel_status_format(status, text, sizeof text);
    fprintf(stderr, "keel cc: %s: %s\n", what, text);
    keel_status_release(status);
    return 1;
}

// PTX without the 0 that containers have behind it.
static int image_write(const command_t *c, const made_t *made)
{
    size_t size = made->size - (c->list.items[0].kind == KEEL_IMAGE_PTX);
    return file_write(c->output, made->bytes, size) ? 0 : 1;
}

static int images_pack(const command_t *c, const made_t *made)
{
    if (c->bare) return image_write(c, made);
    container_input_t inputs[TARGETS_MAX];
    for (int i = 0; i < c->list.count; i++)
        inputs[i] =
            (container_input_t){c->list.items[i].kind, c->list.items[i].text, made[i].bytes,
                                made[i].size,          made[i].entries,       made[i].entry_count};
    const container_options_t options = {.compress = c->compress};
    void *bytes;
    size_t size;
    keel_status_t status =
        container_write(&options, inputs, (uint32_t)c->list.count, &bytes, &size);
    if (status) return fail(status, c->output);
    int result = file_write(c->output, bytes, size) ? 0 : 1;
    mem_free(bytes);
    return result;
}

static keel_status_t image_describe(made_t *made, const target_t *target)
{
    return target->family == TARGET_MSL ? msl_make(made) : made_describe(made, target->kind);
}

static int image_read(const command_t *c, int index, const made_file_t *file, made_t *made)
{
    const target_t *target = &c->list.items[index];
    made->bytes = file_read(target->given ? target->given : file->path, &made->size);
    keel_status_t status = made->bytes ? image_describe(made, target)
                           : target->given
                               ? KEEL_ERROR(KEEL_IO, "cannot read it")
                               : KEEL_ERROR(KEEL_IO, "cannot read what the compiler made");
    if (status) return fail(status, target->given ? target->given : c->source);
    status = target->given ? NULL : made_check(made, target);
    if (!status) return 0;
    fail(status, c->source);
    return no_code(target);
}

// The largest group of each kernel decides how many registers an item may have, and clang has no
// attribute for that in C. So code for AMD is compiled twice: once without its code, for the
// records, and once with a table of the sizes, in the form that LLVM's pass for forced attributes
// reads.
static int sizes_write(const command_t *c, int index, made_file_t *file)
{
    made_t made = {0};
    int result = image_read(c, index, file, &made);
    FILE *table = result ? NULL : fopen(file->sizes, "w");
    for (uint32_t i = 0; table && i < made.entry_count; i++) {
        const keel_entry_info_t *info = &made.entries[i].info;
        uint32_t items = info->group_size[0] * info->group_size[1] * info->group_size[2];
        static const char *const forms[] = {"", "$walk"};
        for (int k = 0; k < (made.entries[i].abi == KEEL_ABI_DIRECT ? 2 : 1); k++)
            fprintf(table, "%s%s,amdgpu-flat-work-group-size=%u,%u\n", info->name, forms[k], items,
                    items);
    }
    if (table && fclose(table) == 0)
        snprintf(file->with_sizes, sizeof file->with_sizes, "-forceattrs-csv-path=%s", file->sizes);
    made_finish(&made);
    if (!result && !file->with_sizes[0]) fprintf(stderr, "keel cc: cannot write %s\n", file->sizes);
    return file->with_sizes[0] ? 0 : 1;
}

static bool images_compile(const command_t *c, job_t *jobs, made_file_t *files)
{
    int count = c->list.count;
    for (int i = 0; i < count; i++)
        if (!c->list.items[i].given) job_prepare(c, &c->list.items[i], &jobs[i], &files[i]);
    jobs_run(jobs, count);
    int failed = jobs_failed(jobs, count);
    for (int i = 0; i < count && failed < 0; i++) {
        jobs[i].arguments = (arguments_t){0};
        if (c->list.items[i].family != TARGET_AMDGCN) continue;
        if (sizes_write(c, i, &files[i])) return false;
        job_prepare(c, &c->list.items[i], &jobs[i], &files[i]);
    }
    if (failed < 0) jobs_run(jobs, count);
    if (failed < 0) failed = jobs_failed(jobs, count);
    if (interrupt_came()) return false;
    logs_print(c, jobs, failed);
    return failed < 0;
}

static int images_make(const command_t *c, job_t *jobs, made_file_t *files)
{
    made_t made[TARGETS_MAX] = {0};
    int result = images_compile(c, jobs, files) ? 0 : 1;
    for (int i = 0; i < c->list.count && !result; i++)
        result = image_read(c, i, &files[i], &made[i]);
    if (!result) result = images_pack(c, made);
    for (int i = 0; i < c->list.count; i++) made_finish(&made[i]);
    return result;
}

static int command_run(command_t *c)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent || strlen(parent) > MADE_FOLDER - 32) parent = "/tmp";
    snprintf(c->folder, sizeof c->folder, "%s/keel-cc-XXXXXX", parent);
    job_t *jobs = calloc((size_t)c->list.count, sizeof *jobs);
    made_file_t *files = calloc((size_t)c->list.count, sizeof *files);
    int result = 1;
    interrupt_catch();
    if (!jobs || !files || !mkdtemp(c->folder)) {
        fprintf(stderr, "keel cc: cannot make a folder in %s: %s\n", parent, strerror(errno));
    } else {
        result = images_make(c, jobs, files);
        folder_remove(c->folder);
    }
    free(jobs);
    free(files);
    interrupt_end();
    return result;
}

int command_cc(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0) continue;
        fputs(usage, stdout);
        return 0;
    }
    command_t *c = calloc(1, sizeof *c);
    if (!c || !command_parse(c, argc, argv)) {
        free(c);
        return 2;
    }
    include_find(c);
    int result = 1;
    if (compilers_find(c->clang, c->host_cc, &c->list, &c->compilers)) result = command_run(c);
    free(c);
    return result;
}
