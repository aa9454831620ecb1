/* The server of docs/COMPARE.md with LTTng. A line that is there for the recording ends with the mark //T. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES //T
#define LTTNG_UST_TRACEPOINT_DEFINE //T
#include "requests.h" //T
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PER_SECOND = 10000, STUCK = 20000, SLOW = 40000 };

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void work(uint64_t id) {
    if (id == SLOW) usleep(300000);
    if (id == STUCK)
        for (;;) pause();
}

static void handle(uint64_t id) {
    lttng_ust_tracepoint(compare, request_begin, id); //T
    lttng_ust_tracepoint(compare, step_begin, id); //T
    uint64_t begin = now(); //T
    work(id);
    /* A rule cannot pair two events: the program must measure the duration. */
    lttng_ust_tracepoint(compare, step_end, id, now() - begin); //T
    lttng_ust_tracepoint(compare, request_end, id); //T
}

static void *handle_alone(void *id) {
    handle((uint64_t)id);
    return 0;
}

int main(void) {
    uint64_t start = now();
    for (uint64_t id = 0;; id++) {
        while (now() - start < id * (1000000000ull / PER_SECOND)) usleep(1000);
        if (id == STUCK || id == SLOW) {
            pthread_t thread;
            pthread_create(&thread, 0, handle_alone, (void *)id);
            printf("request %lu %s\n", id, id == SLOW ? "is slow" : "never ends");
            fflush(stdout);
        } else {
            handle(id);
        }
    }
}
