# A signal handler in the middle of a span: without a signal, with one that the thread sends to itself, and 100.
        .include "icount.inc"
        .macro send
        mov     $39, %eax               # getpid
        syscall
        mov     %eax, %edi
        mov     $10, %esi               # SIGUSR1
        mov     $62, %eax               # kill
        syscall
        .endm

        .globl  _start
_start:
        mov     $13, %eax               # rt_sigaction
        mov     $10, %edi
        lea     action(%rip), %rsi
        xor     %edx, %edx
        mov     $8, %r10d
        syscall

        start
        stop

        # 6 instructions, and 7 of the handler: the `nop`s, `incl`, `ret` and two to return.
        start
        send
        stop

        # 1 and 100 times 15.
        start
        mov     $100, %ebx
1:      send
        dec     %ebx
        jnz     1b
        stop
        leave_process

        # Five instructions.
handler:
        nop
        nop
        nop
        incl    calls(%rip)
        ret
restorer:
        mov     $15, %eax               # rt_sigreturn
        syscall

        .data
        .balign 8
action: .quad   handler, 0x04000000, restorer, 0
        .bss
        .balign 8
calls:  .skip   8
