"""Stand-ins for CUDA's Python packages under `noria exec`: device memory is the host's."""
