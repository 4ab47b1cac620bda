"""Who fits, who is preempted: engine protocol, policy, victims, reference engine, fit error."""
