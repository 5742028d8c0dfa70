"""A real Kubernetes for tests, made on this machine from Go modules and Debian packages."""
