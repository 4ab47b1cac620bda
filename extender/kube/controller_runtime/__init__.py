"""Controller loop, work queue, expectations, event recorder, leader election."""
