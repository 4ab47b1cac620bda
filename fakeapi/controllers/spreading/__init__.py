"""What the controller and the webhooks of WorkloadSpreads share: how they know the cluster.

items          objects as both keep them, and how they are read
written        what this process has written of WorkloadSpreads and its copies may not show yet
copies         WorkloadSpreads, from the day that their kind is defined
configuration  the kinds that OpenKruise's configuration allows
reception      where webhooks are asked, which whoever starts them says
workloads      targets and owners, from copies where there are any, else from the server
"""
