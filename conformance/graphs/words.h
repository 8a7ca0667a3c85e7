// SPDX-License-Identifier: Apache-2.0
// The words of listings, each list in the order of its enumeration and ended by NULL.
#ifndef GRAPHS_WORDS_H_
#define GRAPHS_WORDS_H_

extern const char *const space_words[];
extern const char *const action_words[];
extern const char *const counts_words[];

#endif
