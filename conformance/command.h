// SPDX-License-Identifier: Apache-2.0
// `keel conformance`.
#ifndef CONFORMANCE_COMMAND_H_
#define CONFORMANCE_COMMAND_H_

// Runs the command; argv[0] are the words that repeat it, such as `keel conformance`. Returns the
// process's exit status: 0 if every test behaved as expected, 1 if one did not, 2 if it was called
// wrongly.
int conformance_main(int argc, char **argv);

#endif
