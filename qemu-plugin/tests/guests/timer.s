# A timer's handler within loops. The guest tells the count, and how often the handler ran within the span.
        .include "icount.inc"
        .globl  _start
_start:
        mov     $13, %eax               # rt_sigaction
        mov     $14, %edi               # SIGALRM
        lea     action(%rip), %rsi
        xor     %edx, %edx
        mov     $8, %r10d
        syscall
        start
        stop
        mov     $38, %eax               # setitimer
        xor     %edi, %edi
        lea     often(%rip), %rsi
        xor     %edx, %edx
        syscall

        # Until the handler ran 50 times: 1 and 100,002 instructions a round, and 5 to stop the timer.
        start
        xor     %ebx, %ebx
1:      inc     %rbx
        mov     $49999, %ecx
2:      dec     %ecx
        jnz     2b
        cmpl    $50, calls(%rip)
        jb      1b
        # No handler may run between the look at its calls and the end of the span.
        mov     $38, %eax
        xor     %edi, %edi
        lea     never(%rip), %rsi
        xor     %edx, %edx
        syscall
        request 0xcafebabf
        mov     %rbx, rounds(%rip)
        tell    answer, 8
        tell    calls, 8
        tell    rounds, 8
        leave_process

        # Two instructions, and two to return.
handler:
        incq    calls(%rip)
        ret
restorer:
        mov     $15, %eax               # rt_sigreturn
        syscall

        .data
        .balign 8
action: .quad   handler, 0x04000000, restorer, 0
often:  .quad   0, 500, 0, 500
never:  .quad   0, 0, 0, 0
        .bss
        .balign 8
calls:  .skip   8
rounds: .skip   8
