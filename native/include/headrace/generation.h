/* The mark of the structures' layout: each object that includes them carries it as a note of ELF,
 * and the library compares it with its own when code of that object first calls.
 *
 * Part of headrace, Apache-2.0. */
#ifndef HEADRACE_GENERATION_H
#define HEADRACE_GENERATION_H

#define HEADRACE_LAYOUT "9.1"

#if defined(__GNUC__) && defined(__ELF__)
__asm__(
    ".pushsection .note.headrace, \"a\", %note\n"
    ".balign 4\n"
    ".long 9, 4, 1\n"
    ".asciz \"headrace\"\n"
    ".balign 4\n"
    ".asciz \"" HEADRACE_LAYOUT
    "\"\n"
    ".balign 4\n"
    ".popsection\n");
#endif

#endif
