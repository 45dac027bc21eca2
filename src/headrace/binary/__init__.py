"""Facts of an ELF file before it is loaded: symbols, header markers, entry points, ABI."""
