// What `headrace compile --exe` links to a program: the file is a shared library that the kernel
// starts.
//
// Started, it hands over to Python, which loads the same file with Headrace's host and calls main.
// Part of headrace, Apache-2.0.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if !defined(__GLIBC__)
#error "programs need the GNU C library"
#elif defined(__x86_64__)
#define HEADRACE_LOADER "/lib64/ld-linux-x86-64.so.2"
#define HEADRACE_CALL_START \
    "xor %ebp, %ebp\nmov %rsp, %rdi\nand $-16, %rsp\ncall headrace_program_start\n"
#elif defined(__aarch64__)
#define HEADRACE_LOADER "/lib/ld-linux-aarch64.so.1"
#define HEADRACE_CALL_START "mov x29, #0\nmov x30, #0\nmov x0, sp\nbl headrace_program_start\n"
#else
#error "programs are made for x86-64 and AArch64"
#endif

extern "C" {

__attribute__((section(".interp"), used)) const char headrace_program_loader[] = HEADRACE_LOADER;

// The kernel's entry. The program's own initialisers have not run: they run once, with the host.
// stack: argc, argv with its null.
__attribute__((used, noreturn, visibility("hidden"))) void headrace_program_start(char **stack) {
    const long count = reinterpret_cast<long>(stack[0]);
    const char *const *argv = stack + 1;
    static char self[PATH_MAX];
    const char *python = getenv("HEADRACE_PYTHON");
    if (!python || !*python) python = HEADRACE_PYTHON;
    const char **words = static_cast<const char **>(calloc(count + 5UL, sizeof(char *)));
    if (words && readlink("/proc/self/exe", self, sizeof(self) - 1) > 0) {
        words[0] = python, words[1] = "-m", words[2] = "headrace.trt.host.program", words[3] = self;
        for (long i = 0; i < count; ++i) words[4 + i] = argv[i];
        execv(python, const_cast<char *const *>(words));
    }
    fprintf(stderr, "%s: %s cannot be started; HEADRACE_PYTHON names a Python that has headrace\n",
            argv[0], python);
    _exit(127);
}

__asm__(
    ".text\n.globl headrace_program_entry\n.hidden headrace_program_entry\n"
    ".type headrace_program_entry, %function\nheadrace_program_entry:\n" HEADRACE_CALL_START);

}  // extern "C"
