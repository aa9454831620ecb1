/*
 * Counts of executed instructions, for x86-64 Linux programs that run under QEMU's user mode with the eventring plugin.
 *
 * Each function makes a read(2) system call with a descriptor that cannot exist. The plugin answers by filling the
 * eight bytes of the buffer. Without the plugin, the call fails with EBADF and the functions return
 * EVENTRING_ICOUNT_NONE. So a program may call the functions anywhere.
 *
 * The system call is written in assembly, because read() of the C library executes a varying number of instructions.
 * A measured number includes the instructions of the functions around the measured code. This part is constant in a
 * compiled program: measure an empty pair of calls and subtract.
 */
#ifndef EVENTRING_ICOUNT_H
#define EVENTRING_ICOUNT_H

#include <stddef.h>
#include <stdint.h>

/* The result without an answer: no plugin, another processor, or a stop without a start. */
#define EVENTRING_ICOUNT_NONE UINT64_MAX

#define EVENTRING_ICOUNT_START 0xcafebabeu
#define EVENTRING_ICOUNT_STOP 0xcafebabfu
#define EVENTRING_ICOUNT_THREAD 0xcafebac0u
#define EVENTRING_ICOUNT_PROCESS 0xcafebac1u
#define EVENTRING_ICOUNT_SLOT 0xcafebac2u
#define EVENTRING_ICOUNT_VERSION 0xcafebac3u

/* Makes a request and returns the answer. */
static inline uint64_t eventring_icount_request(uint32_t request)
{
    uint64_t answer = EVENTRING_ICOUNT_NONE;
#if defined(__x86_64__) && defined(__linux__)
    long result = 0; /* the number of read(2) */
    __asm__ __volatile__("syscall"
                         : "+a"(result)
                         : "D"((unsigned long)request), "S"(&answer), "d"(sizeof answer)
                         : "rcx", "r11", "memory");
    (void)result; /* always -EBADF */
#else
    (void)request;
#endif
    return answer;
}

/* Begins a measurement of this thread. A second start replaces the first. */
static inline void eventring_icount_start(void)
{
    (void)eventring_icount_request(EVENTRING_ICOUNT_START);
}

/* Ends the measurement. Returns the instructions of this thread since its start. */
static inline uint64_t eventring_icount_stop(void)
{
    return eventring_icount_request(EVENTRING_ICOUNT_STOP);
}

/* Returns the instructions of this thread since its beginning. Differences of two counts may nest and overlap. */
static inline uint64_t eventring_icount_thread_count(void)
{
    return eventring_icount_request(EVENTRING_ICOUNT_THREAD);
}

/* Returns the instructions of all threads of this process, also of ended threads. After a fork the child begins at 0. */
static inline uint64_t eventring_icount_process_total(void)
{
    return eventring_icount_request(EVENTRING_ICOUNT_PROCESS);
}

/* Returns the place where the count of this thread lies, or NULL. Only this thread may use the place. */
static inline const volatile uint64_t *eventring_icount_slot(void)
{
    uint64_t place = eventring_icount_request(EVENTRING_ICOUNT_SLOT);
    return place == EVENTRING_ICOUNT_NONE ? NULL : (const volatile uint64_t *)(uintptr_t)place;
}

/*
 * Reads a count from its place, much faster than a system call. The plugin adds the instructions of a block when the
 * block begins. So the load stands in a block of its own, between two jumps. The alignment keeps the block away from
 * the end of a page.
 */
static inline uint64_t eventring_icount_load(const volatile uint64_t *slot)
{
    uint64_t count;
#if defined(__x86_64__)
    __asm__ __volatile__("jmp 1f\n\t"
                         ".p2align 5\n"
                         "1:\tmovq (%1), %0\n\t"
                         "jmp 2f\n"
                         "2:"
                         : "=r"(count)
                         : "r"(slot)
                         : "memory");
#else
    count = *slot;
#endif
    return count;
}

#endif
