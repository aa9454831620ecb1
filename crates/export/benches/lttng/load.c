/* Records events with LTTng: the same bytes at the same rate as benches/pipeline/load.rs. Arguments: events, events a
 * second. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "order.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 3) return 1;
    uint64_t events = strtoull(arguments[1], 0, 10), per_second = strtoull(arguments[2], 0, 10);
    uint64_t start = now(), number = 0x9e3779b97f4a7c15ull;
    uint8_t bytes[127];
    memset(bytes, 7, sizeof bytes);
    for (uint64_t event = 0; event < events; event++) {
        if (event % 1000 == 0)
            while ((now() - start) < (unsigned __int128)event * 1000000000 / per_second) {}
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        memcpy(bytes, &event, 8);
        memcpy(bytes + 8, &number, 8);
        lttng_ust_tracepoint(bench, order, bytes);
    }
    return 0;
}
