# A fork whose child executes 2,000 instructions more than its parent after it, and no library: the reports are known.
        .include "icount.inc"
        .globl  _start
_start:
        mov     $1000, %ecx
1:      dec     %ecx
        jnz     1b
        mov     $57, %eax               # fork
        syscall
        test    %eax, %eax
        jz      2f
        # The parent: 1 and 2,000, 2 and 2, 5 to wait and 3 to exit.
        mov     %eax, %edi
        xor     %esi, %esi
        xor     %edx, %edx
        mov     $61, %eax               # wait4, whose fourth argument r10 is still 0
        syscall
        leave_process
        # The child: 2, 1 and 4,000, and 3 to exit.
2:      mov     $2000, %ecx
3:      dec     %ecx
        jnz     3b
        leave_process
