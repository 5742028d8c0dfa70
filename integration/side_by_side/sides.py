"""Two sides that get the same scripts: a real Slurm in its private root, and this tree's daemon on that site's own files."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compare import Answer, read
from scripts import Case

USERS = {"alice": 1001, "bob": 1002, "carol": 1003, "dave": 1004, "slurm": 64030}
ACCOUNTS = """add cluster oracle
add qos high set priority=1000 maxjobspu=2 maxtresperuser=cpu=16
add qos long set priority=10 maxwall=14-0
add qos preempt set priority=2000 preempt=normal
add qos tiny set priority=5 maxtresperjob=cpu=2 maxwall=00:10:00 flags=DenyOnLimit
add account admin description=admin organization=root
add account research description=research organization=lab
add account physics parent=research description=physics organization=lab
add account ml parent=research description=ml organization=lab fairshare=4
add user root account=admin
add user alice account=physics defaultaccount=physics
add user alice account=ml
add user bob account=ml defaultaccount=ml
add user dave account=admin adminlevel=operator
modify account root set qos+=normal,high,long,preempt,tiny where cluster=oracle
modify user bob set qos=normal,tiny where account=ml"""
# Runs in the home of the user with the cases on standard input, answers with what was printed.
DRIVER = r"""
rm -rf side-by-side && mkdir side-by-side && cd side-by-side && tar -xf - && mkdir out sub && cd work || exit 1
while IFS=$'\t' read -r name line; do
    eval "$line" >../out/$name.out 2>../out/$name.err </dev/null
    echo $? >../out/$name.rc
    id=$(grep -o '[0-9][0-9]*' ../out/$name.out | head -n 1)
    if [ -z "$id" ] && [ "$(cat ../out/$name.rc)" = 0 ]; then # --quiet
        id=$(squeue -h -u "$USER" -o %A | sort -n | tail -n 1)
    fi
    [ -n "$id" ] || continue
    scontrol -o -d show job "$id" >../out/$name.job 2>&1
    scancel -Q "$id"
done <../lines
tar -C ../out -cf - .
"""


def bundle(cases: Sequence[Case]) -> bytes:
    """A tar archive of the scripts and the lines that submit them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        lines = "".join(f"{case.name}\t{case.line}\n" for case in cases)
        for name, text, mode in [
            ("lines", lines, 0o644),
            *((f"work/{case.name}.sh", case.script, 0o755) for case in cases),
        ]:
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def unbundle(data: bytes, cases: Sequence[Case]) -> dict[str, Answer]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:

        def text(name: str) -> str:
            try:
                member = archive.extractfile(f"./{name}")
            except KeyError:
                return ""
            return member.read().decode(errors="replace") if member else ""

        return {
            case.name: read(*(text(f"{case.name}.{kind}") for kind in ("rc", "out", "err", "job"))) for case in cases
        }


class RealSide:
    """folder: has real_slurm.sh, which is running."""

    def __init__(self, folder: Path) -> None:
        self.script = str(folder / "real_slurm.sh")

    def file(self, path: str) -> str:
        return subprocess.run(
            [self.script, "exec", "-u", "root", "--", "cat", path], capture_output=True, text=True, check=True
        ).stdout

    def submit(self, cases: Sequence[Case]) -> dict[str, Answer]:
        words = [self.script, "exec", "-u", "alice", "--", "bash", "-c", DRIVER]
        done = subprocess.run(words, input=bundle(cases), capture_output=True, check=True)
        return unbundle(done.stdout, cases)


class OurSide:
    """A daemon of root in name spaces of its own that looks like the real site's login host."""

    def __init__(self, prefix: Path, conf: str, gres: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="side-by-side-", dir="/tmp"))
        self.folder.chmod(0o755)
        etc, self.home = self.folder / "etc", self.folder / "home"
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)  # single files would lose their mounts when replaced
        self.home.mkdir()
        conf_folder = self.folder / "conf"
        conf_folder.mkdir()
        (conf_folder / "slurm.conf").write_text(conf + "\nFirstJobId=30000\n")  # numbers that are nothing else
        (conf_folder / "gres.conf").write_text(gres)
        ours = set(USERS) | {str(uid) for uid in USERS.values()}
        passwd, group = (
            "".join(
                line
                for line in Path(f"/etc/{name}").read_text().splitlines(keepends=True)
                if ours.isdisjoint(line.split(":")[:3])
            )
            for name in ("passwd", "group")
        )
        for user, uid in USERS.items():
            passwd += f"{user}:x:{uid}:{uid}:{user}:/home/{user}:/bin/bash\n"
            group += f"{user}:x:{uid}:\n"
            (self.home / user).mkdir()
            shutil.chown(self.home / user, uid, uid)
        (etc / "passwd").write_text(passwd)
        (etc / "group").write_text(group)
        mounts = " && ".join(
            f"mount --bind {self.folder}/{name} {place}" for name, place in (("etc", "/etc"), ("home", "/home"))
        )
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", f"hostname ctl && {mounts} && echo ready && exec sleep infinity"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.path = f"{prefix}/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        self.state = self.folder / "state"
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "ready\n"
        self._good(
            "root",
            "slurmbridge",
            "up",
            "--slurm-conf",
            str(conf_folder / "slurm.conf"),
            "--state",
            str(self.state),
            "--detach",
        )
        for line in ACCOUNTS.splitlines():
            self._good("root", "sacctmgr", "-i", *line.split())

    def run(self, user: str, *argv: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        enter = ["nsenter", "--target", str(self.holder.pid), "--mount", "--uts"]
        home = "/root" if user == "root" else f"/home/{user}"
        if user != "root":
            enter += ["setpriv", f"--reuid={USERS[user]}", f"--regid={USERS[user]}", "--clear-groups"]
        env = {
            "PATH": self.path,
            "HOME": home,
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/bash",
            "SLURMBRIDGE_ADDR": f"unix:{self.state}/socket",
        }
        inside = ["sh", "-c", 'cd "$1"; shift; exec "$@"', "sh", home, *argv]
        return subprocess.run([*enter, *inside], env=env, input=data, capture_output=True)

    def _good(self, user: str, *argv: str) -> None:
        answer = self.run(user, *argv)
        assert answer.returncode == 0, (argv, answer.stdout, answer.stderr)

    def submit(self, cases: Sequence[Case]) -> dict[str, Answer]:
        answer = self.run("alice", "bash", "-c", DRIVER, data=bundle(cases))
        assert answer.returncode == 0, answer.stderr
        return unbundle(answer.stdout, cases)

    def close(self) -> None:
        self.run("root", "slurmbridge", "down", "--state", str(self.state), "--jobs")
        self.holder.kill()
        self.holder.wait()
        assert self.holder.stdout is not None
        self.holder.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
