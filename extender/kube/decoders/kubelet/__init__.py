"""What kubelets read and serve: their configuration, running pods, and the Summary API."""
