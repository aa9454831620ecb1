# Spans whose number of instructions follows from the text: an empty one, 3,000 and 2,000,001.
        .include "icount.inc"
        .globl  _start
_start:
        start
        stop

        # Seven bytes do not divide a page, so some of these instructions cross the end of a page.
        start
        .rept   3000
        .byte   0x0f, 0x1f, 0x80, 0, 0, 0, 0
        .endr
        stop

        start
        mov     $1000000, %ecx
1:      dec     %ecx
        jnz     1b
        stop
        leave_process
