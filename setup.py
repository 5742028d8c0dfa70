"""What pyproject.toml cannot say: grammars become package data, one trampoline every Slurm command, share/ share/."""

from __future__ import annotations

import pathlib

from setuptools import find_packages, setup  # isort: split

from distutils.command.build_scripts import build_scripts  # setuptools provides it, so it comes after it

TRAMPOLINE = "slurmbridge/cli/trampoline.sh"
COMMANDS = (
    "sbatch srun salloc sattach scancel squeue sinfo scontrol sacct sacctmgr sshare sprio sreport sstat sbcast sdiag seff "
    "scrontab strigger"
).split()


class BuildTrampolines(build_scripts):
    """Writes the trampoline under each command's name."""

    def run(self) -> None:
        folder = pathlib.Path(self.build_dir)
        folder.mkdir(parents=True, exist_ok=True)
        text = pathlib.Path(TRAMPOLINE).read_bytes()
        for name in COMMANDS:
            (folder / name).write_bytes(text)
            (folder / name).chmod(0o755)

    def get_source_files(self) -> list[str]:
        return [TRAMPOLINE]


def shared() -> list[tuple[str, list[str]]]:
    """Man pages and shell completion, to the same folders below the prefix."""
    folders = sorted({str(path.parent) for path in pathlib.Path("share").rglob("*") if path.is_file()})
    return [(name, sorted(map(str, pathlib.Path(name).iterdir()))) for name in folders]


setup(
    packages=[*find_packages(include=["slurmbridge", "slurmbridge.*"]), "slurmbridge._grammar"],
    package_dir={"slurmbridge._grammar": "grammar"},
    package_data={
        "slurmbridge._grammar": ["*.lark"],
        "slurmbridge": ["py.typed"],
        "slurmbridge.store": ["migrations/**/*"],
    },
    include_package_data=False,
    scripts=[TRAMPOLINE],
    data_files=shared(),
    cmdclass={"build_scripts": BuildTrampolines},
)
