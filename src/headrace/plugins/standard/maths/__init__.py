"""The arithmetic of the standard plugins: arrays in, arrays out, nothing of interfaces."""
