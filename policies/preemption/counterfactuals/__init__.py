"""Counterfactuals of a preemption: the smallest changes that would have spared a victim.

A change spares the victim if the preemptor then fits a node without preemption that it did not fit
before, or if the decision chooses victims without it, or none. Each change is found by an engine
that decides anew, and verified by the reference engine.
"""
