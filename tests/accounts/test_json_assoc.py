"""`sacctmgr --json show assoc`: the document of Slurm 26.05.5 for an account with every limit, and a user below it."""

from __future__ import annotations

import json
import pathlib

from tests.accounts.site import recorded_site, run

RECORDED = pathlib.Path(__file__).parent / "assoc.json"
"""From a real Slurm: the lines of LINES, then `sacctmgr --json show assoc account=zzq`; ids apart."""
LINES = (
    "add account zzq parent=ml fairshare=parent grpjobs=1 grpjobsaccrue=2 grpsubmitjobs=3 grpwall=4 "
    "grptres=cpu=5,gres/gpu=6,mem=7G grptresmins=cpu=8 grptresrunmins=cpu=9 maxjobs=10 maxjobsaccrue=11 "
    "maxsubmitjobs=12 maxwall=13 maxtres=cpu=14,node=15 maxtrespernode=cpu=16 maxtresmins=cpu=17 priority=18 "
    "qos=normal,high defaultqos=high comment=hello",
    "add user alice account=zzq partition=debug",
)


def test_every_limit_stands_where_slurm_puts_it() -> None:
    site = recorded_site()
    for line in LINES:
        assert run(site, f"sacctmgr -i {line}").rc == 0
    shown = json.loads(run(site, "sacctmgr --json show assoc account=zzq").stdout)
    expected = json.loads(RECORDED.read_text())["associations"]
    assert [list(each) for each in shown["associations"]] == [list(each) for each in expected]
    for mine, theirs in zip(shown["associations"], expected, strict=True):
        assert {**mine, "id": 0} == {**theirs, "id": 0}
