# Faults in the middle of a block. The handler skips the faulting instruction of seven bytes.
        .include "icount.inc"
        .globl  _start
_start:
        mov     $13, %eax               # rt_sigaction
        mov     $11, %edi               # SIGSEGV
        lea     action(%rip), %rsi
        xor     %edx, %edx
        mov     $8, %r10d
        syscall
        start
        stop

        # Three instructions, of which the third faults, and then 20. The handler has four, and two to return.
        start
        nop
        xor     %eax, %eax
        .byte   0x48, 0x8b, 0x80, 0, 0, 0, 0    # mov 0(%rax), %rax
        .rept   20
        nop
        .endr
        stop

        # The same with a block that ends one instruction after the fault: one more.
        start
        nop
        xor     %eax, %eax
        .byte   0x48, 0x8b, 0x80, 0, 0, 0, 0
        jmp     1f
1:      .rept   20
        nop
        .endr
        stop
        leave_process

        # rdx is the context; its instruction pointer lies at 168.
handler:
        addq    $7, 168(%rdx)
        nop
        nop
        ret
restorer:
        mov     $15, %eax               # rt_sigreturn
        syscall

        .data
        .balign 8
        # SA_RESTORER and SA_SIGINFO
action: .quad   handler, 0x04000004, restorer, 0
