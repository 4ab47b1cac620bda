"""What happens to a world while a controller watches over it: steps, and moments of rest.

Objects that a controller must not see one by one are there before it starts. Where pods are told
apart they have names, and what is compared of them is chosen so that one rule decides.
"""
