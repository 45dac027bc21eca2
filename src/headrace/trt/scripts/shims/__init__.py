"""Stand-ins for CUDA's Python packages under `headrace exec`: device memory is the host's."""
