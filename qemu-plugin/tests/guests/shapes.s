# Instructions and blocks of unusual shapes, each in a span of its own.
        .include "icount.inc"
        .globl  _start
_start:
        start
        stop

        # A block that is entered at its top and in its middle: 1, 100 times 9, 99 times 7 and 4
        # instructions.
        start
        mov     $200, %ecx
top:    nop
        nop
        nop
middle: nop
        nop
        dec     %ecx
        jz      1f
        test    $1, %cl
        jnz     middle
        jmp     top
1:      stop

        # An instruction that crosses the end of a page, in a loop: 4 and 1,000 times 6.
        start
        mov     $1000, %ecx
        jmp     3f
        .p2align 12
        .skip   4096 - 2 - 3, 0x90
2:      nop
        nop
        nop
        .byte   0x0f, 0x1f, 0x80, 0, 0, 0, 0
        dec     %ecx
        jnz     2b
        jmp     4f
3:      jmp     2b
4:      stop

        # The same, entered at the crossing instruction itself: 4 and 1,000 times 3.
        start
        mov     $1000, %ecx
        jmp     6f
        .p2align 12
        .skip   4096 - 2, 0x90
5:      .byte   0x0f, 0x1f, 0x80, 0, 0, 0, 0
        dec     %ecx
        jnz     5b
        jmp     7f
6:      jmp     5b
7:      stop

        # An instruction that ends with the page, and does not cross its end: 4 and 1,000 times 3.
        start
        mov     $1000, %ecx
        jmp     9f
        .p2align 12
        .skip   4096 - 7, 0x90
8:      .byte   0x0f, 0x1f, 0x80, 0, 0, 0, 0
        dec     %ecx
        jnz     8b
        jmp     10f
9:      jmp     8b
10:     stop

        # A repeated copy: QEMU 7.2 executes the instruction once for each byte, and once more; QEMU 10.0 once.
        start
        mov     $1000, %ecx
        lea     source(%rip), %rsi
        lea     target(%rip), %rdi
        rep movsb
        stop

        # A repeated copy of nothing: 2 instructions.
        start
        xor     %ecx, %ecx
        rep movsb
        stop
        leave_process

        .bss
source: .skip   1000
target: .skip   1000
