"""The memory of the local machine: measurements and notifications of the kernel."""
