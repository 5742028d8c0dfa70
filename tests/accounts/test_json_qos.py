"""`sacctmgr --json|--yaml show qos|tres|cluster`: documents of Slurm 26.05.5."""

from __future__ import annotations

import json
import pathlib

from tests.accounts.site import recorded_site, run

RECORDED = pathlib.Path(__file__).parent / "qos.json"
"""From a real Slurm: `sacctmgr --json show qos tiny`, which is set as below."""


def test_a_qos_stands_as_slurm_writes_it() -> None:
    shown = json.loads(run(recorded_site(), "sacctmgr --json show qos tiny").stdout)["qos"]
    assert shown == json.loads(RECORDED.read_text())["qos"]
    assert json.dumps(shown) == json.dumps(json.loads(RECORDED.read_text())["qos"])  # the order, too


def test_limits_stand_where_slurm_puts_them() -> None:
    site = recorded_site()
    words = (
        "grpjobs=1 grpjobsaccrue=2 grpsubmitjobs=3 grpwall=4 grptres=cpu=5 grptresmins=cpu=6 grptresrunmins=cpu=7 "
        "maxjobspu=8 maxjobspa=9 maxsubmitjobspu=10 maxsubmitjobspa=11 maxtresperuser=cpu=12 maxtrespa=cpu=13 maxtresperjob=cpu=14 "
        "maxtrespernode=cpu=15 maxtresmins=cpu=16 mintresperjob=cpu=17 usagefactor=0.5 gracetime=18"
    )
    assert run(site, f"sacctmgr -i add qos much set {words}").rc == 0
    (qos,) = json.loads(run(site, "sacctmgr --json show qos much").stdout)["qos"]
    most = qos["limits"]["max"]
    tres = {
        name: found[0]["count"]
        for name, found in {
            "total": most["tres"]["total"], "mins": most["tres"]["minutes"]["total"],
            "run": most["tres"]["minutes"]["per"]["qos"], "job_mins": most["tres"]["minutes"]["per"]["job"],
            **most["tres"]["per"], "least": qos["limits"]["min"]["tres"]["per"]["job"],
        }.items()
    }  # fmt: skip
    assert tres == {"total": 5, "mins": 6, "run": 7, "user": 12, "account": 13, "job": 14, "node": 15, "job_mins": 16, "least": 17}  # fmt: skip
    assert [most["active_jobs"][name]["number"] for name in ("count", "accruing")] == [1, 2]
    jobs = most["jobs"]
    assert [jobs["count"]["number"], most["wall_clock"]["per"]["qos"]["number"]] == [3, 4]
    assert [jobs["active_jobs"]["per"][name]["number"] for name in ("user", "account")] == [8, 9]
    assert [jobs["per"][name]["number"] for name in ("user", "account")] == [10, 11]
    assert (qos["usage_factor"]["number"], qos["limits"]["grace_time"]) == (0.5, 18)


def test_yaml_has_tagged_nodes() -> None:
    text = run(recorded_site(), "sacctmgr --yaml show user dave").stdout
    assert text.startswith("%YAML 1.1\n--- !!map\n!!str users: !!seq\n- !!map\n  !!str administrator_level: !!seq\n")
    assert text.endswith("!!str errors: !!seq []\n!!str warnings: !!seq []\n...\n\n")


def test_tres_and_the_cluster() -> None:
    site = recorded_site()
    listed = json.loads(run(site, "sacctmgr --json show tres").stdout)["TRES"]
    assert listed[0] == {"type": "cpu", "name": "", "id": 1, "count": 0}
    (cluster,) = json.loads(run(site, "sacctmgr --json show cluster").stdout)["clusters"]
    assert cluster["name"] == site.config.cluster_name
    assert [each["id"] for each in cluster["tres"]] == [each["id"] for each in listed]
    assert {each["type"]: each["count"] for each in cluster["tres"]}["node"] == len(site.nodes())


def test_what_is_deleted_is_not_kept_so_that_withdeleted_shows_what_there_is() -> None:
    site = recorded_site()
    shown = run(site, "sacctmgr -n show qos withdeleted format=name")
    assert shown.rc == 0
    assert shown.stdout == run(site, "sacctmgr -n show qos format=name").stdout
