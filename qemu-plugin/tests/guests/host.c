/* A stand-in for QEMU's loader: loads the plugin and prints the version that the plugin asks for. With NEWER, the
 * program has the function by which the plugin recognises QEMU 9.0 and later. */
#include <dlfcn.h>
#include <stdio.h>

#define STAND_IN(name) void name(void) { }
STAND_IN(qemu_plugin_register_vcpu_tb_trans_cb)
STAND_IN(qemu_plugin_register_vcpu_syscall_cb)
STAND_IN(qemu_plugin_register_atexit_cb)
STAND_IN(qemu_plugin_register_vcpu_tb_exec_cb)
STAND_IN(qemu_plugin_register_vcpu_insn_exec_cb)
STAND_IN(qemu_plugin_tb_n_insns)
STAND_IN(qemu_plugin_tb_get_insn)
STAND_IN(qemu_plugin_insn_vaddr)
STAND_IN(qemu_plugin_insn_haddr)
#ifdef NEWER
STAND_IN(qemu_plugin_scoreboard_new)
#endif

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int *version = plugin ? dlsym(plugin, "qemu_plugin_version") : NULL;
    if (version == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("%d\n", *version);
    return 0;
}
