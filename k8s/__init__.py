"""What installs slurmbridge on a Kubernetes cluster: a Helm chart, images, and a way to render the chart without Helm."""
