// SPDX-License-Identifier: Apache-2.0
// `keel graphs` and `keel stress`.
#ifndef GRAPHS_COMMAND_H_
#define GRAPHS_COMMAND_H_

// Each runs the command; argv[0] are the words that repeat it, such as `keel graphs`. Returns the
// process's exit status: 0 if all went as it should, 1 if not, 2 if it was called wrongly.
int graphs_main(int argc, char **argv);
int stress_main(int argc, char **argv);

#endif
