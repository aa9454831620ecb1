/* A stand-in for QEMU's loader. Its arguments are the plugin, the name of the guest's machine, the version of the
 * plugin interface, and 1 for system emulation. The program prints the version that the plugin asks for, and the result
 * of the installation. With NEWER, the program has the function by which the plugin recognises QEMU 9.0 and later. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct description {
    const char *machine;
    int oldest, newest;
    bool system;
    int processors[2];
};

int main(int argc, char **argv)
{
    void *plugin = argc == 5 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int *version = plugin ? dlsym(plugin, "qemu_plugin_version") : NULL;
    if (version == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *symbol = dlsym(plugin, "qemu_plugin_install");
    int (*install)(uint64_t, const struct description *, int, char **);
    memcpy(&install, &symbol, sizeof install);
    struct description description = { argv[2], 0, atoi(argv[3]), atoi(argv[4]), { 0, 0 } };
    printf("%d ", *version);
    printf("%d\n", install(1, &description, 0, NULL));
    return 0;
}
