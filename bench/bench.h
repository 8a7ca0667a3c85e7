// SPDX-License-Identifier: Apache-2.0
// `keel bench`: rows, the sides that compete in a row, and the bars a row must meet.
//
// A row is one thing to do. Its sides do it, each in its own way: Keel first, then its peers. A
// round lets every side run once, one after the other, so that whatever the machine does meanwhile
// does it to all of them; a row has several rounds. Figures are nanoseconds. A side's figure is the
// median of its rounds' medians, a ratio the median of the rounds' ratios; percentiles are over the
// samples of all rounds.
#ifndef BENCH_BENCH_H_
#define BENCH_BENCH_H_

#include <keel/keel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MAX_SIDES = 4, MAX_BARS = 5, MAX_ROUNDS = 32, MAX_VALUES = 2, MAX_WORKERS = 256 };

#define TAIL_NS 1000000 // beyond it a sample counts as tail

typedef enum place_t {
    PLACE_FREE,     // threads go where the system puts them
    PLACE_APART,    // the two threads of a ping-pong on two processors
    PLACE_TOGETHER, // both on one
    PLACE_BESIDE,   // both on one, and the device's worker on another
} place_t;

typedef enum transfer_t {
    TRANSFER_COPY,
    TRANSFER_FILL,
    TRANSFER_UPLOAD, // from pinned memory of the host
    TRANSFER_IN,     // from a buffer of cpu://
    TRANSFER_OUT,    // to one
} transfer_t;

// What a row does; which fields matter is up to its sides.
typedef struct job_t {
    const char *uri;    // device; NULL: the one of the command line
    const char *kernel; // of kernels/kernels.c; NULL: none
    uint32_t groups;    // workgroups of a dispatch
    uint32_t group_ns;  // how long each takes ("spin")
    uint32_t repeat;    // times per sample, which is divided by it
    bool wait_each;     // of them, and not only the last
    uint32_t samples;   // per round
    uint64_t size;
    transfer_t transfer;
    place_t place;
    uint32_t asleep_us; // before a thread is woken: how long it and the workers had to fall asleep
    uint32_t legs;      // what a ping-pong's round trip is divided by; 0: 1
} job_t;

// A job and what the command line makes of it.
typedef struct setting_t {
    job_t job;
    const char *device;
    uint32_t workers; // for every side ...
    uint32_t threads; // ... and as an option of the device; 0: as its URI says
    bool gpu;         // it is no cpu://
} setting_t;

// What a side measured.
typedef struct tally_t {
    double *samples;
    size_t count, capacity;
    double values[MAX_VALUES]; // figures beside time, that bars may refer to
    char note[200];            // one line about the run; the last round's stays
} tally_t;

void tally_add(tally_t *tally, double ns);
__attribute__((format(printf, 2, 3))) void tally_note(tally_t *tally, const char *format, ...);

// One competitor. `begin` may fail with KEEL_UNSUPPORTED: then the side is absent, and the message
// says why. `state` is its own; it lives until `end`.
typedef struct side_t {
    const char *name;
    keel_status_t (*begin)(const setting_t *setting, void **state);
    keel_status_t (*round)(void *state, tally_t *tally);
    void (*end)(void *state);
} side_t;

typedef enum bar_kind_t {
    BAR_NONE,
    BAR_NS,     // Keel's median is at most `limit`
    BAR_RATIO,  // ... at most `limit` times that of side `peer`
    BAR_ADDED,  // ... at most `limit` ns more than that of side `peer`
    BAR_FASTER, // ... fast: at least `limit` times the speed of side `peer`
    BAR_P99,    // Keel's 99th percentile is at most `limit` times its median
    BAR_TAIL,   // Keel has no sample beyond TAIL_NS
    BAR_VALUE,  // Keel's value `peer` is at most `limit`
    BAR_LEAST,  // ... at least `limit`
} bar_kind_t;

typedef struct bar_t {
    bar_kind_t kind;
    double limit;
    int peer;
    const char *what;      // BAR_VALUE, BAR_LEAST: what the value is
    uint32_t most_workers; // holds up to that many; 0: for any number
} bar_t;

#define AT_MOST_NS(ns)       {.kind = BAR_NS, .limit = (ns)}
#define AT_MOST(times, side) {.kind = BAR_RATIO, .limit = (times), .peer = (side)}
#define AT_MOST_UP_TO(most, times, side)                                                           \
    {.kind = BAR_RATIO, .limit = (times), .peer = (side), .most_workers = (most)}
