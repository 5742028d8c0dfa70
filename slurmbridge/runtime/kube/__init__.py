"""Runs as pods of a Kubernetes cluster."""
