"""What follows a preemption, found by a simulation, and criteria that compare candidates by it."""
