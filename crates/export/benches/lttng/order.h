/* The event that benches/lttng.sh records: as many bytes as the events of benches/pipeline. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./order.h"
#if !defined(EVENTRING_BENCH_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define EVENTRING_BENCH_TRACEPOINT_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(
    bench, order,
    LTTNG_UST_TP_ARGS(const uint8_t *, bytes),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_array(uint8_t, bytes, bytes, 127)))
#endif
#include <lttng/tracepoint-event.h>
