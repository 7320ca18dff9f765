/* What the examples do where a call fails: say why, and end. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include <galatea.h>

#define CHECK(call)                                                                                    \
    do {                                                                                               \
        const galatea_status check_status = (call);                                                    \
        if (check_status != GALATEA_STATUS_OK) {                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, galatea_status_name(check_status),  \
                    galatea_last_error());                                                             \
            exit(EXIT_FAILURE);                                                                        \
        }                                                                                              \
    } while (0)

#define EXPECT(condition)                                                                              \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition,    \
                    galatea_last_error());                                                             \
            exit(EXIT_FAILURE);                                                                        \
        }                                                                                              \
    } while (0)

#endif
