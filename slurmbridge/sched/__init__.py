"""The scheduler core: which pending jobs start now, where, and why the others wait. Pure but for `worker`."""
