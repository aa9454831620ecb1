/* Every request once. Each line has the request's name, the result, the error and whether the buffer changed. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "eventring_icount.h"

static const uint64_t UNTOUCHED = 0x5a5a5a5a5a5a5a5a;

static void ask(const char *name, unsigned descriptor, size_t length)
{
    uint64_t buffer[2] = { UNTOUCHED, UNTOUCHED };
    errno = 0;
    ssize_t result = read((int)descriptor, buffer, length);
    int error = errno;
    printf("%s %zd %s %s %s\n", name, result, error == EBADF ? "EBADF" : strerror(error),
           buffer[0] == UNTOUCHED ? "untouched" : "answered", buffer[1] == UNTOUCHED ? "kept" : "overrun");
}

int main(void)
{
    ask("stop-without-start", EVENTRING_ICOUNT_STOP, 8);
    ask("start", EVENTRING_ICOUNT_START, 8);
    ask("stop", EVENTRING_ICOUNT_STOP, 8);
    ask("stop-again", EVENTRING_ICOUNT_STOP, 8);
    ask("thread", EVENTRING_ICOUNT_THREAD, 8);
    ask("process", EVENTRING_ICOUNT_PROCESS, 8);
    ask("slot", EVENTRING_ICOUNT_SLOT, 8);
    ask("version", EVENTRING_ICOUNT_VERSION, 8);
    ask("thread-with-4-bytes", EVENTRING_ICOUNT_THREAD, 4);
    ask("thread-with-16-bytes", EVENTRING_ICOUNT_THREAD, 16);
    ask("before-the-first", EVENTRING_ICOUNT_START - 1, 8);
    ask("after-the-last", EVENTRING_ICOUNT_VERSION + 1, 8);
    void *volatile wrong = (void *)8;
    errno = 0;
    ssize_t result = read((int)EVENTRING_ICOUNT_THREAD, wrong, 8);
    printf("wrong-address %zd %s\n", result, errno == EBADF ? "EBADF" : strerror(errno));
    uint64_t version = eventring_icount_request(EVENTRING_ICOUNT_VERSION);
    if (version != EVENTRING_ICOUNT_NONE)
        printf("version %" PRIu64 " mode %" PRIu64 "\n", version & UINT32_MAX, version >> 32);
    return 0;
}
