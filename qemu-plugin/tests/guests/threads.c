/* Four threads at once, and a fork. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eventring_icount.h"

/* Measures 2 times `rounds` instructions and a constant. */
static __attribute__((noinline, noclone)) uint64_t measure(uint32_t rounds)
{
    eventring_icount_start();
    __asm__ __volatile__("1:\tdecl %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
    return eventring_icount_stop();
}

static __attribute__((noinline, noclone)) uint64_t measure_total(uint32_t rounds)
{
    uint64_t before = eventring_icount_process_total();
    __asm__ __volatile__("1:\tdecl %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
    return eventring_icount_process_total() - before;
}

struct task {
    uint32_t rounds;
    uint64_t first, measured, absolute;
};

static void *run(void *argument)
{
    struct task *task = argument;
    task->first = eventring_icount_thread_count();
    task->measured = measure(task->rounds + 1) - measure(1);
    task->absolute = eventring_icount_thread_count();
    return NULL;
}

int main(void)
{
    struct task tasks[4] = { { .rounds = 1000000 }, { .rounds = 2000000 }, { .rounds = 3000000 }, { .rounds = 4000000 } };
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, &tasks[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        printf("thread%d %" PRIu64 "\n", i, tasks[i].measured);
        printf("begins-at-zero%d %d\n", i, (int)(tasks[i].first < 2000));
        sum += tasks[i].absolute;
    }
    uint64_t own = eventring_icount_thread_count();
    uint64_t total = eventring_icount_process_total();
    /* The threads execute a little after their last request. */
    printf("all-in-the-total %d\n", (int)(total > own + sum && total < own + sum + 40000));
    fflush(stdout);

    uint64_t before = eventring_icount_thread_count();
    pid_t child = fork();
    if (child == 0) {
        uint64_t thread = eventring_icount_thread_count();
        uint64_t process = eventring_icount_process_total();
        printf("child-thread-goes-on %d\n", (int)(thread > before && thread - before < 20000));
        printf("child-total-begins-at-zero %d\n", (int)(process < 20000));
        printf("child-total-grows %" PRIu64 "\n", measure_total(1000001) - measure_total(1));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("parent-keeps-its-total %d\n", (int)(eventring_icount_process_total() > total));
    return 0;
}
