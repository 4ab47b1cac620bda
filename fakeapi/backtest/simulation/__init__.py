"""The simulation of workloads: a fake cluster on a virtual clock, and what is observed of it."""
