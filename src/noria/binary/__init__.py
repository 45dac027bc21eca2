"""What an ELF file says before it is loaded: symbols, header markers, entry points, ABI."""
