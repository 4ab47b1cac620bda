"""The steps of scenarios in a world with a controller, and the waits between them.

Objects that a controller must not see one by one are there before it starts. Pods that have to be
distinguished have names, and what is compared of them is chosen so that one rule decides.
"""
