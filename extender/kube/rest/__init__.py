"""Client-go's rest: transport, client, kubeconfig, discovery, errors, clock."""
