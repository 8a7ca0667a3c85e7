// SPDX-License-Identifier: Apache-2.0
// Doubly linked lists of structs with `next` and `previous`, held by a pointer
// to the first; the newest is first. The caller holds the list's lock.
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
