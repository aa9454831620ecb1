/* The tracepoints of the server: a request, and a step within it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER compare
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./requests.h"
#if !defined(EVENTRING_COMPARE_REQUESTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define EVENTRING_COMPARE_REQUESTS_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(
    compare, request_begin,
    LTTNG_UST_TP_ARGS(uint64_t, id),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id)))
LTTNG_UST_TRACEPOINT_EVENT(
    compare, request_end,
    LTTNG_UST_TP_ARGS(uint64_t, id),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id)))
LTTNG_UST_TRACEPOINT_EVENT(
    compare, step_begin,
    LTTNG_UST_TP_ARGS(uint64_t, id),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, id, id)))
LTTNG_UST_TRACEPOINT_EVENT(
    compare, step_end,
    LTTNG_UST_TP_ARGS(uint64_t, id, uint64_t, duration_ns),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, id, id)
        lttng_ust_field_integer(uint64_t, duration_ns, duration_ns)))
#endif
#include <lttng/tracepoint-event.h>
