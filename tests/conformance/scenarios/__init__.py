"""Scenarios of the ReplicaSet controller: writes, and waits until it has reacted.

Objects that a controller must see all at once are loaded before it starts. Pods that have to be
distinguished have names, and differ so that one rule decides.
"""
