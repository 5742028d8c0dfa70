"""The Kubernetes runtime against a real cluster."""
