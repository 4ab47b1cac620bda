"""The memory of the machine that this runs on: measured, and listened to, as the kernel has it."""
