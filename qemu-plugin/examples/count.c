/* The instructions of a sort, counted by the plugin.
 *
 *     cc -O2 -I qemu-plugin/include qemu-plugin/examples/count.c -o count
 *     qemu-x86_64 -plugin target/release/libeventring_qemu_plugin.so ./count
 */
#include <inttypes.h>
#include <stdio.h>

#include "eventring_icount.h"

enum { NUMBERS = 1000 };

static void sort(uint32_t *numbers, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        uint32_t number = numbers[i];
        size_t place = i;
        for (; place > 0 && numbers[place - 1] > number; place--)
            numbers[place] = numbers[place - 1];
        numbers[place] = number;
    }
}

int main(void)
{
    static uint32_t numbers[NUMBERS];
    uint32_t state = 1;
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = state = state * 1664525u + 1013904223u;

    eventring_icount_start();
    uint64_t empty = eventring_icount_stop();
    if (empty == EVENTRING_ICOUNT_NONE) {
        puts("not counted: start this program by qemu-x86_64 with the plugin");
        return 0;
    }
    eventring_icount_start();
    sort(numbers, NUMBERS);
    uint64_t sorting = eventring_icount_stop();
    printf("%d numbers were sorted by %" PRIu64 " instructions\n", NUMBERS, sorting - empty);
    return 0;
}
