// SPDX-License-Identifier: Apache-2.0
// Lists of things that have `next` and `previous`, by their first one; nobody's order but the
// newest first. Whoever changes one holds its lock.
#ifndef KEEL_SRC_BASE_LIST_H_
#define KEEL_SRC_BASE_LIST_H_

#define LIST_ADD(first, item)                                                                      \
    do {                                                                                           \
        (item)->previous = NULL;                                                                   \
        (item)->next = (first);                                                                    \
        if ((item)->next) (item)->next->previous = (item);                                         \
        (first) = (item);                                                                          \
    } while (0)

#define LIST_REMOVE(first, item)                                                                   \
    do {                                                                                           \
        *((item)->previous ? &(item)->previous->next : &(first)) = (item)->next;                   \
        if ((item)->next) (item)->next->previous = (item)->previous;                               \
    } while (0)

#endif
