"""What the daemon and supervisors share on disk and know of processes: claims, records, names. Standard library only."""
