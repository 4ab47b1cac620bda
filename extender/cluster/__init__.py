"""The live cluster: event handlers, object stores, scheduler cache, assumed preemptions."""