#define ADDED_NS(ns, side)         {.kind = BAR_ADDED, .limit = (ns), .peer = (side)}
#define SPEED(times, side)         {.kind = BAR_FASTER, .limit = (times), .peer = (side)}
#define P99_WITHIN(times, side)    {.kind = BAR_P99, .limit = (times), .peer = (side)}
#define NO_TAIL(side)              {.kind = BAR_TAIL, .peer = (side)}
#define VALUE_WITHIN(n, index, is) {.kind = BAR_VALUE, .limit = (n), .peer = (index), .what = (is)}
#define VALUE_LEAST(n, index, is)  {.kind = BAR_LEAST, .limit = (n), .peer = (index), .what = (is)}

typedef struct row_t {
    const char *name, *what;
    job_t job;
    const side_t *sides[MAX_SIDES]; // the first is Keel
    bar_t bars[MAX_BARS];
    double iree[2]; // what IREE's HAL took on 2 cores of the same kind, from .. to; 0: not measured
    uint32_t rounds; // 0: as many as the command line says
    bool scales;     // run for each of --workers
    bool gpu;        // for devices that are not the host's processor
} row_t;

// Groups of rows: one file each, ended by a row without a name.
extern const row_t record_rows[], replay_rows[], submit_rows[], wake_rows[], alloca_rows[],
    gemm_rows[], region_rows[], load_rows[], memory_rows[], gpu_replay_rows[], gpu_queue_rows[],
    gpu_transfer_rows[];

// Keel's sides that rows for GPUs have too.
extern const side_t keel_chain, keel_pair, keel_endure;

extern const side_t gomp_replay, gomp_gemm;      // peer_gomp.c
extern const side_t peer_pingpong, peer_wake;    // peer_futex.c
extern const side_t plain_loop;                  // peer_plain.c
extern const side_t opencl_replay, opencl_chain; // peer_opencl.c

// What became of a row.
typedef struct side_result_t {
    const char *name;
    char absent[120]; // why it did not run; "" if it did
    tally_t tally;
    double rounds[MAX_ROUNDS]; // medians
    double median, low, high, p95, p99, max;
    size_t tail;
} side_result_t;

typedef enum verdict_t {
    VERDICT_NONE, // the peer was absent
    VERDICT_MET,
    VERDICT_MISSED,
    VERDICT_NOISE, // missed, but so does the peer: percentiles of a machine that does other things
    VERDICTS,
} verdict_t;

typedef struct bar_result_t {
    char text[64]; // "<= 1.00x libgomp"
    char got[32];  // "0.72x"
    double value, limit;
    verdict_t verdict;
} bar_result_t;

typedef struct row_result_t {
    const row_t *row;
    char name[64]; // with the number of workers, where the row was run for several
    uint32_t rounds;
    size_t side_count, bar_count;
    side_result_t sides[MAX_SIDES];
    bar_result_t bars[MAX_BARS];
} row_result_t;

typedef struct plan_t {
    uint32_t rounds;
    double effort; // the number of samples of every round is multiplied by it
    bool alone;    // no peers
    bool once;     // no rounds, one sample: for a profiler
    void (*progress)(const char *row, uint32_t round, uint32_t rounds);
} plan_t;

// Runs a row's sides in turns. On failure the result still holds what `row_finish` frees.
keel_status_t row_run(const row_t *row, const plan_t *plan, setting_t *setting,
                      row_result_t *result) KEEL_MUST_USE;
void row_finish(row_result_t *result);

// Fills in `bars` from `sides`, with those that hold for so many workers.
void row_judge(row_result_t *result, uint32_t workers);

// report.c
typedef struct report_t {
    FILE *table, *json; // for people and for machines; each may be NULL
    size_t rows, verdicts[VERDICTS];
} report_t;
void report_begin(report_t *report, const setting_t *setting, const plan_t *plan);
void report_row(report_t *report, const row_result_t *result);
void report_end(report_t *report);

// stats.c: of `count` > 0 values; the array is put in order.
double percentile(double *values, size_t count, double p);
static inline double median_of(double *values, size_t count)
{
    return percentile(values, count, 0.5);
}

#endif
