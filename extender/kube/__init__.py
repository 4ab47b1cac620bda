"""What client-go is to Go: typed objects, a client, informers."""
