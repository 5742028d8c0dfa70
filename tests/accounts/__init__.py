"""Tests of associations, sacctmgr and sshare."""
