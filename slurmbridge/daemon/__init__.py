"""The composition root: memory, event loop, store, planner and runtime put together."""
