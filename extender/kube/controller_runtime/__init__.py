"""The controller loop and its tools: work queue, expectations, events, leader election."""
