"""The extender's front door: sockets, certificates, and who may come in for how long."""
