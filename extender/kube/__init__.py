"""The client library, after client-go: typed objects, a REST client, informers, controllers."""
