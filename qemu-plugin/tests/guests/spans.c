/* Spans of a C program: the original use, a count by differences, and the slot as plain memory. Each function measures
 * 1 and 2 times `rounds` instructions and a constant of its own. The difference of two measurements has no constant. */
#include <inttypes.h>
#include <stdio.h>

#include "eventring_icount.h"

#define WORK(rounds) __asm__ __volatile__("1:\tdecl %0\n\tjnz 1b" : "+r"(rounds) : : "cc")
#define APART __attribute__((noinline, noclone))

static APART uint64_t original(uint32_t rounds)
{
    eventring_icount_start();
    WORK(rounds);
    return eventring_icount_stop();
}

static APART uint64_t difference(uint32_t rounds)
{
    uint64_t before = eventring_icount_thread_count();
    WORK(rounds);
    return eventring_icount_thread_count() - before;
}

/* A start within another span does not disturb a difference. */
static APART uint64_t nested(uint32_t rounds)
{
    uint64_t before = eventring_icount_thread_count();
    uint64_t inner = original(rounds);
    return eventring_icount_thread_count() - before - inner;
}

static APART uint64_t total(uint32_t rounds)
{
    uint64_t before = eventring_icount_process_total();
    WORK(rounds);
    return eventring_icount_process_total() - before;
}

static APART uint64_t loaded(const volatile uint64_t *slot, uint32_t rounds)
{
    uint64_t before = eventring_icount_load(slot);
    WORK(rounds);
    return eventring_icount_load(slot) - before;
}

int main(void)
{
    printf("original %" PRIu64 "\n", original(5001) - original(1));
    printf("difference %" PRIu64 "\n", difference(5001) - difference(1));
    printf("nested %" PRIu64 "\n", nested(5001) - nested(1));
    printf("total %" PRIu64 "\n", total(5001) - total(1));
    const volatile uint64_t *slot = eventring_icount_slot();
    if (slot == NULL) {
        puts("slot none");
        return 0;
    }
    printf("slot %" PRIu64 "\n", loaded(slot, 5001) - loaded(slot, 1));
    uint64_t before = eventring_icount_load(slot);
    uint64_t asked = eventring_icount_thread_count();
    uint64_t after = eventring_icount_load(slot);
    printf("slot-agrees %d\n", (int)(before < asked && asked < after && after - before < 50));
    return 0;
}
