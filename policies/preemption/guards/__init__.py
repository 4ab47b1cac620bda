"""What a policy forbids: victims, candidates, and attempts to preempt."""
