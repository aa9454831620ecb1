# 10,000 threads, one after the other. The process's total, less the count of the first thread, is the threads' sum.
        .include "icount.inc"
        .set    THREADS, 10000
        .globl  _start
_start:
        lea     slots(%rip), %r13
        xor     %ebx, %ebx
1:      movl    $1, alive(%rip)
        # CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM and CHILD_CLEARTID.
        mov     $0x250f00, %edi
        lea     stack_end(%rip), %rsi
        xor     %edx, %edx
        lea     alive(%rip), %r10
        xor     %r8d, %r8d
        mov     $56, %eax               # clone
        syscall
        test    %rax, %rax
        jz      thread
        js      failed
2:      mov     alive(%rip), %edx
        test    %edx, %edx
        jz      3f
        lea     alive(%rip), %rdi
        xor     %esi, %esi              # FUTEX_WAIT
        xor     %r10d, %r10d
        mov     $202, %eax              # futex
        syscall
        jmp     2b
3:      add     $8, %r13
        inc     %ebx
        cmp     $THREADS, %ebx
        jb      1b

        request 0xcafebac0              # this thread
        tell    answer, 8
        request 0xcafebac1              # the process, 10 instructions later
        tell    answer, 8
        tell    slots, 8*THREADS
        leave_process
failed: ud2

        # 2 of the clone's return, 1 + 2 * 500, 5 of the request, 3 of the end: 1,011 instructions.
thread:
        mov     $500, %ecx
4:      dec     %ecx
        jnz     4b
        mov     $0xcafebac2, %edi       # the slot
        mov     $READ, %eax
        mov     %r13, %rsi
        mov     $8, %edx
        syscall
        mov     $60, %eax               # exit
        xor     %edi, %edi
        syscall

        .bss
        .balign 8
alive:  .skip   8
slots:  .skip   8*THREADS
        .balign 16
        .skip   4096
stack_end:
