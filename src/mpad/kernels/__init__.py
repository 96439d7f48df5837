"""Fast versions of the network: C for CPUs, Triton for GPUs."""
