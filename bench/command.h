// SPDX-License-Identifier: Apache-2.0
// `keel bench`.
#ifndef BENCH_COMMAND_H_
#define BENCH_COMMAND_H_

// Runs the command; argv[0] are the words that repeat it. Returns the process's exit status: 0 if
// every row could be measured, 1 if one could not (or, with --strict, missed a bar), 2 if it was
// called wrongly.
int bench_main(int argc, char **argv);

#endif
