"""The words that the lines are made of: values of options, filters, fields, verbs, and scripts."""

from __future__ import annotations

from typing import Any

GPU = ("-p", "gpu")


def _each(option: str, values: str, *more: str) -> list[tuple[str, ...]]:
    return [(f"{option}={_word(value)}", *more) for value in values.split()]


def _word(text: str) -> str:
    """`¬` stands for a blank, `~` for nothing at all."""
    return text.replace("¬", " ").replace("~", "")


def _lines(text: str) -> list[tuple[str, ...]]:
    """One set of options per line, words apart by blanks."""
    return [tuple(_word(word) for word in line.split()) for line in text.split("\n") if line.strip()]


SUBMISSIONS: dict[str, list[tuple[str, ...]]] = {
    "time": _each(
        "--time",
        "5 1:30 01:02:03 1-02 1-02:03 1-02:03:04 infinite unlimited -2 0:00 00:00:00 0:59 0:61 59 60 61 1440 1441 100000 99999999 "
        "4294967295 4294967296 1:60 1:60:60 25:61:00 1-25 1-24:00 0-1 0-0 0-0:0:1 365-0 1-2-3 1-2:3:4:5 :5 5: :: abc 5m 5min 1h 1d +5 5.0 1,5 1e3 0x10 INF Infinite "
        "unlimit infinit 10:0 007 1-0:0:30 2:3:59 1-:5 --5",
    ),
    "timemin": [(f"--time-min={v}", "--time=10") for v in "1 10 11 0 infinite abc 1:00 0:01 1-0 -1".split()]
    + [("--time-min=5",), ("--time-min=abc",)],
    "begin": _each(
        "--begin",
        "now+1 now+60 now+1minute now+1min now+5min now+1hour now+2hours now+1day now+2days now+2weeks now+1second now+1sec now+1s now+1m now+1h "
        "now+1month now+1year now+x now+ now- now++1 now+1.5hours noon teatime elevenses tomorrow Tomorrow NOW MIDNIGHT 00:00 23:59 23:59:59 24:00 12:60 12:00:60 "
        "12:00am 12:00pm 12am 12pm 0am 13pm 1:30PM 1:30am 01:30 1:30 9 99 2030-01 2030-1-2 2030-13-01 2030-02-30 2030-01-20T 2030-01-20T25:00 2030-01-20T12 2030-01-20T12:34:56Z "
        "2030-01-20-12:34 30-01-20 1/20/30 01/20 13/20 1/32 01.20 012030 01202030 010120 0132 20300120 2030/01/20 1.1.30 today+1hour tomorrow+1hour midnight+1 noon+60 "
        "teatime+1 1999999999 99999999999 0 -1 abc uptime monday jan ~ now+7days now+90minutes now+4294967295 now-1 now-5minutes now-1day 2031-12-31T23:59:59 12/31/31",
    ),
    "deadline": [
        (f"--deadline={v}", *rest)
        for v in "now+2hours now+10minutes 2030-01-20 tomorrow now-1hour now+5 noon abc 2020-01-01 now+30minutes".split()
        for rest in (("--time=5",), ("--time=60",), ())
    ]
    + [
        ("--deadline=now+1hour", "--time-min=5"),
        ("--deadline=now+1hour", "--begin=now+2hours", "--time=1"),
        ("--deadline=now+1hour", "-p", "gpu"),
        ("--deadline=now+1day", "--begin=now+1hour", "--time=5"),
    ],
    "mem": _each(
        "--mem",
        "0 1 1M 1K 1k 1g 1T 1t 1MB 1KB 1TB 1Gb 1gB 1Mb 1GiB 1023K 1025K 500M 16G 15G 17G 64000 64001 512000 512001 1P 1.5G -1 -1G 0G 0M +5 1M1 M 1,000 99999999 4294967295 18446744073709551615 1_000 0x10 1GG 1BB 1B 007 2000MB",
    )
    + [
        ("--mem", "100M"),
        ("--mem=1G", "-N2"),
        ("--mem=1G", "-p", "gpu"),
        ("--mem=1G", "--exclusive"),
        ("--mem=0", "--exclusive"),
    ],
    "mempercpu": [
        (f"--mem-per-cpu={v}", *rest)
        for v in "1 100 1M 2G 2000 2001 16G 16001 64001 1T -1 1K 1.5G ~ 10x 0".split()
        for rest in ((), ("-n2",), ("-c4",), ("-n3", "-N2"))
    ],
    "mempergpu": [
        (f"--mem-per-gpu={v}", *rest)
        for v in "1G 100 1 0 16000 64001 -1 1K 1.5".split()
        for rest in (
            ("-p", "gpu", "--gpus=1"),
            ("-p", "gpu", "--gpus=2", "-N2"),
            ("-p", "gpu"),
            ("-p", "gpu", "--gres=gpu:1"),
        )
    ],
    "memmix": _lines(
        "--mem=1G --mem-per-cpu=0\n--mem=0 --mem-per-cpu=100\n--mem=1G --mem-per-gpu=100 --gpus=1 -p gpu\n--mem-per-cpu=100 --mem-per-gpu=100 --gpus=1 -p gpu\n"
        "--mem-per-gpu=100 --mem=1G -p gpu --gpus=1\n--mem=100 --mem=200\n--mem-per-cpu=1 --mem-per-cpu=2\n--mem-bind=local\n--mem-bind=none\n--mem-bind=bad\n--mem-bind=help\n--mem-bind=rank\n--mem-bind=map_mem:0\n--mem-bind=mask_mem:1\n--mem-bind=prefer\n--mem-bind=verbose,local\n--mem-bind=sort\n--mem-bind=local,prefer"
    ),
    "tmp": _each("--tmp", "0 1 1K 1M 1T 100 1000 1001 -1 1.5G 10GB ~ 1P abc"),
    "array": _each(
        "--array",
        "1 0 0-3 1-3 1,3,5 1-5:2 1-5:2%1 1,2,3%2 1-3%0 0-0 5 7-7 1-1:1 20000 20001 0-20001 1-20000 -1 -1-3 abc 1,abc 1--3 1-3-5 1-3: 1-3% %2 :2 1-3%x 1-3%2%3 1,,3 ,1 "
        "1-3,2 1,1 1-3,1-3 [1,2,3] [1-3]%2 [1-3%2] [1-5:2] [1 1] 1.5 0x3 +1 00-02 1-3,10-12,20 0-9:3,20 1-10000:1000 1-4294967295 1-100%100 1-100%200 1-3%1000 ¬1-3 3-3:3 100-200:50%7 2-10:2,1-9:2",
    )
    + [
        ("-a", "1-3"),
        ("-a1-2",),
        ("-a", "1-3", "-n2"),
        ("-a", "0-1", "-J", "arr"),
        ("-a", "0-1", "-o", "%A-%a.o"),
        ("-a", "0-1", "--parsable"),
        ("--array=1-2", "--array=3"),
        ("-a", "1", "-d", "singleton"),
        ("-a", "0-5", "-N2", "-t", "3"),
        ("-a", "1-2", "--gres=gpu:1", "-p", "gpu"),
        ("-a", "1-2", "--begin=now+1hour"),
        ("-a", "1-2", "--nice=5"),
    ],
    "dep": [
        (f"--dependency={v}",)
        for v in (
            "{J:dep} {J:dep},{J:deparr} afterany:{J:dep} afterany:{J:dep}:{J:deparr} aftercorr:{J:deparr} aftercorr:{J:dep} singleton SINGLETON Singleton after:{J:dep}+0 after:{J:dep}+1:{J:deparr}+2 "
            "afternotok:{J:deparr} afterok:{J:deparr}_1 afterok:{J:deparr}_9 afterok:{J:deparr}_* after:{J:deparr}_[1-2] afterok:{J:dep},singleton singleton,afterok:{J:dep} afterok:{J:dep}?singleton "
            "none None ~ , afterok:999999 afterok:0 afterok:-1 afterok:{J:dep}:999999 afterok:{J:dep}: afterok:{J:dep}, afterok::{J:dep} afterok {J:dep}: foo:{J:dep} afterokk:{J:dep} after:{J:dep}+abc after:{J:dep}+-1 "
            "afterok:{J:dep},afterok:{J:dep} afterok:{J:dep}:{J:dep} AfterAny:{J:dep} afterany:{J:dep}(unfulfilled) expand:999999 afterburstbuffer:999999 afterok:{J:dep},,afterany:{J:deparr} afterok:{J:dep}??afterany:{J:deparr} "
            "afterok:{J:dep}_1 after:{J:dep}+5:{J:deparr} afterany:{J:dep}_ singleton:{J:dep} afterany:{J:dep}?afternotok:{J:deparr}?after:{J:dep} afterok:{J:dep}+1h 5:6 after:{J:dep}+99999 remote"
        ).split()
    ]
    + [("-d", "afterok:{J:dep}", f"--kill-on-invalid-dep={v}") for v in "yes no YES No 1 y".split()]
    + [
        ("--kill-on-invalid-dep=yes",),
        ("--kill-on-invalid-dep=no",),
        ("-dafterok:{J:dep}",),
        ("-d", "singleton", "-J", "x"),
    ],
    "nodes": [
        (f"-N{v}",)
        for v in "3 4 5 7 9 1-1 3-1 2-9 1-4 -1 1k 1m 1.5 0-0 ~ 1- -2 2:3 1,2 1,3-4 1-3:2 4294967295 2-4:0 1-5:2,6 99999 0x2 +1 01 x-2 2-x 1--2 9-".split()
    ]
    + _each("--nodes", "1 2 1-2 abc 2-3 1,2,4 1-4:3")
    + [
        ("-N", "2"),
        ("-N2", "-N1"),
        ("-N2", "-n1"),
        ("-N1-2", "-n4"),
        ("-N2", "-n5"),
        ("-N2", "-w", "n1"),
        ("-N1", "-w", "n[1-2]"),
        ("-N3", "-w", "n[1-2]"),
        ("-N2", "-x", "n[1-3]"),
        ("-N2", "-p", "small"),
        ("-N3", "-p", "gpu"),
        ("-N2", "-p", "bench"),
        ("-N2", "-c4"),
        ("-N2", "--exclusive"),
    ],
    "layout": _lines(
        "\n".join(
            [
                *(f"-n{v}" for v in "1 2 3 7 8 9 16 32 33 100 513 -1 ~ 1.5 4294967295 +2 02 0x2".split()),
                *(f"-c{v}" for v in "1 3 4 8 16 17 0 -1 abc 1k 1.5 65535 65536 512".split()),
                "--ntasks=4",
                "--ntasks=abc",
                "--cpus-per-task=4",
                "--cpus-per-task=abc",
                "--cpus-per-task=0",
                "-n2 -c3",
                "-n8 -c2 -N2",
                "-n4 --ntasks-per-node=2",
                "--ntasks-per-node=2",
                "--ntasks-per-node=4 -N2",
                "--ntasks-per-node=9",
                "--ntasks-per-node=-1",
                "--ntasks-per-node=abc",
                "--tasks-per-node=3",
                "-n5 --ntasks-per-node=2",
                "-n9 --ntasks-per-node=4 -N2",
                "--ntasks-per-core=1",
                "--ntasks-per-core=2",
                "--ntasks-per-core=0",
                "--ntasks-per-core=-1",
                "--ntasks-per-core=abc",
                "--ntasks-per-socket=1",
                "--ntasks-per-socket=2 -n4",
                "--ntasks-per-socket=0",
                "--ntasks-per-socket=abc",
                "--ntasks-per-tres=1",
                "--ntasks-per-gpu=1",
                "--cores-per-socket=4",
                "--cores-per-socket=5",
                "--cores-per-socket=0",
                "--cores-per-socket=abc",
                "--cores-per-socket=-1",
                "--sockets-per-node=1",
                "--sockets-per-node=3",
                "--sockets-per-node=0",
                "--sockets-per-node=abc",
                "--threads-per-core=1",
                "--threads-per-core=0",
                "--threads-per-core=abc",
                "-B 1",
                "-B 1:2",
                "-B 2:4:1",
                "-B 2:4:2",
                "-B *",
                "-B *:2",
                "-B *:*:1",
                "-B 1:2:3:4",
                "-B ~",
                "-B 0",
                "-B -1",
                "-B 1-2",
                "-B abc",
                "-B 2:",
                "--extra-node-info=2:4",
                "--extra-node-info=2:4:1 -n2",
                "--hint=compute_bound",
                "--hint=multithread",
                "--hint=bad",
                "--hint=nomultithread --threads-per-core=1",
                "--hint=compute_bound --ntasks-per-core=1",
                "--hint=memory_bound -n4",
                "--hint=none",
                "--hint=~",
                "--hint=COMPUTE_BOUND",
                *(
                    f"-m {v}"
                    for v in "block cyclic arbitrary plane=4 plane=0 plane=x plane= plane:2 * block:block block:cyclic cyclic:block cyclic:cyclic block:fcyclic block:* *:* *:cyclic *:*:* cyclic:*:block block:block:block:block bad block:bad block:block:bad Block CYCLIC block,Pack cyclic,NoPack Pack NoPack block:cyclic,Pack block,bad arbitrary:block ~ unknown block: :block help".split()
                ),
                "-m arbitrary -w n1,n2",
                "-m cyclic -N2 -n4",
                "-m plane=2 -N2 -n4",
                "--distribution=cyclic",
                "--mincpus=2",
                "--mincpus=0",
                "--mincpus=-1",
                "--mincpus=abc",
                "--mincpus=9",
                "--mincpus=4 -n2",
                "--contiguous",
                "--contiguous -N2",
                "-O",
                "--overcommit -n20",
                "-O -n20 -N2",
                "-O -c2",
                "-S 0",
                "-S 2",
                "-S 9",
                "-S -1",
                "-S abc",
                "--core-spec=1",
                "--core-spec=0",
                "--core-spec=abc",
                "--thread-spec=2",
                "--thread-spec=0",
                "--thread-spec=abc",
                "-S 1 --thread-spec=1",
                "--exclusive",
                "--exclusive=yes",
                "--exclusive=no",
                "--exclusive=topo",
                "--exclusive=YES",
                "--exclusive=User",
                "--exclusive=~",
                "--exclusive -n2",
                "--exclusive -N2",
                "--exclusive -s",
                "-s --exclusive",
                "--exclusive=user -s",
                "-s -N2",
                "-s -n2",
                "--use-min-nodes",
                "--use-min-nodes -N1-3 -n4",
                "--spread-job",
                "--spread-job -N2-4 -n4",
                "--spread-job --use-min-nodes",
                "--switches=1",
                "--switches=2@5",
                "--switches=1@1-0",
                "--switches=0",
                "--switches=-1",
                "--switches=1@",
                "--switches=1@abc",
                "--switches=@5",
                "--switches=1@60:00",
                "--switches=1@1:00:00",
                "--switches=~",
                *(
                    f"-w {v}"
                    for v in "n2 n[1-2] n1,n2 n1,n1 n[1-2],g1 nosuch n[1-9] n[3-1] ~ , n1, [n1] n[1 n1 n01 N1 b1 all ALL n[1-2]¬n3 ctl localhost ./nodes.txt ./nofile /etc/hostname".split()
                ),
                "-w n1 -n2",
                "-w n[1-2] -n1",
                "-w n[1-4] -N2",
                "-w g1 -p gpu",
                "-w n3 -p small",
                "--nodelist=n1",
                "--nodelist=n[1-2]",
                *(f"-x {v}" for v in "n1 n[1-2] n1,n2 n[1-4] nosuch n[1 ~ g1 n[1-9] ./nofile N1".split()),
                "--exclude=n1",
                "-x n1 -w n2",
                "-x n[1-4] -N1",
                "-w n[1-2] -x n2",
                "--segment=2",
                "--segment=0",
                "--segment=-1",
                "--segment=abc",
                "--segment=2 -N4",
                "--consolidate-segments",
                "--consolidate-segments --segment=1 -N2",
                "--spread-segments",
                "--spread-segments --segment=1 -N2",
                "--no-kill=on",
                "--no-kill=bad",
                "--no-kill=",
                "--reboot",
                "--resv-ports",
                "--resv-ports=0",
                "--resv-ports=abc",
                "--delay-boot=5",
                "--delay-boot=abc",
                "--delay-boot=0",
                "--delay-boot=1:30",
                "--nodefile=./nofile",
                "-F nofile",
            ]
        )
    ),
    "gres": [
        (*GPU, *options)
        for options in _lines(
            "\n".join(
                [
                    *(
                        f"--gres={v}"
                        for v in "gpu gpu:1 gpu:2 gpu:8 gpu:0 gpu:-1 gpu: gpu:a100:2 gpu:a100:0 gpu:a100:5 gpu:a100:4 gpu:A100:1 gpu:a100:x gpu:a100:1,gpu:a100:1 gpu:1,gpu:1 gpu:1,gpu:a100:1 gpu:a100:1,gpu:v100:1 gres/gpu:1 gres:gpu:1 gpu:a100:1:2 gpu:1M gpu:1m gpu:1K GPU:1 Gpu:2 none none,gpu:1 NONE help ~ , foo foo:bar:1 gpu:1(S:0) gpu=a100:1 gpu:a100=1 gpu/a100:1 gpu:1:1 craynetwork:1 license:1 mps:10 shard:1 nic:1 gpu:1,none gpu:1, gpu:1;gpu:1 gpu:4294967295".split()
                    ),
                    *(
                        f"--gpus={v}"
                        for v in "2 3 4 5 9 16 a100:1 a100:2 a100 a100:0 v100:1 a100:x 1,2 gpu:1 1k 1M ~ a100:9 1.5 a100:1,v100:1 a100:1, +1 01 A100:1".split()
                    ),
                    "-G 1",
                    "-G a100:2",
                    "-Ga100:1",
                    "-G0",
                    *(f"--gpus-per-node={v}" for v in "1 3 4 5 0 -1 abc a100:1 a100:2 v100:1 a100:0 ~".split()),
                    "--gpus-per-node=1 -N2",
                    "--gpus-per-node=2 -N2 -n4",
                    *(f"--gpus-per-task={v}" for v in "1 2 4 5 0 a100:1 -1 abc v100:1".split()),
                    "--gpus-per-task=1 -n2",
                    "--gpus-per-task=1 -n9",
                    "--gpus-per-task=1 -n8",
                    "--gpus-per-task=2 -n2 -N2",
                    "--gpus-per-task=a100:1 -n3",
                    "--gpus-per-task=1 -n2 --gpus=2",
                    "--gpus-per-task=1 -n2 --gpus=4",
                    "--gpus-per-task=1 --ntasks-per-node=2 -N2",
                    *(f"--gpus-per-socket={v}" for v in "1 2 0 abc a100:1".split()),
                    "--gpus-per-socket=1 --sockets-per-node=2",
                    "--gpus-per-socket=2 --sockets-per-node=2 -N1",
                    "--gpus-per-socket=a100:2 --sockets-per-node=1",
                    *(f"--cpus-per-gpu={v} --gpus=1" for v in "1 2 4 16 17 0 -1 abc".split()),
                    "--cpus-per-gpu=2",
                    "--cpus-per-gpu=2 --gpus=2",
                    "--cpus-per-gpu=2 -c2 --gpus=1",
                    "--cpus-per-gpu=2 --gres=gpu:2",
                    "--cpus-per-gpu=2 --gpus-per-node=2 -N2",
                    "-c2 --cpus-per-gpu=2 --gpus=1",
                    "--cpus-per-gpu=4 --gpus-per-task=1 -n2",
                    *(f"--ntasks-per-gpu={v} --gpus=2" for v in "1 3 0 -1 abc".split()),
                    "--ntasks-per-gpu=1",
                    "--ntasks-per-gpu=1 -n2",
                    "--ntasks-per-gpu=2 --gpus-per-node=1",
                    "--ntasks-per-gpu=2 --gpus-per-node=1 -N2",
                    "--ntasks-per-gpu=2 --gpus=2 -n4",
                    "--ntasks-per-gpu=2 --gpus=2 -n5",
                    "--ntasks-per-gpu=1 --gpus-per-task=1 -n2",
                    "--ntasks-per-gpu=1 --gres=gpu:2",
                    "--ntasks-per-gpu=2 --ntasks-per-node=2 --gpus=1",
                    "--ntasks-per-tres=2 --gpus=1",
                    *(
                        f"--gpu-bind={v} --gpus=1"
                        for v in "none map_gpu:0 map:0 mask_gpu:0x1 mask:0x1 per_task:1 per_task:0 per_task single:1 single:2 single verbose,closest verbose v,closest map: bad help ~ closest,verbose map_gpu:0,1 per_task:x".split()
                    ),
                    "--gpu-bind=closest",
                    *(
                        f"--gpu-freq={v} --gpus=1"
                        for v in "low medium highm1 memory=high low,memory=high 1400 verbose verbose,low memory=900 low,verbose bad,low ~ 0 memory=bad".split()
                    ),
                    "--gpu-freq=low",
                    *(
                        f"--tres-per-task={v} -n2"
                        for v in "gres/gpu:1 gres/gpu=1 gres/gpu:a100:1 gres/gpu:a100=1 gpu:1 cpu=1 cpu=4,gres/gpu=1 cpu=0 cpu:abc cpu mem=100 node=1 license/matlab:1 license/matlab=1 license/foo=1 gres/foo:1 bb/x=1 billing=1 ~ cpu=2,cpu=2 gres/gpu=0 energy=1".split()
                    ),
                    "--tres-per-task=cpu=2 -c2",
                    "--tres-per-task=cpu=2 -c3",
                    "-c3 --tres-per-task=cpu=2",
                    "--tres-per-task=gres/gpu=1 --gpus-per-task=2",
                    "--tres-per-task=gres/gpu=1",
                    "--tres-per-task=gres/gpu=1 --gpus=2",
                    *(
                        f"--gres-flags={v} --gpus=1"
                        for v in "multiple-tasks-per-sharing,enforce-binding enforce-binding,one-task-per-sharing disable-binding,enforce-binding bad ~ allow-task-sharing,bad multiple-tasks-per-sharing ENFORCE-BINDING enforce enforce_binding".split()
                    ),
                    "--gres-flags=enforce-binding",
                    *(
                        f"--tres-bind={v} --gpus=1"
                        for v in "gres/gpu:none gres/gpu:per_task:1 gres/gpu:single:1 gres/gpu:verbose,closest gpu:closest gres/foo:closest gres/gpu gres/gpu:bad gres/gpu:map:0 gres/gpu:mask:1 ~ gres/gpu:closest+gres/gpu:none".split()
                    ),
                    "--gpu-bind=closest --tres-bind=gres/gpu:none --gpus=1",
                    "--gpus=2 -N2",
                    "--gpus=2 -N1",
                    "--gpus=5 -N1",
                    "--gpus=9",
                    "--gpus=8 -N2",
                    "--gpus=1 -N2",
                    "--gpus=3 --gpus-per-node=2 -N2",
                    "--gpus=4 --gpus-per-node=2",
                    "--gres=gpu:1 --gpus=1",
                    "--gres=gpu:1 --gpus-per-node=1",
                    "--gres=gpu:2 --gpus=2",
                    "--gres=gpu:2 -N2",
                    "--gres=gpu:2 -N2 --gpus=4",
                    "--gres=gpu:2 -N2 --gpus=3",
                    "--gpus=2 --gpus=1",
                    "--gpus=2 --gpus-per-task=1",
                    "--gpus=2 --gpus-per-socket=1",
                    "--exclusive --gres=gpu:1",
                    "--exclusive",
                    "--gpus=1 --mem=1G",
                    "--gpus=2 -n4",
                    "--gpus=2 -c4",
                    "--gpus=2 -n1 -c8",
                    "-n4 --gpus-per-node=4 -t 10",
                    "--accel-bind=g",
                ]
            )
        )
    ]
    + _lines(
        "--gres=gpu:1\n--gpus=1\n--gpus-per-node=1\n--gpus-per-task=1\n--gres=gpu:a100:1\n--gres=gpu:0\n--gpus=0\n--gpus-per-task=1 -n2\n--gres=gpu:1 -p debug,gpu\n--gres=gpu:1 -w n1\n--gres=none\n--gpus=1 -p bench\n--gpus=1 -p gpu,bench"
    ),
    "where": _lines(
        "\n".join(
            [
                *(
                    f"-L {v}"
                    for v in "matlab:1 matlab:10 matlab:11 matlab:0 matlab:-1 matlab: matlab:x matlab=3 MATLAB matlab@db matlab@db:1 matlab,ansys matlab|ansys matlab:2|ansys:1 matlab;ansys matlab,foo ~ , matlab, matlab:1,matlab:2 matlab:1:2 ansys:4 ansys:5 foo matlab,ansys|foo matlab*2".split()
                ),
                "--licenses=matlab:2",
                "-L matlab -n2",
                *(
                    f"-C {v}"
                    for v in "cpu avx2 gpu bench rack1 rack2 cpu&avx2&rack1 cpu,avx2 cpu|avx2 gpu|cpu [cpu|gpu] [rack1] [rack1&rack2] cpu* cpu*0 cpu*x cpu*2 cpu*2&avx2 [rack1*2&rack2*1] cpu&gpu cpu&nosuch cpu|nosuch !cpu -cpu (cpu) (cpu cpu) ((cpu)) (cpu|avx2)&rack1 cpu&(avx2|rack1) cpu&avx2|gpu CPU |cpu &cpu cpu| cpu&&avx2 cpu||gpu cpu,,avx2 cpu¬avx2 [cpu [cpu|gpu cpu|gpu] {cpu} cpu@1 cpu: cpu=1 1 none".split()
                ),
                "-C [rack1|rack2] -N2",
                "-C cpu*2 -N1",
                "-C rack1*2 -N4",
                "-C [rack1*1&rack2*1] -N2",
                "--constraint=cpu",
                "-C gpu -p gpu",
                "-C cpu -p gpu",
                *(f"--prefer={v}" for v in "cpu cpu&avx2 cpu|gpu [cpu|gpu] nosuch|cpu ~ cpu* (cpu cpu*2".split()),
                "--prefer=avx2 -C cpu",
                "--prefer=gpu -p gpu",
                *(
                    f"-p {v}"
                    for v in "debug gpu long small bench maint nosuch debug, ,debug debug,debug small,debug debug,gpu long,gpu debug,maint maint,debug restricted,debug debug,restricted DEBUG Debug all gpu,long,small debug_long debug;long".split()
                ),
                "--partition=long",
                "--partition=nosuch",
                "-p small -t 30",
                "-p small -t 31",
                "-p small -N2",
                "-p small -N1",
                "-p small",
                "-p small -w n3",
                "-p gpu -t 1-0",
                "-p gpu -t 1-0:01",
                "-p gpu -t 1441",
                "-p long -t 14-0",
                "-p long -t 14-0:01",
                "-p long -q long",
                "-p long -q long -t 20-0",
                "-p long -q normal",
                "-p long -q preempt",
                "-p debug -q long",
                "-p small,debug -t 60",
                "-p small,long -t 60",
                "-p bench -n512",
                "-p bench -n513",
                "-p bench -N1 -c512",
                "-p bench --mem=512000",
                "-p bench --mem=512001",
                "-p maint -t 5",
                "-p restricted -A admin",
                *(f"-A {v}" for v in "physics ML Physics research root foo ml,physics".split()),
                "--account=ml",
                "--account=nosuch",
                "-A ml -q tiny",
                "-A ml -q high",
                "-A ml -p long",
                *(f"-q {v}" for v in "normal high long preempt High nosuch normal,high".split()),
                "--qos=high",
                "-q high -n16",
                "-q high -n17",
                "-q high -N4 --exclusive",
                "-q long -t 14-0",
                "-q long -t 14-0:1",
                "-q long -p gpu",
                "-q preempt -n32",
                "-q tiny -n2 -t 10",
                "-q tiny -t 10",
                "-q tiny -t 11",
                "-q tiny -n3",
                "-q tiny -N2",
                "--reservation=~",
                "--reservation=a,b",
                "--wckey=~",
                "--wckey=*x",
                "-M oracle",
                "-M nosuch",
                "-M oracle,nosuch",
                "-M all",
                "-M ~",
                "--clusters=oracle",
                "--cluster=oracle",
                "--cluster-constraint=x",
                "--cluster-constraint=!x",
                "--gid=alice",
                "--gid=bob",
                "--gid=nosuch",
                "--gid=99999",
                "--gid=-1",
                "--gid=1001",
                "--uid=alice",
                "--uid=bob",
                "--uid=1001",
                "--uid=nosuch",
                "--uid=0",
                "--network=~",
                "--network=a,b",
                "--mcs-label=x",
                "--mcs-label=~",
                "--container-id=x",
                "--container-type=x",
                "--bb=x",
                "--bb=capacity=1G",
                "--bbf=nofile",
                "--bbf=./nofile",
                "--context=x",
                "--power=level",
                "--extra=x",
                "--extra=~",
            ]
        )
    )
    + [("-p", "restricted", "-A", "ml")],
    "opt": _lines(
        "\n".join(
            [
                "-J ~",
                "-J x",
                "-J a/b/c",
                "-J a%j",
                "-J -x",
                "-J 1234",
                "-J xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "-J é",
                '-J a"b',
                "-J a'b",
                "-J a,b",
                "-J a=b",
                "-J $x",
                "-J #x",
                "--job-name=a¬b",
                "--job-name x",
                "--comment=a¬b",
                "--comment=x",
                "--comment=a=b",
                "--comment=~",
                '--comment="',
                "--comment=ü",
                "--comment ¬x¬",
                *(
                    f"--mail-type={v}"
                    for v in "BEGIN END FAIL REQUEUE INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_50 TIME_LIMIT_80 TIME_LIMIT_90 ARRAY_TASKS ALL,ARRAY_TASKS begin End bad BEGIN,bad NONE,END END,NONE BEGIN,FAIL,END ~ , BEGIN, ALL,END TIME_LIMIT_40 NONE,NONE".split()
                ),
                "--mail-type=END --mail-user=bob",
                "--mail-user=~",
                "--mail-user=alice",
                "--mail-user=a,b",
                "--mail-user=a_b",
                "--mail-type=ALL --mail-type=END",
                *(
                    f"--nice={v}"
                    for v in "0 1 -1 10 +5 1.5 2147483645 2147483646 -2147483645 99999999999 ~ abc1 5x 1e3".split()
                ),
                "--nice -n2",
                "--nice=5 --nice=6",
                *(f"--priority={v}" for v in "0 1 100 TOP top 4294967294 4294967295 -1 ~ 1.5 TOPX".split()),
                *(f"--open-mode={v}" for v in "t append,truncate APPEND Truncate ap tr ~ x".split()),
                *(
                    f"-o {v}"
                    for v in "o.txt %j %J %A %a %b %N %n %s %t %u %x %% %q %5j %05j %10x %0j /dev/null none out/%j.txt ../x ./x a\\%j %%j %j%j \\%j %_j %-5j %99j a_b".split()
                ),
                "--output=o.txt",
                "--error=e.txt",
                "-e e.txt",
                "-e %j.e",
                "-e ~",
                "-o o -e e",
                "-o o -e o.%j",
                "--output=~",
                "-a 1-2 -o %A_%a_%j",
                "-a 1-2 -e %A_%a",
                "-a 1-2 -o %j",
                "-i /dev/null",
                "-i none",
                "-i ~",
                "-i %j.in",
                "-i /etc/passwd",
                "--input=in.txt",
                "-D /",
                "-D .",
                "-D ..",
                "-D ./sub",
                "-D ~",
                "-D /home/alice/w/",
                "-D /tmp/",
                "-D /tmp//x",
                "-D ../w",
                "-D %j",
                "--chdir=/tmp",
                "--chdir=sub/dir",
                "-D /tmp -o o.txt",
                "-D /tmp -o /var/tmp/o.txt",
                *(
                    f"--export={v}"
                    for v in "ALL NONE all none nil FOO ~ FOO,BAR ALL,X=1 NONE,X=1 NIL,X=1 X= =x X=a_b SLURM_X=1 X=1,ALL".split()
                ),
                "--export-file=nofile",
                "--export-file=./nofile",
                "--export-file=~",
                "--export-file=3",
                "--get-user-env",
                "--get-user-env=10",
                "--get-user-env=10L",
                "--get-user-env=L",
                *(
                    f"--signal={v}"
                    for v in "10 USR1@30 B:10 R:USR1 R:10@5 RB:USR1 BR:10 USR2@0 KILL INT@1 SIGTERM@10 usr1 sigusr1 B:USR1 B: @5 10@ USR1@-1 USR1@abc 0 64 65 99 -1 ~ USR1@65535 USR1@65536 X:USR1 b:USR1 B:R:USR1 HUP STOP CONT URG WINCH TSTP QUIT ABRT ALRM CHLD PIPE SEGV XCPU RTMIN EXIT USR1@1:00".split()
                ),
                *(
                    f"--acctg-freq={v}"
                    for v in "0 30 task=0 energy=30 network=30 filesystem=30 task=10,energy=20 bad=1 task=abc -1 abc ~ task= task=60,filesystem=bad 5,task=6 10s".split()
                ),
                *(
                    f"--profile={v}"
                    for v in "All None all none Energy Task Lustre Network Filesystem Energy,Task task,bad ~ All,Task None,Task Energy,None x,Task".split()
                ),
                *(
                    f"--propagate={v}"
                    for v in "ALL all none STACK CORE CPU FSIZE DATA RSS NPROC NOFILE MEMLOCK AS stack STACK,BAD NONE,STACK ALL,STACK ~ RLIMIT_STACK STACK, CPU,CORE".split()
                ),
                "--wait-all-nodes=0",
                "--wait-all-nodes=1",
                "--wait-all-nodes=-1",
                "--wait-all-nodes=abc",
                "--wait-all-nodes=~",
                "-vv",
                "-vvv",
                "--verbose",
                "--quiet",
                "-Qv",
                "--test-only -N9",
                "--test-only -p nosuch",
                "--test-only -p maint",
                "--test-only -n4 -t 5",
                "--test-only -p gpu --gres=gpu:1",
                "--test-only -a 1-3",
                "--test-only -A nosuch",
                "--test-only --mem=999999",
                "--requeue",
                "--no-requeue",
                "--requeue --no-requeue",
                "--no-requeue --requeue",
                "--requeue=expedite",
                "--requeue=bad",
                "--oom-kill-step=0",
                "--oom-kill-step=1",
                "--oom-kill-step=-1",
                "--oom-kill-step=abc",
                "--oom-kill-step=~",
                "--resv-ports=1",
                "--resv-ports=-1",
                "--x11",
                "--x11=all",
                "--x11=batch",
                "--x11=first",
                "--x11=last",
                "--batch=cpu",
                "--batch=nosuch",
                "--batch=cpu|gpu",
                "--batch=~",
                "--batch=cpu&gpu",
                "--cpu-freq=low",
                "--cpu-freq=high",
                "--cpu-freq=medium",
                "--cpu-freq=highm1",
                "--cpu-freq=1000000",
                "--cpu-freq=low-high",
                "--cpu-freq=low-high:Performance",
                "--cpu-freq=Performance",
                "--cpu-freq=PowerSave",
                "--cpu-freq=OnDemand",
                "--cpu-freq=UserSpace",
                "--cpu-freq=Conservative",
                "--cpu-freq=SchedUtil",
                "--cpu-freq=bad",
                "--cpu-freq=~",
                "--cpu-freq=high-low",
                "--cpu-freq=1000-2000:OnDemand",
                "--cpu-freq=performance",
                "-I",
                "-I5",
                "--immediate",
                "--foo",
                "--foo=1",
                "-Z",
                "-Y",
                "-y",
                "-z",
                "-%",
                "--",
                "-",
                "--n",
                "--ntask=2",
                "--ntasks-per=2",
                "--ex",
                "--exc=n1",
                "--pa",
                "--pa=debug",
                "--mem-per=5",
                "--cpus=2",
                "--cpus-per=2",
                "--cpus-per-t=2",
                "--gp=1",
                "--gpu=1",
                "--gres-f=x",
                "--tim=5",
                "--t=5",
                "--tm=5",
                "--ti=5",
                "--job=x",
                "--jo=x",
                "--com=x",
                "--con=cpu",
                "--cont",
                "--contig",
                "--dep=singleton",
                "--q=high",
                "--re",
                "--req",
                "--res=x",
                "--mail=ALL",
                "--mail-t=ALL",
                "--wait=5",
                "--hold",
                "--hold=1",
                "--contiguous=1",
                "--quiet=1",
                "--parsable=1",
                "--overcommit=5",
                "--version=1",
                "-n",
                "-c",
                "-t",
                "-p",
                "-A",
                "-J",
                "--ntasks",
                "--job-name",
                "--partition",
                "--account",
                "--begin",
                "--array",
                "--dependency",
                "--constraint",
                "--gres",
                "--output",
                "-o",
                "-e",
                "-a",
                "-d",
                "-C",
                "-w",
                "-x",
                "-n2N1",
                "-Hn2",
                "-vn2",
                "-n 2",
                "-n=2",
                "-t=5",
                "-p=debug",
                "-N=2",
                "-J=x",
                "-c=2",
                "-A=ml",
                "--ntasks 3",
                "--time 5",
                "--mem 200",
                "-n2 -n3",
                "--time=5 -t 6",
                "-J a -J b",
                "-p debug -p long",
                "--mem-update=50@10",
                "--mem-update=abc",
                "--autocomplete=x",
                "--resources=x",
                "--treewidth=5",
                "--wckey=a",
                "--parsable",
                "--parsable -Q",
                "--ignore-pbs",
                "--usage",
                "--help",
                "-h",
                "-V",
                "--version",
                "-hV",
                "--no-bell",
                "--label",
                "-l",
                "-u",
                "--pty",
                "--mpi=none",
                "--multi-prog",
                "-r1",
                "-T5",
                "-K",
                "-X",
                "-E",
                "--exact",
                "--overlap",
                "--bcast",
                "--jobid=5",
                "--no-shell",
                "--cpu-bind=none",
                "--task-prolog=x",
                "--prolog=x",
                "--epilog=x",
            ]
        )
    ),
}
SUBMISSIONS["opt"] = [o for o in SUBMISSIONS["opt"] if o]

SBATCH_VARIABLES: dict[str, list[str]] = {
    name: values.split("|")
    for name, values in (
        line.split(" ", 1)
        for line in """SBATCH_ACCOUNT nosuch|
SBATCH_ACCTG_FREQ bad|30
SBATCH_ARRAY_INX 1-3%2|bad
SBATCH_BATCH cpu
SBATCH_BURST_BUFFER x
SBATCH_CLUSTER_CONSTRAINT x
SBATCH_CLUSTERS nosuch
SLURM_CLUSTERS oracle|nosuch
SBATCH_CONSOLIDATE_SEGMENTS 1
SBATCH_CONSTRAINT nosuch|cpu&avx2
SBATCH_CONTAINER_ID x
SBATCH_CONTAINER_TYPE x
SBATCH_CORE_SPEC 1|bad
SBATCH_CPU_FREQ_REQ low|bad
SBATCH_CPUS_PER_GPU 1|bad
SBATCH_CPUS_PER_TASK 2
SBATCH_DEBUG 1|0|x
SBATCH_DELAY_BOOT bad
SBATCH_DEPENDENCY singleton
SBATCH_DISTRIBUTION cyclic|plane=2|bad
SBATCH_ERROR e.%j
SBATCH_EXCLUSIVE |yes|no|bad|mcs
SBATCH_EXPORT ALL|NIL|FOO
SBATCH_GET_USER_ENV |yes|5L
SBATCH_GPU_BIND closest|bad
SBATCH_GPU_FREQ low|bad
SBATCH_GPUS a100:1|bad
SBATCH_GPUS_PER_NODE 2|bad
SBATCH_GPUS_PER_SOCKET 1
SBATCH_GPUS_PER_TASK 2
SBATCH_GRES gpu:9|none|foo:1
SBATCH_GRES_FLAGS disable-binding|bad
SBATCH_HINT memory_bound|bad|compute_bound
SLURM_HINT nomultithread|bad
SBATCH_IGNORE_PBS 0|
SBATCH_INPUT in
SBATCH_JOB_NAME foo|a b|
SBATCH_MEM 200
SBATCH_MEM_BIND none|bad
SBATCH_MEM_PER_CPU 50|bad
SBATCH_MEM_PER_GPU 100|bad
SBATCH_MEM_PER_NODE 200|1G|bad
SBATCH_NO_KILL off|
SBATCH_NO_REQUEUE 1|0|
SBATCH_NODELIST n1
SBATCH_NTASKS 2
SBATCH_NTASKS_PER_NODE 2
SBATCH_OPEN_MODE a|append|bad
SBATCH_OVERCOMMIT 1|
SBATCH_PARTITION nosuch|debug,long|
SBATCH_POWER x
SBATCH_PROFILE all|bad
SBATCH_QOS nosuch|
SBATCH_RAM 5
SBATCH_REQ_SWITCH 1|bad
SBATCH_REQUEUE 1|expedite|
SBATCH_RESERVATION nosuch
SBATCH_SEGMENT_SIZE 1
SBATCH_SIGNAL B:10@5|bad
SBATCH_SPREAD_JOB 1
SBATCH_SPREAD_SEGMENTS 1
SBATCH_THREAD_SPEC bad
SBATCH_THREADS_PER_CORE 1|2
SBATCH_TIMELIMIT 1-0|abc|
SBATCH_TIME 5
SBATCH_TRES_BIND bad
SBATCH_TRES_PER_TASK bad
SBATCH_WAIT_ALL_NODES 1|0|bad
SBATCH_WAIT4SWITCH bad|1:00
SBATCH_WCKEY foo
SLURM_EXIT_ERROR 5
SLURM_NTASKS_PER_NODE 2
SLURM_DIST_PLANESIZE 2
SLURM_HOSTFILE ./nodes.txt
SLURM_UMASK 0077|bad
SLURM_DEBUG_FLAGS x
SLURM_JOB_ID 5
SLURM_CONF /nosuch
SLURM_TIME_FORMAT relative
SLURM_PARTITION long
SLURM_ACCOUNT ml""".split("\n")
    )
}

_B = "#!/bin/bash\n"
SCRIPTS: dict[str, str] = {
    "empty": "",
    "blanks": "   \n",
    "crlf": "#!/bin/bash\r\nhostname\r\n",
    "crlf_directive": "#!/bin/bash\n#SBATCH -n2\r\nhostname\n",
    "sh": "#!/bin/sh\nhostname\n",
    "env": "#!/usr/bin/env bash\n#SBATCH -n2\nhostname\n",
    "shebang_args": "#!/bin/bash -l -e\n#SBATCH -n2\nhostname\n",
    "nothing": "hostname\n",
    "comment_first": "# x\n#!/bin/bash\n",
    "no_newline": "#!/bin/bash\nhostname",
    "no_newline_directive": "#!/bin/bash\n#SBATCH -n3",
    "shebang_tab": "#!\t/bin/bash\nhostname\n",
    "shebang_only_mark": "#!\nhostname\n",
    "leading_space": " #!/bin/bash\n",
    "binary": "\u0001\u0002\n",
    "tab": _B + "#SBATCH\t-n2\t-J\tx\nhostname\n",
    "equals_space": _B + "#SBATCH --ntasks = 2\nhostname\n",
    "space_value": _B + "#SBATCH --ntasks 2\n",
    "joined": _B + "#SBATCH -n2 -c2 -N2\n",
    "many_spaces": _B + "#SBATCH     -n   2    \nhostname\n",
    "trailing_blank": _B + "#SBATCH -n2   \nhostname\n",
    "empty_directive": _B + "#SBATCH\n#SBATCH -n2\nhostname\n",
    "only_word": _B + "#SBATCHX -n2\n",
    "colon": _B + "#SBATCH: -n2\n",
    "dash_dash": _B + "#SBATCH -- -n2\n",
    "bad_value": _B + "#SBATCH -n abc\n",
    "missing_value": _B + "#SBATCH -n\n",
    "missing_value_long": _B + "#SBATCH --time\n",
    "ambiguous": _B + "#SBATCH --n=2\n",
    "unknown_short": _B + "#SBATCH -Y\n",
    "variable": _B + "#SBATCH -J $USER\n#SBATCH -o ${HOME}/x\n",
    "tilde": _B + "#SBATCH -o ~/x\n",
    "glob": _B + "#SBATCH -J *\n",
    "backslash_end": _B + "#SBATCH -J x\\\nhostname\n",
    "quote_mid": _B + '#SBATCH --comment=a"b c"d\n',
    "quote_both": _B + "#SBATCH --comment='a \"b\" c'\n",
    "empty_quotes": _B + '#SBATCH --comment=""\n',
    "escaped_quote": _B + '#SBATCH --comment="a\\"b"\n',
    "escaped_hash": _B + "#SBATCH --comment=a\\#b\n",
    "hash_joined": _B + "#SBATCH --comment=a#b\n",
    "hash_start": _B + "#SBATCH # -n2\n",
    "single_unterminated": _B + "#SBATCH -J 'a b\n",
    "backslash_n": _B + "#SBATCH -J a\\nb\n",
    "unicode": _B + "#SBATCH -J ünï\n",
    "repeat": _B + "#SBATCH -n2\n#SBATCH -n3\n#SBATCH -J a\n#SBATCH -J b\n",
    "conflict": _B + "#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=100\n",
    "array": _B + "#SBATCH -a 1-3\n#SBATCH -o %A_%a\n",
    "hold": _B + "#SBATCH --hold\n#SBATCH --comment=x\n",
    "test_only": _B + "#SBATCH --test-only\n",
    "parsable": _B + "#SBATCH --parsable\n",
    "quiet": _B + "#SBATCH -Q\n",
    "verbose": _B + "#SBATCH -v\n",
    "help": _B + "#SBATCH --help\n",
    "version": _B + "#SBATCH -V\n",
    "usage": _B + "#SBATCH --usage\n",
    "wait": _B + "#SBATCH --wait --comment=x\n" if False else _B + "#SBATCH -M oracle\n",
    "uid": _B + "#SBATCH --uid=bob\n",
    "chdir": _B + "#SBATCH -D /tmp\n",
    "export": _B + "#SBATCH --export=NONE\n",
    "gpus": _B + "#SBATCH -p gpu\n#SBATCH --gpus=2\n",
    "begin": _B + "#SBATCH --begin=now+1hour\n",
    "mail": _B + "#SBATCH --mail-type=END,FAIL\n#SBATCH --mail-user=x@y.z\n",
    "dep": _B + "#SBATCH -d singleton\n",
    "exclusive": _B + "#SBATCH --exclusive\n",
    "time_ws": _B + "#SBATCH -t 1-0:0:0\n#SBATCH --time-min=5\n",
    "after_code": _B + "x=1\n#SBATCH -n2\n",
    "after_exit": _B + "exit\n#SBATCH -n2\n",
    "after_blank": _B + "\n\n#SBATCH -n2\n",
    "after_comment": _B + "# a\n#SBATCH -n2\n# b\n#SBATCH -c2\n",
    "after_indented_comment": _B + "   # a\n#SBATCH -n2\n",
    "after_heredoc": _B + "cat <<X\n#SBATCH -n2\nX\n",
    "after_module": _B + "module load x\n#SBATCH -n2\n",
    "before_shebang": "#SBATCH -n2\n#!/bin/bash\n",
    "long_line": _B + "#SBATCH -J " + "x" * 900 + "\n",
    "very_long_line": _B + "#SBATCH --comment=" + "x" * 3000 + "\n",
    "many": _B + "".join(f"#SBATCH --comment={i}\n" for i in range(300)),
    "pbs": _B + "#PBS -N pbsname\n#PBS -l nodes=2:ppn=2\n#PBS -l walltime=1:00:00\n#PBS -q long\n",
    "pbs_more": _B + "#PBS -A ml\n#PBS -o out\n#PBS -e err\n#PBS -m abe\n#PBS -M x@y.z\n#PBS -p 5\n#PBS -h\n",
    "pbs_join": _B + "#PBS -j oe\n#PBS -V\n#PBS -r n\n",
    "pbs_array": _B + "#PBS -t 1-3\n",
    "pbs_J": _B + "#PBS -J 1-3\n",
    "pbs_W": _B + "#PBS -W depend=afterok:1\n",
    "pbs_bad": _B + "#PBS -Z\n",
    "pbs_mem": _B + "#PBS -l mem=1gb\n",
    "pbs_select": _B + "#PBS -l select=2:ncpus=4\n",
    "pbs_and": _B + "#SBATCH -n2\n#PBS -N x\n",
    "pbs_S": _B + "#PBS -S /bin/bash\n",
    "pbs_k": _B + "#PBS -k oe\n",
    "pbs_long": _B + "#PBS --ntasks=2\n",
    "pbs_a": _B + "#PBS -a 203001011200\n",
    "pbs_v": _B + "#PBS -v FOO,BAR=1\n",
    "pbs_pmem": _B + "#PBS -l pmem=100mb,nodes=1\n",
    "pbs_cput": _B + "#PBS -l cput=1:00:00\n",
    "bsub": _B + "#BSUB -J lsf\n#BSUB -n 4\n#BSUB -q long\n#BSUB -W 60\n",
    "bsub_more": _B + "#BSUB -o out.%J\n#BSUB -e err.%J\n#BSUB -M 100\n#BSUB -P ml\n",
    "bsub_R": _B + '#BSUB -R "span[hosts=1]"\n',
    "bsub_bad": _B + "#BSUB -Z\n",
    "bsub_x": _B + "#BSUB -x\n",
    "bsub_m": _B + "#BSUB -m n1\n",
    "bsub_W": _B + "#BSUB -W 1:30\n",
    "bsub_w": _B + "#BSUB -w done(1)\n",
    "bsub_H": _B + "#BSUB -H\n",
    "bsub_i": _B + "#BSUB -i in\n",
    "bsub_array": _B + "#BSUB -J a[1-3]\n",
    "bsub_and": _B + "#SBATCH -J s\n#BSUB -J b\n",
    "bsub_cwd": _B + "#BSUB -cwd /tmp\n",
    "bsub_b": _B + "#BSUB -b 12:00\n",
    "sge": _B + "#$ -N x\n#$ -pe mpi 4\n",
    "het": _B + "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2 -J b\nhostname\n",
    "het3": _B + "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -n3\n",
    "het_empty": _B + "#SBATCH hetjob\n#SBATCH -n2\n",
    "het_last": _B + "#SBATCH -n2\n#SBATCH hetjob\n",
    "het_array": _B + "#SBATCH -a 1-2\n#SBATCH hetjob\n#SBATCH -n2\n",
    "het_bad": _B + "#SBATCH -n1\n#SBATCH hetjob\n#SBATCH --foo\n",
    "het_case": _B + "#SBATCH -n1\n#SBATCH HETJOB\n#SBATCH -n2\n",
    "perl": "#!/usr/bin/perl\n#SBATCH -n2\nprint 1;\n",
    "python_env": "#!/usr/bin/env python3\n#SBATCH -n2\n",
    "R": "#!/usr/bin/Rscript\n#SBATCH -n2\n",
    "exec_relative": "#!bash\n#SBATCH -n2\n",
    "wrap": _B + "#SBATCH --wrap=hostname -n2\n",
    "constraint": _B + '#SBATCH -C "cpu&avx2"\n',
    "nodelist": _B + "#SBATCH -w n[1-2]\n",
    "exclude": _B + "#SBATCH --exclude=n1,n2\n",
}

SHELL_SUBMISSIONS: list[dict[str, Any]] = [
    *(
        {
            "sh": text,
            "files": {"job.sh": _B + "#SBATCH -t 20\n#SBATCH -J script\nhostname\n", "two.sh": _B + "hostname\n"},
        }
        for text in """sbatch -H ./job.sh
sbatch -H $PWD/job.sh
sbatch -H job.sh a b 'c d'
sbatch -H job.sh -n2 --foo
sbatch -H -- job.sh
sbatch -H -n2 -- job.sh x
sbatch job.sh -H; scancel -n script
sbatch -H two.sh job.sh
sbatch -H -J cli job.sh
sbatch -H nosuch.sh
sbatch -H ./nosuch.sh
sbatch -H /nosuch/x.sh
sbatch -H sub/
sbatch -H .
sbatch -H /tmp
sbatch -H ''
sbatch -H < job.sh
cat job.sh | sbatch -H
sbatch -H - < job.sh
sbatch -H -J x < job.sh
sbatch -H /dev/null
sbatch -H < /dev/null
sbatch -H --wrap ''
sbatch -H --wrap='echo "a b"'
sbatch -H --wrap 'a
b'
sbatch -H --wrap hostname extra
sbatch -H --wrap=a --wrap=b
sbatch -H --wrap
sbatch
sbatch -H --wrap '#!/bin/sh'
sbatch -H -n1 : -n2 --wrap hostname
sbatch -H -n1 : -n2 : -n3 job.sh
sbatch -H -n1 : job.sh
sbatch -H : -n1 job.sh
sbatch -H -n1 : : job.sh
sbatch -H -p debug : -p gpu --gpus=1 job.sh
sbatch -H -n1 : -p nosuch job.sh
sbatch -H -n1 : --foo job.sh
sbatch -H -A ml : -A physics job.sh
sbatch -H -J a : -J b job.sh
sbatch -H -t 5 : -t 10 job.sh
sbatch -H --parsable -n1 : -n1 job.sh
SBATCH_TIMELIMIT=10 sbatch -H job.sh
SBATCH_JOB_NAME=env sbatch -H job.sh
SBATCH_JOB_NAME=env sbatch -H two.sh
SBATCH_TIMELIMIT=10 sbatch -H -t 5 job.sh
SBATCH_PARTITION=long sbatch -H -p gpu job.sh
SLURM_JOB_NAME=x sbatch -H two.sh
SBATCH_IGNORE_PBS=1 sbatch -H two.sh
chmod -x job.sh; sbatch -H job.sh
cp job.sh 'a b.sh'; sbatch -H 'a b.sh'
cp job.sh a%j.sh; sbatch -H a%j.sh
mkdir d; cp job.sh d/; sbatch -H d/job.sh
mkdir d; cd d; sbatch -H ../job.sh
mkdir bin; cp job.sh bin/myjob; PATH=$PWD/bin:$PATH sbatch -H myjob
ln -s job.sh l.sh; sbatch -H l.sh
cd /; sbatch -H --wrap hostname
cd /tmp; sbatch -H /home/alice/w/job.sh
umask 077; sbatch -H job.sh
sbatch -H --export-file=f job.sh
printf 'A=1\\0B=2\\0' > f; sbatch -H --export-file=f job.sh
sbatch -H --bbf=job.sh two.sh
printf 'n1\\nn2\\n' > l; sbatch -H -w ./l two.sh
printf 'n1\\nn2\\n' > l; sbatch -H -x ./l two.sh
printf 'n1 n2' > l; sbatch -H -F ./l two.sh
printf 'n1,n2' > l; sbatch -H -F l two.sh
printf 'n1\\nn1\\n' > l; sbatch -H -m arbitrary -w ./l two.sh""".split("\n")
        if text.strip()
    ),
    *(
        {"user": user, "sh": text}
        for user, text in (
            pair.split("$ ", 1)
            for pair in """carol$ sbatch -H --wrap hostname
carol$ sbatch -H -A physics --wrap hostname
carol$ squeue --me
bob$ sbatch -H --wrap hostname
bob$ sbatch -H -A physics --wrap hostname
bob$ sbatch -H -q high --wrap hostname
bob$ sbatch -H -q tiny -n3 --wrap hostname
bob$ sbatch -H -q tiny -t 5 -n2 --wrap hostname
bob$ sbatch -H -q tiny -t 11 --wrap hostname
bob$ sbatch -H -q tiny -N1 --exclusive --wrap hostname
bob$ sbatch -H -q tiny -a 1-3 --wrap hostname
bob$ sbatch -H -p restricted --wrap hostname
bob$ sbatch -H -p long -q tiny --wrap hostname
bob$ sbatch -H --test-only -q tiny -n3 --wrap hostname
dave$ sbatch -H --wrap hostname
dave$ sbatch -H -A ml --wrap hostname
dave$ sbatch -H --uid=alice --wrap hostname
dave$ sbatch -H --priority=1000 --wrap hostname
dave$ sbatch -H --nice=-100 --wrap hostname
dave$ sbatch -H -p restricted,debug --wrap hostname
root$ sbatch -H --uid=bob --wrap hostname
root$ sbatch -H --uid=1002 --gid=1002 --wrap hostname
root$ sbatch -H --uid=nosuch --wrap hostname
root$ sbatch -H --gid=alice --wrap hostname
root$ sbatch -H --priority=100 --wrap hostname
root$ sbatch -H --priority=TOP --wrap hostname
root$ sbatch -H --nice=-100 --wrap hostname
root$ sbatch -H -A ml --wrap hostname
root$ sbatch -H --uid=carol --wrap hostname
root$ sbatch -H --reboot --wrap hostname
root$ sbatch -H -p maint --wrap hostname
root$ sbatch -H -p restricted --wrap hostname
root$ sbatch -H -q tiny -n4 --wrap hostname""".split("\n")
        )
    ),
]

HOST_LISTS = """n[1-3] n[1,3] n[1-2,4] n[001-003] n[1-3,5-7] n[9-11] n[09-11] n[099-101] a[1-2],b[1-2] a1,a2,b1 n1,n3,n2 n3,n2,n1 n1,n1 n[1-3],n[5-7] n[1-3]x n[1-3]x[1-2] r[1-2]c[1-2]n[1-2] n[1-2][3-4] n[] n[ n[1 n[1- n[1-] n[-1] n[1-2 n1] [n1] [1-3] n[1-3]] n[[1-3]] n[1,2 n[a] n[1a] n[1-2a] n[0-0] n[0] n[00] n[5-5] n[10-9] n[2-1] n[1-100] n[1-3,2-4] n[1--3] n[1-2-3] n[1.5] n[1 2] n1 n2 n1,,n2 ,n1 n1, , n-1 n_1 n.1 n1.example.org n[1-2].example.org n1:n2 n1;n2 1 1,2,3 001,002 12-15 x y,x x1y,x2y x1y2,x1y3 x1y1,x2y1 x1y1,x2y2 n01,n1,n001 n1,n01 n10,n9,n8 n2,n10,n1 node-[1-3] node-1,node-2,node-3 n[1-3]-ib n1-ib,n2-ib N1,n1 n{1-3} n(1-3) n* n?x n[1-3:1] n[1-9:2] n[0-10:5] n^1 -n1 n99999999 n[99999998-99999999] n[00001-00003] n1,m,n2,m gpu01,gpu02,cpu01 a1b,a2b,a10b abc a[1-2]b,a3b n[1-2,2-3] n[3,1,2] n1,n2,n4,n5,n7 rack1-n1,rack1-n2,rack2-n1 r1n1,r1n2,r2n1,r2n2 0 00 a0,a00,a000 n[1-65] a1,b1,a2,b2""".split(
    " "
)
HOST_LISTS = [*dict.fromkeys(HOST_LISTS), "n1 n2", "", " ", "n1, n2", "n[1-2] n3"]

_ECHO = "echo $SLURM_PROCID $SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_PARTITION $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE"
STEPS: list[dict[str, Any]] = [
    *(
        {
            "sh": text,
            "collect": ["[oe][.].*"],
            "env": {"FOO": "bar"},
            "files": {
                "tp": "#!/bin/sh\necho export TPV=set\necho print from prolog\n",
                "te": "#!/bin/sh\necho epilog $SLURM_PROCID >> e.te\n",
                "fail": "#!/bin/sh\nexit 3\n",
            },
        }
        for text in """srun -n2 hostname
srun -N2 hostname
srun -l -n3 bash -c 'echo $SLURM_PROCID'
srun -n2 bash -c 'exit $SLURM_PROCID'
srun -n2 bash -c 'exit 7'
srun -N2 -n2 bash -c 'exit 2'
srun false
srun nosuch
srun ./nosuch
srun /
srun -n2 nosuch
srun bash -c 'kill -9 $$'
srun bash -c 'kill -TERM $$'
srun -n2 bash -c 'kill -ABRT $$'
srun -K -n2 bash -c 'if [ $SLURM_PROCID = 0 ]; then exit 1; else sleep 30; fi'
srun -K0 -n2 bash -c 'exit 1'
srun -W 2 -n2 bash -c 'if [ $SLURM_PROCID = 0 ]; then exit 0; else sleep 30; fi'
srun -o o.txt hostname
srun -o o.%j -n2 hostname
srun -n2 -o o.%t hostname
srun -o o.txt -e e.txt bash -c 'echo a; echo b >&2'
srun -o all hostname
srun -e none bash -c 'echo a; echo b >&2'
srun -o /nosuch/x hostname
srun -i /etc/hostname cat
srun -i nofile cat
srun -i all cat
srun -Q hostname
srun -q hostname
srun -v -Q hostname
srun -p nosuch hostname
srun -A nosuch hostname
srun -q nosuch hostname
srun -N2 -n1 hostname
srun -n9 -N1 hostname
srun -c9 hostname
srun -t abc hostname
srun --mem=abc hostname
srun -C nosuch hostname
srun -w n9 hostname
srun -w n2 hostname
srun -x n1 -n1 true
srun --foo hostname
srun -Y hostname
srun --n=2 hostname
srun -N hostname
srun --jobid=abc hostname
srun --jobid=0 hostname
srun --export=FOO bash -c 'echo [$FOO]'
srun --export=ALL,X=1 bash -c 'echo [$FOO$X]'
srun --export=X=1 bash -c 'echo [$FOO$X]'
srun --export=NIL bash -c 'echo [$FOO]'
srun -J name bash -c 'echo $SLURM_JOB_NAME'
srun -D /tmp pwd
srun -D /nosuch pwd
srun -n4 -O hostname
srun -n2 -c2 bash -c 'echo $SLURM_CPUS_PER_TASK'
srun -l -N2 -n4 -m block bash -c 'echo $SLURMD_NODENAME'
srun -l -N2 -n4 -m arbitrary hostname
srun -l -N2 --ntasks-per-node=2 bash -c 'echo $SLURMD_NODENAME'
srun -l -N2-3 -n3 true
srun --exclusive bash -c 'echo $SLURM_CPUS_ON_NODE'
srun --mpi=none hostname
srun --mpi=list
srun --mpi=pmi2 true
srun --cpu-bind=none true
srun --cpu-bind=bad true
srun --cpu-bind=cores true
srun --cpu-bind=verbose,none true
srun --cpu-bind=map_cpu:0 true
srun --mem-bind=bad true
srun --mem-bind=local true
srun -p gpu --gres=gpu:1 bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun -p gpu --gres=gpu:a100:2 bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun -p gpu -N2 --gpus-per-node=1 bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun -p gpu --gpus=1 bash -c 'echo $SLURM_GPUS $SLURM_JOB_GPUS $SLURM_STEP_GPUS $SLURM_GPUS_ON_NODE'
srun -l -p gpu -n2 --gpus=2 --gpu-bind=single:1 bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun -l -p gpu -n2 --gpus=2 --gpu-bind=none bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun -l -p gpu -n2 --gpus=2 --gpu-bind=map_gpu:0,1 bash -c 'echo $CUDA_VISIBLE_DEVICES'
srun --begin=now hostname
srun --test-only hostname
srun --test-only -N9 hostname
srun --task-epilog=./te hostname; sleep 1; cat e.te
srun --task-prolog=./nosuch hostname
srun --task-prolog=./fail hostname
srun --task-prolog=$PWD/tp bash -c 'echo $TPV'
srun -n2 --task-prolog=./tp bash -c 'echo $TPV'
srun --prolog=./tp hostname
srun --epilog=./tp hostname
srun --prolog=none hostname
srun --prolog=./nosuch hostname
srun -r 0 hostname
srun --multi-prog
srun --multi-prog nofile
srun -n2 --multi-prog tp
srun --help | wc -l
srun --usage
srun -h | head -3
srun -n0 hostname
srun -nabc hostname
srun -I hostname
srun -I5 hostname
srun -u -n2 echo x
srun -E hostname
srun --label -n2 echo x
srun -X -n2 echo x
srun --quit-on-interrupt true
srun --pty echo x
srun --slurmd-debug=info true
srun --overlap hostname
srun --exact hostname
srun --whole hostname
srun -Z hostname
srun -a 1-2 hostname
srun --bcast=/tmp/x hostname
srun --compress hostname
srun --wait=abc hostname
srun --kill-on-bad-exit=2 hostname
srun --signal=USR1@5 hostname
srun --nice hostname
srun -H hostname
srun --hold --immediate hostname
srun --dependency=singleton hostname
srun --comment=x bash -c 'squeue -h -j $SLURM_JOB_ID -o %k'
srun --reservation=nosuch hostname
srun -L foo hostname
srun -L matlab bash -c 'echo $SLURM_JOB_LICENSES'
srun --gres=foo:1 hostname
srun --threads-per-core=1 hostname
srun -n1 hostname : -n1 hostname
srun -n1 hostname : hostname
srun hostname : nosuch
srun -n1 true : -n2 bash -c 'exit 4'
srun -l --het-group=0 hostname
srun -n2 bash -c 'sleep 0.$SLURM_PROCID; echo $SLURM_PROCID; exit $SLURM_PROCID'
srun -t 1 true
srun --time-min=1 -t 5 true
srun --open-mode=a -o o.txt hostname; srun --open-mode=a -o o.txt hostname
salloc true
salloc false
salloc hostname
salloc -n2 bash -c 'echo $SLURM_NTASKS $SLURM_JOB_CPUS_PER_NODE'
salloc -N2 bash -c 'echo $SLURM_JOB_NODELIST'
salloc -J x bash -c 'squeue -h -j $SLURM_JOB_ID -o "%j %t %l"'
salloc bash -c 'exit 9'
salloc bash -c 'kill -9 $$'
salloc -Q bash -c 'srun hostname'
salloc -n2 srun -l echo x
salloc -n4 srun -n2 echo x
salloc -n1 srun -n2 echo x
salloc -N2 srun -N1 -r1 bash -c 'echo $SLURMD_NODENAME'
salloc -N2 srun -w n9 hostname
salloc --foo true
salloc -p nosuch
salloc -A nosuch true
salloc -q nosuch true
salloc -t abc true
salloc --mem=99999999 -I1 true
salloc -I1 -N9 true
salloc -C nosuch -I1 true
salloc -p gpu --gres=gpu:1 bash -c 'echo $SLURM_JOB_GPUS $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE'
salloc -p gpu --gpus=2 srun bash -c 'echo $CUDA_VISIBLE_DEVICES'
salloc --exclusive bash -c 'echo $SLURM_JOB_CPUS_PER_NODE'
salloc -n1 : -n2 bash -c 'echo $SLURM_HET_SIZE $SLURM_JOB_ID_HET_GROUP_1'
salloc -t 5 bash -c 'squeue -h -j $SLURM_JOB_ID -o %l'
salloc --no-shell -Q; squeue -h --me -o %j; scancel --me
salloc --no-shell -J q; scancel --me
salloc --no-shell hostname; scancel --me
salloc --bell true
salloc --no-bell true
salloc -v -Q true
salloc --help | wc -l
salloc --usage
salloc -V
salloc --kill-command=9 true
salloc --kill-command=bad true
salloc -K9 true
salloc --wait-all-nodes=1 true
salloc --begin=now+1 true
salloc --nice=5 true
salloc -D /tmp pwd
salloc --export=NONE true
salloc -a 1-2 true
salloc -o x true
salloc --wrap x
salloc -d singleton true
salloc --get-user-env true
salloc --uid=bob true
sattach
sattach 999999.0
sattach abc
sattach 5
sattach -V
sattach --help | head -3
sattach --usage
sattach --layout 999999.0
sattach --foo
sbcast
sbcast a
sbcast nofile /tmp/x
sbcast -V
sbcast --help | head -3
sbcast --usage
sbcast --foo
salloc -Q sbcast tp /tmp/tp.S
salloc -Q -N2 sbcast -f tp /tmp/tp.S
salloc -Q sbcast nofile /tmp/x
salloc -Q bash -c 'sbcast -f tp /tmp/tp.S; srun cat /tmp/tp.S'
salloc -Q bash -c 'sbcast -p -f tp /tmp/tp.S; sbcast tp /tmp/tp.S'""".split("\n")
    ),
    *(
        {"argv": ["srun", "bash", "-c", _ECHO], "env": {name: value}, "collect": ["[oe][.].*"]}
        for name, value in (
            pair.split("=", 1)
            for pair in """SLURM_NNODES=2 SLURM_JOB_NUM_NODES=2 SLURM_NPROCS=2 SRUN_LABEL=1 SLURM_ACCOUNT=ml SLURM_ACCOUNT=nosuch SLURM_QOS=high SLURM_TIMELIMIT=5 SLURM_TIMELIMIT=abc SLURM_PARTITION=nosuch SLURM_EXCLUSIVE=1 SLURM_STDOUTMODE=o.txt SLURM_STDERRMODE=e.txt SLURM_STDINMODE=none SRUN_OUTPUT=o.txt SRUN_INPUT=none SLURM_JOB_NAME=x SLURM_WORKING_DIR=/tmp SLURM_REMOTE_CWD=/tmp SLURM_CPU_BIND=none SLURM_CPU_BIND=bad SLURM_MEM_PER_CPU=50 SLURM_MEM_PER_CPU=bad SLURM_HINT=nomultithread SLURM_CONSTRAINT=nosuch SLURM_UNBUFFEREDIO=1 SLURM_KILL_BAD_EXIT=1 SLURM_WAIT=5 SLURM_THREADS=5 SLURM_NTASKS_PER_NODE=2 SLURM_DEBUG=1 SRUN_DEBUG=1 SLURM_SRUN_REDUCE_TASK_EXIT_MSG=1 SLURM_EXPORT_ENV=NONE SRUN_EXPORT_ENV=NONE SLURM_TASK_PROLOG=./nosuch SLURM_TASK_EPILOG=./nosuch SLURM_PROLOG=none SLURM_EPILOG=none SLURM_DISABLE_STATUS=1 SLURM_OPEN_MODE=a SLURM_MPI_TYPE=none SLURM_MPI_TYPE=bad SLURM_NO_KILL=1 SLURM_THREADS_PER_CORE=1 SLURM_WCKEY=x SLURM_RESERVATION=nosuch SLURM_JOB_ID=999999 SLURM_JOBID=5 SLURM_CLUSTERS=oracle SLURM_GRES=foo SLURM_NETWORK=x SLURM_SPREAD_JOB=1 SLURM_USE_MIN_NODES=1 SLURM_OVERLAP=1 SLURM_EXACT=1 SLURM_NSOCKETS_PER_NODE=1 SLURM_NCORES_PER_SOCKET=1 SLURM_PROFILE=none SLURM_SIGNAL=USR1@5 SLURM_STEP_KILLED_MSG_NODE_ID=1 SLURM_EXIT_ERROR=5 SLURM_IMMEDIATE=1 SLURM_DEPENDENCY=singleton SLURM_CPUS_PER_TASK=9""".split()
        )
    ),
    *(
        {
            "argv": [
                "salloc",
                "-Q",
                "bash",
                "-c",
                "scontrol -o show job $SLURM_JOB_ID | grep -o -E '(TimeLimit|Partition|Account|QOS|NumCPUs|OverSubscribe|Features|MinMemoryCPU|MinMemoryNode|CoreSpec|Licenses)=[^ ]*'",
            ],
            "env": {name: value},
        }
        for name, value in (
            pair.split("=", 1)
            for pair in """SALLOC_TIMELIMIT=5 SALLOC_TIMELIMIT=abc SALLOC_PARTITION=nosuch SALLOC_ACCOUNT=nosuch SALLOC_QOS=nosuch SALLOC_EXCLUSIVE=1 SALLOC_EXCLUSIVE=user SALLOC_MEM_PER_CPU=50 SALLOC_MEM_PER_NODE=200 SALLOC_CONSTRAINT=cpu SALLOC_CONSTRAINT=avx2&cpu SALLOC_CORE_SPEC=1 SALLOC_BELL=1 SALLOC_KILL_CMD=9 SALLOC_IMMEDIATE=5 SALLOC_NO_KILL=1 SALLOC_OVERCOMMIT=1 SALLOC_WAIT_ALL_NODES=1 SALLOC_DEBUG=1 SALLOC_THREADS_PER_CORE=1 SALLOC_HINT=nomultithread SALLOC_HINT=bad SALLOC_GRES=foo:1 SALLOC_SIGNAL=USR1@5 SALLOC_WCKEY=x SALLOC_RESERVATION=nosuch SALLOC_USE_MIN_NODES=1 SALLOC_CLUSTERS=oracle SALLOC_CLUSTERS=nosuch SALLOC_PROFILE=bad SALLOC_ACCTG_FREQ=task=5 SALLOC_DISTRIBUTION=cyclic SLURM_EXIT_ERROR=7""".split()
        )
    ),
]
SQUEUE_LETTERS = """
A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p Q q R r S s T t U u V v W w X x Y y Z z
""".split()

SQUEUE_FIELDS = """
JobId Account BatchHost Gres NumCPUs MinCPUs NumNodes MinTmpDisk Dependency EndTime ArrayJobId Feature GroupId
GroupName Sockets OverSubscribe Shared Cores JobArrayId Threads Name ArrayTaskId Comment TimeLeft TimeLimit TimeUsed
MinMemory NodeList ReqNodes Contiguous Command Partition Priority PriorityLong QOS ReasonList Reason StartTime SLUID
State StateCompact UserId UserName SubmitTime Reservation Licenses WCKey CoreSpec ExcNodes SchedNodes Nice WorkDir SCT
AccrueTime admin_comment AllocNodes AllocSID AssocId BatchFlag BoardsPerNode BurstBuffer BurstBufferState Cluster
ClusterFeature Container ContainerId ContainerType CPUsPerTask cpus-per-task cpus-per-tres CronJob Deadline DelayBoot
DerivedEC EligibleTime Exclusive exit_code HetJobId HetJobIdSet HetJobOffset LastSchedEval LicensesAlloc MaxCPUs
MaxNodes mem-per-tres MCSLabel MinTime Network NTPerCore NTPerNode NTPerSocket NTPerBoard NumTasks Origin OriginRaw
PackJobId PackJobIdSet PackJobOffset PendingTime PreemptTime Prefer Profile Reboot ReqSwitch Requeue ResizeTime
RestartCnt SegmentSize SiblingsActive SiblingsActiveRaw SiblingsViable SiblingsViableRaw SPerBoard StdErr StdIn StdOut
system_comment Tres tres-alloc tres-bind tres-freq tres-per-job tres-per-node tres-per-socket tres-per-task
Wait4Switch
""".split()

SQUEUE_STEP_FIELDS = """
NumTasks tres-per-node StepId StepName TimeLimit TimeUsed Nodes Partition StartTime UserId UserName ArrayJobId
ArrayTaskId Cluster Container ContainerId ContainerType CPUFreq cpus-per-tres Gres JobId mem-per-tres Network NumCPUs
ResvPorts StdErr StdIn StdOut StepState tres-bind tres-freq tres-per-job tres-per-socket tres-per-step tres-per-task
""".split()

SINFO_LETTERS = """
A a B b C c D d E e F f G g H h I i L l M m N n O o P p R r S s T t U u V v w X Y Z z J K q Q W x y
""".split()

SINFO_FIELDS = """
NodeAI Available MaxCPUsPerNode features_act CPUsState CPUs Nodes Disk Reason FreeMem NodeAIOT Features Gres GresUsed
Groups TimeStamp OverSubscribe Share PriorityJobFactor Reservation DefaultTime Time PreemptMode Memory NodeList
NodeHost CPUsLoad NodeAddr Partition PriorityTier PartitionName Root AllocNodes Size StateLong StateCompact UserLong
User Cluster Version Weight Sockets Cores Threads SocketCoreThread AllocMem Comment Extra Port StateComplete
""".split()

SACCT_FIELDS = """
Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveCPUFreq AveDiskRead AveDiskWrite AvePages AveRSS
AveVMSize BlockID Cluster Comment Constraints ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex
DerivedExitCode Elapsed ElapsedRaw Eligible End Exclusive ExitCode Extra FailedNode Flags GID Group JobID JobIDRaw
JobName Layout Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode MaxDiskWriteTask
MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask MaxVMSize MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU
MinCPUNode MinCPUTask NCPUS NNodes NodeList NTasks OriginalSLUID OverSubscribe Partition Planned PlannedCPU
PlannedCPURAW Priority QOS QOSRAW QOSREQ Reason ReqCPUFreq ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqMem
ReqNodes ReqTRES Reservation ReservationId ReqReservation Restarts SegmentSize SLUID Start State StdErr StdIn StdOut
Submit SubmitLine Suspended SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax
TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask TRESUsageInTot
TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode
TRESUsageOutMinTask TRESUsageOutTot UID User UserCPU WCKey WCKeyID WorkDir
""".split()

QUERIES = """squeue -a
squeue -l
squeue --long
squeue -r
squeue --array
squeue -h
squeue --noheader
squeue --me
squeue --me -t R
squeue -u alice
squeue -u alice,bob
squeue -u 1001
squeue -u alice -t PD
squeue -u root
squeue -u ''
squeue --user=bob
squeue -t R
squeue -t CG
squeue -t S
squeue -t all -o %i
squeue -t R,PD -o '%i %t'
squeue -t r
squeue -t running
squeue -t xyz
squeue -t PENDING,xyz
squeue -t CD -o %i
squeue --states=PD -h -o %i
squeue --state=R -h -o %i
squeue -t ''
squeue -p debug
squeue -p debug,gpu
squeue -p nosuch
squeue -p long -h
squeue --partition=gpu
squeue -n nosuch
squeue -n held
squeue --name=runner,later
squeue -n ''
squeue -q normal
squeue -q nosuch
squeue -q high,normal -h
squeue -A ml
squeue -A physics -o '%i %a'
squeue -A nosuch
squeue --account=ml,physics -h -o %i
squeue -j {J:run}
squeue -j {J:run},{J:gpu}
squeue -j {J:run} -j {J:gpu}
squeue --jobs={J:run}
squeue --job={J:run}
squeue {J:run}
squeue -j {J:arr}
squeue -j {J:arr} -r
squeue -j {J:arr}_0
squeue -j {J:arr}_0,{J:arr}_3
squeue -j {J:arr}_[0,3-4]
squeue -j {J:arr}_77
squeue -j {J:arr}_x
squeue -j {J:arrheld} -r
squeue -j {J:arrheld}_5
squeue -j {J:run},999999
squeue -j 999999,999998
squeue -j 0
squeue -j -5
squeue -j ''
squeue -j
squeue --jobs
squeue -j {J:hetq}
squeue -j {J:hetq}+1
squeue -j {J:hetq}+5
squeue -j {J:run}+1
squeue -j {J:run}.0
squeue -j '{J:run} {J:gpu}'
squeue -w n1
squeue -w n1,n2
squeue -w n[1-2]
squeue -w n9
squeue -w g1 -h -o %N
squeue --nodelist=n1
squeue -w n[
squeue -R nosuch
squeue --reservation=r1
squeue -L matlab -h
squeue -L nosuch
squeue -L ansys
squeue --licenses=matlab -o '%i %W'
squeue -s
squeue -s -u bob
squeue --steps
squeue -s {J:run}
squeue -s {J:run}.batch
squeue -s {J:run}.0,{J:gpu}.batch
squeue -s 999999.0
squeue -s abc
squeue -s {J:run}.99
squeue -s -h -o '%i %j'
squeue -s -l
squeue -S -i
squeue -S i -h -o %i
squeue -S j -h -o '%j %i'
squeue -S -j,i -h -o '%j %i'
squeue -S t,-p -h -o '%i %t'
squeue -S u -h -o '%u %i'
squeue -S -u,+i -h -o '%u %i'
squeue -S P,t -h -o '%P %t %i'
squeue -S M -h -o %i
squeue -S l -h -o '%l %i'
squeue -S D -h -o '%D %i'
squeue -S C,i -h -o '%C %i'
squeue -S Q -h -o '%i'
squeue -S N -h -o '%N %i'
squeue -S V -h -o %i
squeue -S S -h -o %i
squeue -S e -h -o %i
squeue -S T -h -o '%T %i'
squeue -S a,i -h -o '%a %i'
squeue -S q,i -h -o '%q %i'
squeue -S m,i -h -o '%m %i'
squeue -S x
squeue -S X,i -h -o %i
squeue -S y,i -h -o '%y %i'
squeue -S r,i -h -o '%r %i'
squeue -S Z -h -o %i
squeue -S ''
squeue -S ,
squeue -S nosuch
squeue --sort=-i -h -o %i
squeue --sort=jobid -h -o %i
squeue -O jobid --sort=-jobid -h
squeue --start
squeue --start -h
squeue --start -u bob
squeue --start -j {J:held}
squeue --start -o %S
squeue -P
squeue -P -h -o %i
squeue --priority
squeue -i 0
squeue -i -1
squeue -i abc
squeue --iterate=x
squeue -v -j {J:run}
squeue -vv -h -j {J:run}
squeue -Q
squeue --foo=1
squeue -Y
squeue -x
squeue --us=bob
squeue --no
squeue --noh
squeue --st=R -h -o %i
squeue --s
squeue --usage
squeue --help | head -5
squeue --help | wc -l
squeue --version
squeue extra
squeue a b
squeue -o %i%j
squeue -o '%i|%j|%t'
squeue -o '%.5i %.3j'
squeue -o '%5i%5j|'
squeue -o %-10i
squeue -o '%.-5i'
squeue -o '%.i'
squeue -o '%i %'
squeue -o '%%'
squeue -o '%i%%'
squeue -o 'x%iy'
squeue -o '%0i'
squeue -o '%100i|' -j {J:run}
squeue -o '%1i%1j' -h
squeue -o '%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R'
squeue -o '%i\\t%j'
squeue -o '%i\\n%j' -h
squeue -o $'%i\\t%j' -h
squeue -o '%all' -j {J:run}
squeue -o all
squeue -o ALL
squeue --format=%i
squeue --format '%i %j'
squeue -h -o %q%a
squeue -h -o '%E %i'
squeue -O jobid
squeue -O jobid,name,state
squeue -O JobID,NAME,State -h
squeue -O jobid:5,name:3
squeue -O 'jobid:.5,name:.10'
squeue -O jobid:,name
squeue -O jobid:0,name:0
squeue -O 'jobid:-5'
squeue -O jobid:abc
squeue -O nosuch
squeue -O jobid,nosuch
squeue -O ''
squeue -O jobid,,name
squeue -O ,jobid
squeue -O 'jobid ,name'
squeue -O jobid:8x,name:5y -h
squeue -O all
squeue -O ALL -j {J:run}
squeue --Format=jobid,username
squeue --Format jobid -h
squeue -O jobid -o %j
squeue -o %j -O jobid
squeue --json -j {J:run} | head -50
squeue --json -j 999999
squeue --json -u carol | head -3
squeue --json=v0.0.44 -j {J:bob}
squeue --json=v0.0.46 -j {J:bob}
squeue --json=v0.0.43 -j {J:bob} | head -5
squeue --json=v0.0.45 -j {J:gpu}
squeue --json=v0.0.45+complex -j {J:bob}
squeue --json=abc
squeue --json -j {J:arr}
squeue --json -j {J:hetq}
squeue --json -j {J:begin}
squeue --json -j {J:need}
squeue --json -s {J:run}.0
squeue --json -t R -o %i | head -3
squeue --json --foo
squeue --yaml -j {J:held}
squeue --yaml -j {J:arr}
squeue --yaml -j {J:gpu}
squeue --yaml=list
squeue --yaml=v0.0.45 -j {J:bob}
squeue --yaml=bad
squeue --json --yaml -j {J:bob} | head -3
squeue --only-job-state -j {J:run}
squeue --only-job-state -j {J:arr}
squeue --only-job-state -u alice
squeue --only-job-state -h -t R
squeue --only-job-state -o %i
squeue --only-job-state -j 999999
squeue --only-job-state --json -j {J:run}
squeue --notme -h -o '%u %i'
squeue --notme -u alice
squeue --me -u bob
squeue --sibling -h -o %i
squeue --local -h -o %i
squeue --all -h -o %i
squeue -a -p maint
squeue --hide
squeue -M all -h -o %i
squeue -M oracle
squeue -M oracle -j {J:run}
squeue -M oracle,nosuch
squeue -M ''
squeue --clusters=oracle -h -o %i
squeue --federation -o %i
squeue --array-unique -r
squeue --array-unique -h -j {J:arr}
squeue -r -t PD -h -o '%i %K %F'
squeue -r -h -o '%A %i' -j {J:arr}
squeue --expand-patterns -j {J:arr} -O STDOUT,STDERR,STDIN
squeue --expand-patterns -j {J:arrheld} -r -h -O STDOUT
squeue --expand-patterns -j {J:run} -o %o
squeue -j {J:arr} -O STDOUT,STDERR,STDIN
squeue --helpstate
squeue --helpState
squeue --helpFormat2
squeue --helpformat
squeue --autocomplete=x
bob$ squeue
bob$ squeue --me
carol$ squeue --me
carol$ squeue -h | wc -l
root$ squeue -u alice -h -o %i
dave$ squeue -h -o %i
squeue -u alice -p gpu -t R -h -o '%i %P %t'
squeue -h -t PD -o '%i %r'
squeue -h -o '%i|%S|%e|%L'
squeue -h -j {J:held} -o '%C|%c|%D|%m|%l|%y|%W|%f|%E'
sinfo
sinfo -N
sinfo -N -l
sinfo -Nl -p gpu
sinfo -l
sinfo --long
sinfo -R
sinfo -R -h
sinfo --list-reasons
sinfo -s -h
sinfo --summarize
sinfo -s -p gpu
sinfo -s -N
sinfo -a
sinfo --all
sinfo -p debug
sinfo -p debug,gpu
sinfo -p nosuch,debug
sinfo -p maint
sinfo --partition=long
sinfo -p ''
sinfo -n n1
sinfo -n n[1-2]
sinfo -n n1,g1
sinfo -n n9,n1
sinfo -N -n n1
sinfo --nodes=n1
sinfo -n n[
sinfo -t alloc
sinfo -t mix
sinfo -t idle,mix
sinfo -t IDLE
sinfo -t down
sinfo -t drain
sinfo -t drained,draining
sinfo -t all
sinfo -t xyz
sinfo -t idle,xyz
sinfo -t idle\\&drain
sinfo -t '~idle'
sinfo -t '!idle'
sinfo -t comp
sinfo -t allocated
sinfo -t mixed -h
sinfo -t resv
sinfo -t maint
sinfo -t fail,future,unk
sinfo -t power_down
sinfo -t reboot
sinfo -t planned
sinfo --states=idle
sinfo --state=idle
sinfo -t ''
sinfo -r
sinfo -d
sinfo --dead
sinfo --responding
sinfo -r -N
sinfo -d -N
sinfo -h -o %P
sinfo --noheader
sinfo -e -l
sinfo --exact
sinfo -F
sinfo --future
sinfo -S -N
sinfo -S P
sinfo -S -P,-t
sinfo -N -S -N -h -o %N
sinfo -N -S N,P -h -o '%N %P'
sinfo -S t -h -o '%t %N'
sinfo -S -c,N -h -o '%c %N'
sinfo -S w -h -o '%w %N'
sinfo -S D -h -o '%D %P'
sinfo -S '#P' -h -o %P
sinfo -S x
sinfo -S nosuch
sinfo -S ''
sinfo --sort=-m -h -o '%m %N'
sinfo -S a,R -h -o %R
sinfo -S l,P -h -o '%l %P'
sinfo -S T -h -o '%T'
sinfo -S E -h -o %N
sinfo -S f -h -o '%f %N'
sinfo -S X,N -h -o '%X %N'
sinfo -o '%P %a %l %D %t %N'
sinfo -o '%#P %.5a'
sinfo -o '%10P|%.6D'
sinfo -o '%P%%'
sinfo -o %
sinfo -o ''
sinfo -o abc
sinfo -o '%N %c %m %f %G'
sinfo -o '%n %t'
sinfo -o '%n'
sinfo -o '%N'
sinfo -h -o '%D'
sinfo -h -o '%C'
sinfo -h -o '%A %F'
sinfo -h -o '%T %D'
sinfo -N -h -o '%N %T %C %m %e'
sinfo -N -o '%N %G %f %w'
sinfo -h -p debug -o '%n %t %C'
sinfo -h -o '%P %G'
sinfo -h -o '%all' | head -3
sinfo -o all
sinfo --format=%P
sinfo -O NodeHost,StateLong
sinfo -O partition,available,nodes
sinfo -O all
sinfo -O ALL -h -p gpu
sinfo -O nodelist:10,statelong:.10
sinfo -O nodelist:,cpus
sinfo -O nodelist:5x,cpus
sinfo -O ''
sinfo -O partition,nosuch
sinfo -O partition:abc
sinfo -N -O nodelist,gres,gresused
sinfo -N -O NodeHost:10,AllocMem:10,Memory:10,FreeMem:10 | cut -c1-30
sinfo --Format=nodehost,statecompact
sinfo -O statecomplete,nodelist
sinfo -O StateComplete -N
sinfo -O partition -o %N
sinfo -o %N -O partition
sinfo --json | head -60
sinfo --json -p gpu
sinfo --json=v0.0.45 -n n1
sinfo --json=list
sinfo --json=bad
sinfo --json -p nosuch
sinfo --json -N | head -5
sinfo --json -s | head -5
sinfo --yaml -p small
sinfo --yaml=list
sinfo -T
sinfo --reservation -l
sinfo -T -h
sinfo -i 0
sinfo -i abc
sinfo -v -h -p small
sinfo -V
sinfo --version
sinfo --usage
sinfo --help | head -5
sinfo --help | wc -l
sinfo --foo
sinfo -Y
sinfo --no
sinfo --n
sinfo extra
sinfo -M oracle
sinfo -M all -h
sinfo -M nosuch
sinfo -M oracle -h -o %P
sinfo --federation
sinfo --local -h
sinfo --hide -h
sinfo -Q
sinfo --cluster=oracle -h
sinfo --clusters=nosuch
sinfo --noconvert -h -p gpu -o %m
sinfo -N -p debug,long
sinfo -p debug -n g1
sinfo -p gpu -t idle
sinfo -Nel
sinfo -hN -o '%N %P'
sinfo --autocomplete=x
bob$ sinfo -h -p small
carol$ sinfo -s
scontrol show job {J:run}
scontrol show job {J:gpu}
scontrol show job {J:begin}
scontrol show job {J:need}
scontrol show job {J:arr}
scontrol show job {J:arr}_0
scontrol show job {J:arr}_[0-1]
scontrol show job {J:arrheld}
scontrol show job {J:arrheld}_5
scontrol show job {J:hetq}
scontrol show job {J:hetq}+1
scontrol show job {J:hetq}+9
scontrol show job {J:bob}
scontrol show job {J:run},{J:gpu}
scontrol show job {J:run} {J:gpu}
scontrol show job 0
scontrol show job -1
scontrol show job 5x
scontrol show job {J:run}.0
scontrol show job ''
scontrol show job | grep -c JobId
scontrol -o show job | wc -l
scontrol -d show job {J:held}
scontrol -d show job {J:arr}_0
scontrol -dd show job {J:run}
scontrol -dd show job {J:held}
scontrol -d -o show job {J:gpu}
scontrol show -d job {J:gpu}
scontrol show -o job {J:gpu}
scontrol show job -d {J:gpu}
scontrol show job {J:gpu} -o
scontrol --details show job {J:gpu}
scontrol --oneliner show job {J:gpu}
scontrol show jobid {J:gpu}
scontrol show jobid={J:gpu}
scontrol show jobs | grep -c JobId
scontrol show jo {J:gpu}
scontrol show j {J:gpu}
scontrol show JOB {J:gpu}
scontrol sho job {J:gpu}
scontrol sh job {J:gpu}
scontrol s job {J:gpu}
scontrol SHOW job {J:gpu}
scontrol show
scontrol show foo
scontrol show n
scontrol show no n1
scontrol show nodes n1
scontrol show node
scontrol show node n1,n2
scontrol show node g[1-2]
scontrol show node n[1-9]
scontrol show node n9,n1
scontrol show node nosuch
scontrol show node n[
scontrol show node=n1
scontrol show nodename=n1
scontrol show node ''
scontrol show node n1 n2
scontrol -o show node | cut -d' ' -f1-3
scontrol -d show node g1
scontrol -d show node n1
scontrol -o -d show node n2
scontrol show node g1
scontrol show node b1
scontrol show node n4
scontrol show part small
scontrol show partition gpu
scontrol show partition long
scontrol show partition maint
scontrol show partition restricted
scontrol show partition bench
scontrol show partition=gpu
scontrol show partitionname=gpu
scontrol show partitions small
scontrol show part gpu long
scontrol show part gpu,long
scontrol show p gpu
scontrol -o show part
scontrol show part ''
scontrol show PART gpu
scontrol show step {J:run}.0
scontrol show step {J:run}.batch
scontrol show step {J:run}.99
scontrol show step 999999
scontrol show step 999999.0
scontrol show step abc
scontrol show step {J:held}
scontrol show steps {J:gpu}
scontrol -o show step {J:run}
scontrol -d show step {J:run}.0
scontrol show step {J:run}.extern
scontrol show step {J:arr}_0
scontrol show step {J:run}.0.1
scontrol show license
scontrol show licenses
scontrol show lic matlab
scontrol show license matlab
scontrol show license nosuch
scontrol show license=ansys
scontrol -o show lic
scontrol show res
scontrol show reservation
scontrol show reservation nosuch
scontrol show reservations
scontrol -o show res
scontrol show daemons
scontrol show hostnames n[1-2] extra
scontrol show hostlist
scontrol show hostlistsorted
scontrol show hostlist n1 n2
scontrol show hostnames n[1-2],n5 | wc -l
scontrol show host n[1-2]
scontrol show topology
scontrol show topo
scontrol show topoconf
scontrol show federation
scontrol show fed
scontrol show burstbuffer
scontrol show burst
scontrol show dwstat
scontrol show aliases n1
scontrol show alias n1
scontrol show assoc_mgr
scontrol show assoc_mgr flags=qos
scontrol show assoc_mgr flags=users
scontrol show assoc_mgr users=bob flags=users
scontrol show assoc_mgr accounts=ml flags=assoc
scontrol show assoc_mgr qos=tiny flags=qos
scontrol show assoc_mgr qos=high flags=qos
scontrol show assoc_mgr users=nosuch
scontrol show assoc_mgr foo=1
scontrol show assoc_mgr flags=bad
scontrol -o show assoc_mgr users=alice flags=assoc
scontrol show assoc users=bob
scontrol show cache
scontrol show config | head -5
scontrol show config | grep -c =
scontrol show conf | grep -i -E '^(ClusterName|SlurmctldHost|SelectType|PriorityWeight)'
scontrol -o show config | head -3
scontrol show config | cut -d= -f1
scontrol show config extra | head -3
scontrol show slurmctld
scontrol show frontend
scontrol show layouts
scontrol show powercap
scontrol show jobstep {J:run}.0
scontrol show ScopedConfig
scontrol show usage
scontrol show resv
scontrol show job {J:run} --json | head -40
scontrol show job {J:held} --json
scontrol show job {J:gpu} --json
scontrol show job {J:arr} --json
scontrol show job {J:begin} --yaml
scontrol show job 999999 --json
scontrol --json show job {J:bob}
scontrol show job {J:bob} --json=v0.0.44
scontrol show job {J:bob} --json=list
scontrol show job {J:bob} --json=bad
scontrol show node n1 --json
scontrol show node g1 --json
scontrol show node n9 --json
scontrol show node n1 --yaml
scontrol show part gpu --json
scontrol show part long --json
scontrol show part restricted --yaml
scontrol show part nosuch --json
scontrol show part --json | grep -c '"name"'
scontrol show lic --json
scontrol show res --json
scontrol show step {J:run}.0 --json
scontrol show steps --json | head -5
scontrol show config --json | head -30
scontrol show assoc_mgr --json | head -5
scontrol show topology --json
scontrol show hostnames n[1-2] --json
scontrol show fed --json
scontrol show bb --json
scontrol ping --yaml
scontrol version
scontrol --version
scontrol help | head -5
scontrol --help | head -5
scontrol --usage
scontrol -h | head -3
scontrol --foo
scontrol -Y
scontrol quiet
scontrol verbose
scontrol oneliner
scontrol details
scontrol exit
scontrol quit
scontrol '!!'
scontrol -M nosuch show job
scontrol -M oracle show job {J:gpu}
scontrol -M oracle ping
scontrol --local ping
scontrol --federation ping
scontrol -a show part maint
scontrol --all show part small
scontrol --hide show part small
scontrol -Q show job 999999
scontrol -v show part small
scontrol -u bob show job {J:bob}
scontrol --uid=1001 show part small
scontrol -F show node n1 | head -2
scontrol --sibling show job {J:gpu}
echo 'show part small' | scontrol
printf 'show hostnames n[1-2]\\nexit\\n' | scontrol
printf 'ping\\nquit\\n' | scontrol
printf 'foo\\n' | scontrol
printf 'show job 999999\\nshow part small\\n' | scontrol
printf 'help\\n' | scontrol | head -3
printf 'oneliner\\nshow part small\\n' | scontrol
printf 'quiet\\nshow job 999999\\n' | scontrol
printf '\\n\\n' | scontrol
printf 'hold\\n' | scontrol
printf 'version\\n' | scontrol
scontrol write batch_script {J:run}; cat slurm-*.sh
scontrol write batch_script {J:run} o.sh; cat o.sh
scontrol write batch_script {J:held} -
scontrol write batch_script {J:arr} -
scontrol write batch_script {J:arr}_0 -
scontrol write batch_script 999999 -
scontrol write batch_script abc -
scontrol write batch_script
scontrol write batch_script {J:run} /nosuch/x
scontrol write batch {J:run} -
scontrol write
scontrol write foo
scontrol write config
scontrol write config out.conf
scontrol write config /tmp/side.conf; wc -l < /tmp/side.conf
scontrol write env {J:run} -
scontrol write env_vars {J:run}
scontrol write batch_script {J:run} - extra
root$ scontrol write batch_script {J:bob} -
dave$ scontrol write batch_script {J:bob} -
scontrol getaddrs n1
scontrol getaddrs n[1-2]
scontrol getaddrs n9
scontrol getaddrs
scontrol getent n1
scontrol listjobs
scontrol liststeps
scontrol pidinfo 1
scontrol pidinfo
scontrol listpids {J:run}
scontrol fsdampeningfactor
scontrol errnumstr
scontrol errnumstr 2017
scontrol errnumstr 2
scontrol errnumstr ESLURM_INVALID_JOB_ID
scontrol errnumstr abc
scontrol errnumstr 99999
scontrol errnumstr all | head -5
scontrol setdebug
scontrol schedloglevel 1
scontrol schedloglevel
scontrol setdebugflags +backfill
scontrol setdebugflags
scontrol shutdown
scontrol takeover
scontrol cancel_reboot n1
scontrol reboot n1
scontrol reboot
scontrol power down n1
scontrol power
scontrol checkpoint able {J:run}
scontrol abort
scontrol cluster oracle
scontrol completing
scontrol token
scontrol token lifespan
scontrol token foo=1
scontrol wait_job
scontrol wait_job {J:run}
scontrol wait_job 999999
scontrol wait_job abc
scontrol wait_job {J:gpu}
scontrol wait_job {J:held}
scontrol top
scontrol top {J:need}
scontrol top 999999
scontrol top abc
scontrol top {J:bob}
scontrol notify
scontrol notify {J:run}
scontrol notify 999999 x
scontrol notify {J:held} x
scontrol notify abc x
scontrol notify {J:bob} x
scontrol delete
scontrol delete job {J:bob}
scontrol delete partition=small
scontrol delete partition nosuch
scontrol delete reservation nosuch
scontrol delete nodename=n1
scontrol delete foo=1
scontrol create
scontrol create reservation
scontrol create foo=1
scontrol create res nodes=n4 duration=5
scontrol create partition=x
scontrol create nodename=x
scontrol update foo=1
scontrol update jobid=999999 timelimit=5
scontrol update jobid=abc timelimit=5
scontrol update jobid={J:held}
scontrol update nodename=n1 state=drain reason=x
scontrol update partition=small state=down
scontrol update partitionname=small maxtime=5
scontrol update reservation=x duration=5
scontrol update stepid={J:run}.0 timelimit=5
scontrol update licenses=foo
scontrol update job
scontrol update timelimit=5
scontrol update jobname=later nice=5
scontrol update name=later comment=x
scontrol suspend {J:run}
scontrol resume {J:run}
scontrol suspend 999999
scontrol suspend
scontrol resume
scontrol requeue
scontrol requeue 999999
scontrol requeue abc
scontrol requeue {J:held}
scontrol requeue {J:bob}
scontrol requeuehold
scontrol requeuehold 999999
scontrol requeuehold {J:bob}
scontrol hold {J:bob}
scontrol release {J:bob}
scontrol release 999999
scontrol release
scontrol release abc
scontrol uhold
scontrol uhold 999999
scontrol hold {J:run}
scontrol release {J:run}
scontrol hold ''
scontrol hold nosuchname
scontrol hold jobname=nosuch
scontrol hold name=nosuch
scontrol release jobname=nosuch""".split("\n")

QUERY_VARIABLES = [
    tuple(x.split("|"))
    for x in """SQUEUE_ACCOUNT|ml|squeue -h -o '%i %a'
SQUEUE_ACCOUNT|nosuch|squeue -o %i
SQUEUE_ALL|1|squeue -h -o %i
SQUEUE_ARRAY|1|squeue -h -o %i
SQUEUE_ARRAY|0|squeue -h -o %i -t R
SQUEUE_FEDERATION|1|squeue -h -o %i
SQUEUE_FORMAT|%i|squeue
SQUEUE_FORMAT|%all|squeue -h
SQUEUE_FORMAT|x|squeue -l
SQUEUE_FORMAT|%i|squeue -s
SQUEUE_FORMAT|%i|squeue -O jobid
SQUEUE_FORMAT2|jobid,name|squeue
SQUEUE_FORMAT2|nosuch|squeue
SQUEUE_FORMAT2|jobid:6,name:.8|squeue -h
SQUEUE_FORMAT2|jobid|squeue -o %j
SQUEUE_LICENSES|matlab|squeue -o %i
SQUEUE_LOCAL|1|squeue -h -o %i
SQUEUE_NAMES|runner|squeue -o %i
SQUEUE_PARTITION|gpu|squeue -o %i
SQUEUE_PARTITION|gpu|squeue -p debug -o %i
SQUEUE_PARTITION|nosuch|squeue -o %i
SQUEUE_PRIORITY|1|squeue -h -o %i
SQUEUE_QOS|high|squeue -o %i
SQUEUE_SIBLING|1|squeue -h -o %i
SQUEUE_SORT|i|squeue -h -o %i
SQUEUE_SORT|x|squeue -h -o %i
SQUEUE_STATES|PD|squeue -h -o '%i %t'
SQUEUE_STATES|all|squeue -h -o '%i %t'
SQUEUE_STATES|bad|squeue
SQUEUE_STATES|R|squeue -t PD -h -o %i
SQUEUE_USERS|alice|squeue -h -o '%i %u'
SQUEUE_USERS|nosuch|squeue
SQUEUE_USERS|bob|squeue -u alice -h -o %u
SLURM_TIME_FORMAT|standard|squeue -j {J:begin} -o %S
SLURM_TIME_FORMAT|%s|squeue -j {J:begin} -o %S
SLURM_TIME_FORMAT||squeue -j {J:begin} -o %S
SLURM_TIME_FORMAT|%a %b %d|squeue -j {J:begin} -o %S
SLURM_TIME_FORMAT|relative|scontrol show job {J:begin}
SLURM_TIME_FORMAT|%Y|scontrol show job {J:begin}
SLURM_TIME_FORMAT|%H|squeue --start -j {J:begin}
SLURM_BITSTR_LEN|3|squeue -j {J:arrheld}
SLURM_BITSTR_LEN|5|squeue -h -j {J:arr} -o %i
SLURM_BITSTR_LEN|0|squeue -h -j {J:arrheld} -o %i
SLURM_BITSTR_LEN|bad|squeue -h -j {J:arrheld} -o %i
SLURM_BITSTR_LEN|4|scontrol show job {J:arrheld}
SLURM_CLUSTERS|oracle|squeue -h -o %i
SLURM_CLUSTERS|nosuch|squeue
SLURM_CLUSTERS|oracle|sinfo
SLURM_CLUSTERS|nosuch|scontrol show part
SLURM_CONF|/nosuch|squeue
SLURM_DEBUG_FLAGS|bad|squeue -h -o %i
SINFO_ALL|1|sinfo -h
SINFO_FEDERATION|1|sinfo -h
SINFO_FORMAT|%P %N|sinfo
SINFO_FORMAT|%n|sinfo -h
SINFO_FORMAT|%P|sinfo -l
SINFO_FORMAT|%P|sinfo -s
SINFO_FORMAT|%N|sinfo -N
SINFO_FORMAT|%P|sinfo -R
SINFO_FUTURE|1|sinfo -h
SINFO_LOCAL|1|sinfo -h
SINFO_PARTITION|gpu|sinfo
SINFO_PARTITION|gpu|sinfo -p small
SINFO_PARTITION|nosuch|sinfo
SINFO_SORT|P|sinfo -h
SINFO_SORT|-N|sinfo -N -h -o %N
SINFO_SORT|x|sinfo
SLURM_TIME_FORMAT|%Y|sinfo -R
SCONTROL_ALL|1|scontrol show part small
SCONTROL_FUTURE|1|scontrol show part small
SCONTROL_LOCAL|1|scontrol show part small
SCONTROL_FEDERATION|1|scontrol show part small
SLURM_JOB_NODELIST|n[1-2]|scontrol show hostnames
SLURM_NODELIST|n[1-2]|scontrol show hostnames
SLURM_JOB_NODELIST|bad[|scontrol show hostnames
SLURM_JOB_NODELIST|n1|scontrol show hostlist""".split("\n")
]

HOLDS = """scontrol hold {J:need}
scontrol -o show job {J:need}
scontrol hold {J:need}
scontrol release {J:need}
scontrol -o show job {J:need}
scontrol release {J:need}
scontrol uhold {J:need}
squeue -h -j {J:need} -o '%r %Q'
scontrol release {J:need}
scontrol hold {J:arr}
squeue -h -j {J:arr} -o '%i %t %r'
scontrol release {J:arr}
squeue -h -j {J:arr} -o '%i %t %r'
scontrol hold {J:arr}_8
squeue -h -j {J:arr} -o '%i %t %r'
scontrol release {J:arr}_8
scontrol hold {J:arr}_[5-6]
squeue -h -j {J:arr} -o '%i %t %r'
scontrol release {J:arr}_[5-6]
scontrol hold {J:arr}_77
scontrol hold {J:need},{J:begin}
scontrol release {J:need},{J:begin}
scontrol hold {J:need} {J:begin}
squeue -h -j {J:need},{J:begin} -o '%i %r'
scontrol release {J:need} {J:begin}
scontrol hold {J:need},999999
scontrol release {J:need},999999
scontrol hold name=later
squeue -h -j {J:begin} -o '%i %r'
scontrol release name=later
scontrol hold jobid={J:need}
scontrol release jobid={J:need}
scontrol hold job={J:need}
scontrol release job={J:need}
scontrol hold later
scontrol release later
scontrol hold {J:hetq}
scontrol release {J:hetq}
scontrol hold {J:hetq}
scontrol hold {J:hetq}+1
scontrol hold {J:need}x
scontrol HOLD {J:need}
scontrol holdx {J:need}
scontrol ho {J:need}
scontrol rel {J:need}
root$ scontrol hold {J:need}
squeue -h -j {J:need} -o '%r %Q'
scontrol release {J:need}
root$ scontrol release {J:need}
root$ scontrol uhold {J:need}
squeue -h -j {J:need} -o '%r %Q'
scontrol release {J:need}
dave$ scontrol hold {J:need}
dave$ scontrol release {J:need}
bob$ scontrol hold {J:need}
bob$ scontrol release {J:need}
carol$ scontrol hold {J:need}
root$ scontrol update jobid={J:need} priority=0
root$ scontrol update jobid={J:need} priority=500
squeue -h -j {J:need} -o '%r %Q'
root$ scontrol release {J:need}
scontrol top {J:need}
scontrol suspend {J:run}
root$ scontrol suspend {J:run}
squeue -h -j {J:run} -o '%i %t %r'
scontrol show job {J:run} | grep -E 'State|Suspend'
root$ scontrol suspend {J:run}
squeue -s -h -j {J:run} -o %i
sinfo -h -n n1 -p debug -o '%t %C'
root$ scontrol resume {J:run}
root$ scontrol resume {J:run}
squeue -h -j {J:run} -o '%i %t %r'
root$ scontrol suspend {J:held}
root$ scontrol resume {J:held}
root$ scontrol suspend {J:arr}_0
squeue -h -j {J:arr} -o '%i %t %r'
root$ scontrol resume {J:arr}_0
root$ scontrol suspend {J:run},{J:gpu}
root$ scontrol resume {J:run},{J:gpu}
root$ scontrol suspend {J:run} {J:gpu}
root$ scontrol resume {J:run} {J:gpu}""".split("\n")

UPDATES = (
    [
        "scontrol update jobid={J:held} " + x
        for x in """timelimit=20
timelimit=1:00:00
timelimit=1-0
timelimit=UNLIMITED
timelimit=infinite
timelimit=0
timelimit=-1
timelimit=30
timelimit+=10
timelimit-=5
timelimit=+10
timelimit=-100
timelimit=1:2:3:4
TimeLimit=40
TIMELIMIT=41
time=42
timel=43
timemin=5
timemin=abc
timemin=0
timemin=100000
deadline=2031-01-01
deadline=abc
deadline=2020-01-01
name=
name=plain
jobname='a b'
JobName=x
comment=hello
comment='a b'
comment=
admincomment=x
systemcomment=x
extra=x
partition=nosuch
partition=gpu
partition=debug,long
partition=restricted
partition=debug
Partition=long
partition=
qos=normal
qos=high
qos=HIGH
qos=tiny
qos=
account=ml
account=nosuch
account=
priority=0
priority=abc
priority=-1
priority=TOP
nice=0
nice
nice=abc
nice=+5
nice=2147483646
nice=20
numtasks=4
numtasks=0
numtasks=abc
numtasks=2-4
numnodes=1
numnodes=2-3
numnodes=0
numnodes=abc
numnodes=9
numcpus=4
numcpus=2-4
numcpus=abc
numcpus=0
minnodes=2
reqnodes=2
reqnodelist=
reqnodelist=n1,n2
reqnodelist=n9
reqnodelist=n[
nodelist=n1
nodelist=
excnodelist=n1
excnodelist=n9
excnodelist=
features=cpu
features=nosuch
features='cpu&avx2'
features=[cpu|gpu]
features=
features=avx2
prefer=cpu
prefer=nosuch
prefer=
licenses=matlab:1
licenses=foo
licenses=
licenses=ansys:99
gres=gpu:2
gres=foo:1
gres=
gres=none
gres=gpu:a100:1
tresperjob=gres/gpu:1
trespernode=gres/gpu:1
trespernode=
tresperjob=
tresbind=gres/gpu:closest
cpuspertask=2
cpuspertask=0
cpuspertres=gpu:2
minmemorycpu=200
minmemorycpu=abc
minmemorycpu=1G
minmemorynode=300
minmemorynode=0
minmemorynode=99999999
mintmpdisknode=10
mintmpdisknode=abc
mincpusnode=2
mincpusnode=0
ntaskspernode=2
ntaskspersocket=1
ntaskspercore=1
contiguous=yes
contiguous=1
contiguous=no
contiguous=maybe
contiguous=0
oversubscribe=yes
oversubscribe=1
oversubscribe=no
oversubscribe=maybe
shared=yes
requeue=0
requeue=1
requeue=2
requeue=abc
dependency=afterok:{J:gpu}
dependency=afterany:{J:run}:{J:gpu}
dependency=singleton
dependency=abc
dependency=999999
dependency=
dependency=afterok:{J:run}
starttime=now
starttime=now+1hour
starttime=abc
starttime=2031-01-01T00:00:00
starttime=tomorrow
starttime=0
eligibletime=2031-02-02
endtime=now+1day
mailtype=END
mailtype=NONE
mailtype=bad
mailuser=bob
mailuser=
workdir=/home/alice
workdir=relative
stdout=/tmp/x
stdout=o.%j
stderr=/tmp/e
stdin=/dev/null
stdout=
switches=1
switches=1@5
switches=abc
thread=1
corespec=1
corespec=abc
threadspec=1
reservation=nosuch
reservationname=nosuch
reservation=
wckey=x
userid=bob
uid=1002
userid=nosuch
burstbuffer=x
burstbuffer=
clusterfeatures=x
clusters=oracle
clusters=nosuch
delayboot=5
delayboot=abc
delayboot=
siteFactor=5
sitefactor=abc
batchfeatures=cpu
batchflag=1
profile=none
network=x
arraytaskthrottle=2
resetaccruetime
resetaccruetime=1
segment=1
segmentsize=1
spreadjob=1
sicp=1
suspendtime=5
foo
=5
timelimit=
timelimit=5 foo=1
timelimit=5 nice=5
foo=1 timelimit=6
timelimit=7 qos=nosuch
jobid=5
timelimit=8,name=x
TimeLimit = 9
mcslabel=x
powerflags=x
container=x
containerid=x
cronflag=1
gres_flags=x
gresflags=enforce-binding
gputype=x
geometry=1
exitcode=1
fedsiblings=x
submitline=x
command=x
priority=5 nice=3""".split("\n")
    ]
    + """scontrol update jobid={J:run} timelimit=25
scontrol update jobid={J:run} timelimit=40
scontrol update jobid={J:run} timelimit=1
scontrol update jobid={J:run} partition=long
scontrol update jobid={J:run} numnodes=2
scontrol update jobid={J:run} numcpus=4
scontrol update jobid={J:run} reqnodelist=n2
scontrol update jobid={J:run} features=cpu
scontrol update jobid={J:run} account=ml
scontrol update jobid={J:run} qos=high
scontrol update jobid={J:run} name=newname
scontrol update jobid={J:run} comment=newcomment
scontrol update jobid={J:run} dependency=singleton
scontrol update jobid={J:run} starttime=now+5
scontrol update jobid={J:run} licenses=matlab:1
scontrol update jobid={J:run} gres=gpu:1
scontrol update jobid={J:run} minmemorynode=100
scontrol update jobid={J:run} stdout=x
scontrol update jobid={J:run} workdir=/tmp
scontrol update jobid={J:run} nice=5
scontrol update jobid={J:run} priority=5
scontrol update jobid={J:run} requeue=0
scontrol update jobid={J:run} mailtype=END
scontrol update jobid={J:run} excnodelist=n2
scontrol update jobid={J:run} oversubscribe=yes
scontrol update jobid={J:run} contiguous=1
scontrol update jobid={J:run} corespec=1
scontrol update jobid={J:run} deadline=2031-01-01
scontrol update jobid={J:run} wckey=x
scontrol update jobid={J:run} switches=1
scontrol update jobid={J:run} endtime=now+10minutes
scontrol update jobid={J:arr} arraytaskthrottle=0
scontrol update jobid={J:arr} arraytaskthrottle=abc
scontrol update jobid={J:arr} arraytaskthrottle=5
scontrol update jobid={J:arr}_7 arraytaskthrottle=5
scontrol update jobid={J:arr} timelimit=30
scontrol update jobid={J:arr}_7 name=seven
scontrol update jobid={J:arr}_[5-6] timelimit=8
scontrol update jobid={J:arr}_77 timelimit=8
scontrol update jobid={J:arr}_x timelimit=8
scontrol update jobid={J:arr}_0 timelimit=8
scontrol update jobid={J:arr} nice=7
scontrol update jobid={J:arrheld}_5 comment=five
scontrol update jobid={J:hetq} timelimit=5
scontrol update jobid={J:hetq}+1 timelimit=6
scontrol update jobid={J:hetq}+9 timelimit=6
scontrol update jobid={J:held},{J:need} timelimit=7
scontrol update jobid={J:held}+1 timelimit=7
scontrol update jobid= timelimit=7
scontrol update job={J:held} timelimit=11
scontrol update job {J:held} timelimit=12
scontrol update jobid {J:held} timelimit=12
scontrol update JobId={J:held} TimeLimit=12
scontrol update jobname=held timelimit=13
scontrol update jobname=held userid=alice timelimit=14
scontrol update jobname=nosuch timelimit=14
scontrol up jobid={J:held} timelimit=15
scontrol upd jobid={J:held} timelimit=16
scontrol UPDATE jobid={J:held} timelimit=17
scontrol updatex jobid={J:held} timelimit=17
scontrol -Q update jobid={J:held} timelimit=abc
scontrol -v update jobid={J:held} timelimit=18
bob$ scontrol update jobid={J:held} timelimit=5
carol$ scontrol update jobid={J:held} timelimit=5
dave$ scontrol update jobid={J:held} timelimit=50
root$ scontrol update jobid={J:held} timelimit=2-0
root$ scontrol update jobid={J:held} priority=100
root$ scontrol update jobid={J:held} priority=TOP
root$ scontrol update jobid={J:held} nice=-100
root$ scontrol update jobid={J:held} admincomment=adm
root$ scontrol update jobid={J:held} admincomment=
root$ scontrol update jobid={J:held} systemcomment=sys
root$ scontrol update jobid={J:held} account=admin
root$ scontrol update jobid={J:held} userid=bob
root$ scontrol update jobid={J:held} sitefactor=5
root$ scontrol update jobid={J:held} comment=byroot
root$ scontrol update jobid={J:run} timelimit=3-0
root$ scontrol update jobid={J:run} priority=5
root$ scontrol update jobid={J:run} endtime=now+2hours
root$ scontrol update jobid={J:held} partition=restricted
root$ scontrol update jobid={J:held} qos=tiny
root$ scontrol update jobid={J:held} numtasks=6
root$ scontrol update jobid={J:held} corespec=1
root$ scontrol update jobid={J:held} reservationname=nosuch
root$ scontrol update jobid={J:held} extra=foo""".split("\n")
)

CONTROLS = """root$ scontrol update nodename=n4 state=drain reason=test
scontrol show node n4 | grep -v -E 'Load|FreeMem|Time'
sinfo -R -h -o '%E %N'
sinfo -R
sinfo -R -o '%E|%u|%U|%N|%t'
sinfo -N -h -n n4 -o '%t %T'
sinfo -h -p debug -o '%t %N'
sinfo -t drain -h -o '%t %N'
root$ scontrol update nodename=n4 state=undrain
root$ scontrol update nodename=n4 state=resume
root$ scontrol update nodename=n4 state=resume
sinfo -N -h -n n4 -p debug -o '%t %T %E'
root$ scontrol update nodename=n4 state=drain
root$ scontrol update nodename=n4 state=drain reason=
root$ scontrol update nodename=n9 state=drain reason=x
root$ scontrol update nodename=n[3-4] state=drain reason='two words'
sinfo -R -h -o '%E %N'
sinfo -R -l
sinfo -N -l -n n3 -p debug -h
root$ scontrol update nodename=n[3-4] state=idle
root$ scontrol update nodename=n4 state=fail reason=x
sinfo -N -h -n n4 -p debug -o '%t %T %E'
root$ scontrol update nodename=n4 state=resume
root$ scontrol update nodename=n4 state=foo
root$ scontrol update nodename=n4 state=down
root$ scontrol update nodename=n4 state=alloc
root$ scontrol update nodename=n4 state=power_down
root$ scontrol update nodename=n4 weight=5
root$ scontrol update nodename=n4 weight=abc
root$ scontrol update nodename=n4 comment=hello
scontrol show node n4 | grep -i comment
root$ scontrol update nodename=n4 comment=
root$ scontrol update nodename=n4 extra=ex
scontrol show node n4 | grep -i extra
root$ scontrol update nodename=n4 extra=
root$ scontrol update nodename=n4 features=cpu,new
scontrol show node n4 | grep -i feat
root$ scontrol update nodename=n4 activefeatures=cpu
scontrol show node n4 | grep -i feat
root$ scontrol update nodename=n4 availablefeatures=cpu,avx2,rack1
root$ scontrol update nodename=n4 activefeatures=cpu,avx2,rack1
root$ scontrol update nodename=n4 gres=gpu:1
root$ scontrol update nodename=n4 gres=foo
root$ scontrol update nodename=n4 foo=1
root$ scontrol update nodename=n4
root$ scontrol update nodename=n4 reason=x
root$ scontrol update nodename= state=drain reason=x
root$ scontrol update nodename=n4 cpubind=cores
root$ scontrol update nodename=n4 cpubind=bad
root$ scontrol update nodename=n4 nodeaddr=x
root$ scontrol update nodename=n4 nodeaddr=n4
root$ scontrol update nodename=n4 resumeafter=5
root$ scontrol update nodename=n4 topology=x
root$ scontrol update nodename=n4 certtoken=x
root$ scontrol update node=n4 weight=10
root$ scontrol update nodename=n4 weight=10
dave$ scontrol update nodename=n4 state=drain reason=dave
sinfo -R -h -o '%E %u %N'
dave$ scontrol update nodename=n4 state=resume
alice$ scontrol update nodename=n4 state=drain reason=x
root$ scontrol create reservation reservationname=r2 starttime=2030-01-01T00:00:00 duration=60 users=alice nodes=n4
scontrol show reservation r2
scontrol -o show res r2
scontrol show res r2 --json
sinfo -T
sinfo -T -h
sinfo -T -o %i
sbatch -H --reservation=r2 --wrap hostname
root$ scontrol create reservation reservationname=r2 starttime=2030-01-01T00:00:00 duration=60 users=alice nodes=n4
root$ scontrol update reservationname=r2 duration=90
root$ scontrol update reservation=r2 users+=bob
scontrol show res r2
root$ scontrol update reservation=r2 users-=bob
root$ scontrol update reservation=r2 accounts=ml
root$ scontrol update reservation=r2 nodes=n3
root$ scontrol update reservation=r2 nodes=n9
root$ scontrol update reservation=r2 flags=maint
root$ scontrol update reservation=r2 flags+=ignore_jobs
root$ scontrol update reservation=r2 flags=bad
root$ scontrol update reservation=r2 starttime=2030-01-02
root$ scontrol update reservation=r2 endtime=2030-01-03
root$ scontrol update reservation=r2 duration+=10
root$ scontrol update reservation=r2 partition=debug
root$ scontrol update reservation=r2 features=cpu
root$ scontrol update reservation=r2 foo=1
root$ scontrol update reservation=r2
root$ scontrol update reservation=nosuch duration=5
scontrol show res r2
root$ scontrol delete reservationname=r2
root$ scontrol delete reservation=r2
root$ scontrol create reservation starttime=2030-01-01 duration=60 users=alice nodes=n4
scontrol show res
root$ scontrol delete reservation=alice_1
root$ scontrol delete reservation=alice_2
root$ scontrol delete reservation=alice_3
root$ scontrol create res reservationname=r3 duration=60 users=alice nodes=n4
root$ scontrol create res reservationname=r3 starttime=now+1day users=alice nodes=n4
root$ scontrol delete res=r3
root$ scontrol create res reservationname=r3 starttime=now+1day duration=60 nodes=n4
root$ scontrol create res reservationname=r3 starttime=now+1day duration=60 users=nosuch nodes=n4
root$ scontrol create res reservationname=r3 starttime=now+1day duration=60 users=alice
root$ scontrol create res reservationname=r3 starttime=now+1day duration=60 users=alice nodes=n9
root$ scontrol create res reservationname=r3 starttime=abc duration=60 users=alice nodes=n4
root$ scontrol create res reservationname=r3 starttime=2020-01-01 duration=60 users=alice nodes=n4
root$ scontrol create res reservationname=r3 starttime=2030-03-01 duration=abc users=alice nodes=n4
root$ scontrol create res reservationname=r3 starttime=2030-03-01 duration=60 users=alice nodecnt=2
scontrol show res r3
root$ scontrol delete res r3
root$ scontrol create res=r3 starttime=2030-03-01 duration=60 accounts=ml nodes=n1 flags=maint,ignore_jobs
scontrol show res r3
root$ scontrol delete reservation r3
root$ scontrol create res=r4 starttime=2030-03-01 endtime=2030-03-02 users=root nodes=ALL
scontrol show res r4
root$ scontrol delete reservation=r4
root$ scontrol create res=r5 starttime=2030-03-01 duration=infinite users=alice,bob corecnt=4
scontrol show res r5
root$ scontrol delete reservation=r5
root$ scontrol create res=r6 starttime=2030-03-01 duration=1-0 groups=alice nodes=n4 flags=daily
scontrol show res r6
root$ scontrol delete reservation=r6
root$ scontrol create res=r7 starttime=2030-03-01 duration=60 users=-bob accounts=ml nodes=n4
root$ scontrol delete reservation=r7
root$ scontrol create res=r8 starttime=2030-03-01 duration=60 users=alice partition=gpu
root$ scontrol create res=r8 starttime=2030-03-01 duration=60 users=alice partition=gpu nodecnt=1
scontrol show res r8
root$ scontrol delete reservation=r8
root$ scontrol create res=r9 starttime=2030-03-01 duration=60 users=alice licenses=matlab:2 flags=license_only
root$ scontrol delete reservation=r9
root$ scontrol create res=ra starttime=2030-03-01 duration=60 users=alice tres=gres/gpu=2
root$ scontrol delete reservation=ra
dave$ scontrol create res=rb starttime=2030-03-01 duration=60 users=alice nodes=n4
dave$ scontrol delete reservation=rb
root$ scontrol create partition=tp nodes=n1
scontrol show part tp
sinfo -p tp
root$ scontrol create partition=tp nodes=n1
root$ scontrol create partition=tq nodes=n9
root$ scontrol create partition=tq
root$ scontrol create partitionname=tr nodes=n[1-2] maxtime=1:00:00 default=no
scontrol show part tr
root$ scontrol update partition=tr state=down
sinfo -h -p tr
root$ scontrol update partition=tr state=up
root$ scontrol update partition=tr state=inactive
sinfo -h -p tr
root$ scontrol update partition=tr state=drain
sinfo -h -p tr
root$ scontrol update partition=tr state=foo
root$ scontrol update partition=tr maxtime=abc
root$ scontrol update partition=tr maxtime=infinite
root$ scontrol update partition=tr defaulttime=30
root$ scontrol update partition=tr defaulttime=none
root$ scontrol update partition=tr maxnodes=1
root$ scontrol update partition=tr maxnodes=unlimited
root$ scontrol update partition=tr minnodes=1
root$ scontrol update partition=tr nodes=n3
root$ scontrol update partition=tr nodes+=n4
root$ scontrol update partition=tr nodes-=n3
root$ scontrol update partition=tr allowaccounts=ml
root$ scontrol update partition=tr denyaccounts=physics
root$ scontrol update partition=tr allowqos=normal
root$ scontrol update partition=tr allowqos=nosuch
root$ scontrol update partition=tr allowgroups=alice
root$ scontrol update partition=tr priorityjobfactor=5
root$ scontrol update partition=tr prioritytier=5
root$ scontrol update partition=tr hidden=yes
sinfo -h -p tr
root$ scontrol update partition=tr hidden=no
root$ scontrol update partition=tr hidden=maybe
root$ scontrol update partition=tr rootonly=yes
root$ scontrol update partition=tr disablerootjobs=yes
root$ scontrol update partition=tr oversubscribe=force:2
root$ scontrol update partition=tr oversubscribe=yes
root$ scontrol update partition=tr oversubscribe=bad
root$ scontrol update partition=tr gracetime=30
root$ scontrol update partition=tr preemptmode=cancel
root$ scontrol update partition=tr preemptmode=bad
root$ scontrol update partition=tr defmempercpu=200
root$ scontrol update partition=tr maxmempercpu=200
root$ scontrol update partition=tr defmempernode=500
root$ scontrol update partition=tr qos=tiny
root$ scontrol update partition=tr qos=nosuch
root$ scontrol update partition=tr overtimelimit=5
root$ scontrol update partition=tr reqresv=yes
root$ scontrol update partition=tr lln=yes
root$ scontrol update partition=tr alternate=debug
root$ scontrol update partition=tr maxcpuspernode=4
root$ scontrol update partition=tr maxcpuspersocket=4
root$ scontrol update partition=tr tresbillingweights=cpu=1.0,mem=0.5G
root$ scontrol update partition=tr jobdefaults=defcpupergpu=2
root$ scontrol update partition=tr exclusiveuser=yes
root$ scontrol update partition=tr powerdownonidle=yes
root$ scontrol update partition=tr default=yes
scontrol show part tr
sinfo -s -h
root$ scontrol update partition=debug default=yes
root$ scontrol update partition=tr foo=1
root$ scontrol update partition=tr
root$ scontrol update partition=nosuch state=up
root$ scontrol delete partition=tr
root$ scontrol delete partition=tp
root$ scontrol delete partitionname=tp
root$ scontrol delete partition=debug
root$ scontrol reconfigure
root$ scontrol setdebug info
root$ scontrol setdebug 5
root$ scontrol setdebug bad
root$ scontrol setdebug
root$ scontrol setdebugflags +backfill
root$ scontrol setdebugflags -backfill
root$ scontrol setdebugflags backfill
root$ scontrol setdebugflags +bad
root$ scontrol schedloglevel 1
root$ scontrol schedloglevel 0
root$ scontrol schedloglevel enable
root$ scontrol schedloglevel bad
root$ scontrol ping
root$ scontrol token username=alice | cut -c1-12
root$ scontrol token lifespan=10 | cut -c1-12
root$ scontrol token username=nosuch
root$ scontrol requeue {J:held}
root$ scontrol update nodename=n4 state=drain reason=x; sinfo -h -R -o %E; scontrol update nodename=n4 state=resume
root$ scontrol fsdampeningfactor 5
root$ scontrol update jobid={J:bob} timelimit=1-0
root$ scontrol release {J:bob}
root$ scontrol hold {J:bob}
bob$ squeue -h -j {J:bob} -o '%i %t %r'""".split("\n")

CANCELS = """scancel {J:c1}
scancel {J:c1}
scancel 999999
scancel abc
scancel 999999 abc
scancel -v 999999
scancel -v {J:c2}
scancel -vv 999999
scancel -Q 999999
scancel --quiet abc
scancel {J:c4}_1
scancel -v {J:c4}_2
scancel {J:c4}_[3-4]
scancel {J:c4}_[5,7]
scancel {J:c4}_3
scancel {J:c4}_x
scancel {J:c4}_
scancel {J:c4}_[
scancel {J:c4}_[40-50]
scancel -v {J:c4}_99
scancel {J:c4}_10,{J:c4}_11
scancel {J:c4}_[12-13] {J:c4}_14
scancel {J:c4}_0.0
scancel --array={J:c4}
scancel {J:ch}+1
scancel -v {J:ch}+1
scancel {J:ch}+9
scancel {J:run}.99
scancel {J:run}.batch
scancel {J:run}.abc
scancel {J:run}.
scancel 999999.0
scancel -s USR1 {J:run}
scancel -s USR1 {J:run}.0
scancel -s 0 {J:run}
scancel -s bad {J:run}
scancel -s 999 {J:run}
scancel -s SIGUSR1 {J:run}
scancel -s usr1 {J:run}
scancel -s CONT {J:run}
scancel -s -1 {J:run}
scancel --signal=10 {J:run}
scancel --signal {J:run}
scancel -b -s CONT {J:run}
scancel -b {J:c3}
scancel -f -s CONT {J:run}
scancel -s CONT {J:c3}
scancel --full -s CONT {J:run}
scancel --batch --signal=CONT {J:run}
scancel --ctld -s CONT {J:run}
scancel --ctld 999999
scancel --ctld {J:c3}
scancel -t R -u bob
scancel -t PD -n nosuch
scancel -t bad
scancel -t PD -n cc3
scancel --state=PD -n nosuch
scancel -t CG
scancel -t R,PD -n nosuch
scancel -n cc5 -p long
scancel -n cc5 -p debug
scancel -A nosuch
scancel -A ml -n nosuch
scancel -q nosuch
scancel -q high -n nosuch
scancel -R nosuch
scancel --reservation=nosuch
scancel --wckey=x
scancel -w n4
scancel -w n9
scancel -w n[
scancel -w n1 -n nosuch
scancel --nodelist=n9
scancel -p maint
scancel -p nosuch -n x
scancel -u carol
scancel -u nosuch -n x
scancel -u 1003
scancel -u 99999
scancel --user=carol
scancel -M oracle 999999
scancel -M nosuch 999999
scancel -M oracle -n nosuch
scancel --me -n nosuch
scancel --me -t S
scancel -i -n nosuch
scancel --cron {J:c9}
scancel -c {J:c9}
scancel -H {J:c9}
scancel --hurry {J:c9}
scancel --sibling=x {J:c9}
scancel --admin-comment=x {J:c9}
scancel --foo
scancel -Y
scancel --na=x
scancel --s
scancel --usage
scancel --help | head -4
scancel --help | wc -l
scancel -V
scancel --version
scancel ''
scancel ' '
scancel 5x
scancel 5_
scancel 5+
scancel 5+x
scancel 0x5
scancel 1.5
scancel -5
scancel -- -5
scancel 99999999999
scancel {J:cb}
scancel -v {J:cb}
scancel {J:cb} {J:c9}
scancel -u bob -n ccb
scancel -n ccb
scancel -u bob -t PD -v
carol$ scancel {J:cb}
dave$ scancel -v {J:cb}
bob$ scancel -v {J:cb}
scancel --me -v -n cc4
SCANCEL_NAME=nosuch scancel --me
SCANCEL_USER=bob scancel
SCANCEL_STATE=bad scancel
SCANCEL_STATE=R scancel -n nosuch
SCANCEL_PARTITION=nosuch scancel
SCANCEL_ACCOUNT=nosuch scancel
SCANCEL_QOS=nosuch scancel
SCANCEL_VERBOSE=1 scancel 999999
SCANCEL_INTERACTIVE=1 scancel -n nosuch
SCANCEL_BATCH=1 scancel -s CONT {J:run}
SCANCEL_FULL=1 scancel -s CONT {J:run}
SCANCEL_CTLD=1 scancel 999999
SCANCEL_WCKEY=x scancel
scancel {J:arr}_0
scancel -t R -n arr
scancel {J:arr}
root$ scancel -v {J:gpu}
root$ scancel -u alice -n later
scancel {J:hetq}
scancel {J:held} {J:begin} {J:need}
root$ scancel -u nosuch""".split("\n")

SACCT = """sacct -j {J:aok}
sacct -j {J:aok},{J:afail}
sacct -j {J:aok} -X
sacct -j {J:aok} -X -n
sacct -j {J:aok} --noheader
sacct -j {J:aok} -P
sacct -j {J:aok} --parsable
sacct -j {J:aok} --parsable2
sacct -j {J:aok} --delimiter=,
sacct -j {J:aok} -P --delimiter=,
sacct -j {J:aok} -p --delimiter=ab
sacct -j {J:aok} -P --delimiter=
sacct -j {J:aok} -l | head -2 | cut -c1-300
sacct -j {J:aok} --long -X -P
sacct -j {J:afail} -l -P
sacct -j {J:agpu} -l -P
sacct -j {J:afail}
sacct -j {J:acan}
sacct -j {J:aarr}
sacct -j {J:ahet}
sacct -j {J:ahet}+1
sacct -j {J:agpu}
sacct -j {J:asig}
sacct -j {J:aarr}_1
sacct -j {J:aarr}_1,{J:aarr}_2 -X
sacct -j {J:aarr}_[1-2] -X
sacct -j {J:aarr}_9
sacct -j {J:aok}.batch
sacct -j {J:aok}.1
sacct -j {J:aok}.extern
sacct -j {J:aok}.9
sacct -j {J:aok}.x
sacct -j {J:aok}.0,{J:afail}.0
sacct -j {J:aok}_1
sacct -j 0
sacct -j -5
sacct -j ''
sacct -j {J:aok},
sacct -j {J:aok},abc
sacct -j 5x
sacct --jobs={J:aok}
sacct --job={J:aok} -X
sacct -j
sacct --jobs
sacct -b
sacct --brief -j {J:afail}
sacct -b -P -j {J:aarr}
sacct -o jobid -j {J:aok}
sacct --format=jobid,state -j {J:aok}
sacct --format jobid,state -j {J:aok}
sacct -o jobid%5 -j {J:aok}
sacct -o jobid%-5 -j {J:aok}
sacct -o jobid%.5 -j {J:aok}
sacct -o jobid%0 -j {J:aok} -X
sacct -o jobid% -j {J:aok} -X
sacct -o jobid%abc -j {J:aok} -X
sacct -o jobid%500 -j {J:aok} -X
sacct -o ALL -j {J:aok} -X -P | tr '|' '\\n' | wc -l
sacct -o all -j {J:aok} -X -P | head -1
sacct -o '' -j {J:aok} -X
sacct -o , -j {J:aok} -X
sacct -o jobid,,state -j {J:aok} -X
sacct -o jobid,nosuch -j {J:aok} -X
sacct -o jobi,stat -j {J:aok} -X
sacct -o jobname,j -j {J:aok} -X
sacct -o 'jobid state' -j {J:aok} -X
sacct -o jobid -o state -j {J:aok} -X
sacct -o JobName,ExitCode,DerivedExitCode -j {J:afail}
sacct -o user,group,uid,gid -j {J:aok} -X
sacct -o user%3,account%4 -j {J:aok} -X
sacct -o jobname%3 -j {J:aok}
sacct -o partition,qos,timelimit -X -j {J:aok},{J:agpu}
sacct -o ntasks,nnodes,ncpus -j {J:aok}
sacct -o reqmem,reqtres%40 -X -j {J:aok}
sacct -o comment,submitline%60 -X -j {J:aok}
sacct -e
sacct --helpformat
sacct -s CD -S now-1hour -X -n -o jobname
sacct -s F -S now-1hour -X -n -o jobname
sacct -s CD,F -S now-1hour -X -n -o jobname,state
sacct -s completed -S now-1hour -X -n -o jobname
sacct -s CA -S now-1hour -X -n -o jobname
sacct -s R -S now-1hour -X -n -o jobname
sacct -s PD -S now-1hour -X -n -o jobname
sacct -s TO -S now-1hour -X -n -o jobname
sacct -s F,xyz -S now-1hour -X
sacct -s '' -S now-1hour -X -n -o jobname
sacct -s RS -S now-1hour -X -n
sacct -s all -S now-1hour -X
sacct --state=CD -S now-1hour -X -n -o jobname
sacct -S now-1hour -E now -s F -X -n -o jobname
sacct -S now -X -n
sacct -S now-1hour -X -n -o jobname,state
sacct -S now-1hour -E now-30minutes -X -n
sacct -S now+1hour
sacct -S 2020-01-01 -E 2020-01-02 -n
sacct -S 2020-01-01T00:00:00 -E 2020-01-02T12:00
sacct -S 01/01/20 -E 01/02/20
sacct -S 010120 -E 010220
sacct -S midnight -E now -X -n -o jobname -j {J:aok}
sacct -S today -E tomorrow -X -n -o jobname -j {J:aok}
sacct -S abc -E now
sacct -S now -E abc
sacct -E foo
sacct -E now-1hour -X
sacct -E 2020-01-01 -X
sacct -S 25:00
sacct -S 2020-13-01
sacct -S now-1day -E now -X -n -o jobname -j {J:aok}
sacct -S '' -X -n -j {J:aok}
sacct --starttime=now-1hour -X -n -o jobname -j {J:aok}
sacct --start=now-1hour -X -n -o jobname -j {J:aok}
sacct --endtime=now -X -n -o jobname -j {J:aok}
sacct -u alice -S now-1hour -X -n -o user,jobname
sacct -u alice,bob -S now-1hour -X -n -o user,jobname
sacct -u bob -S now-1hour -X -n
sacct -u 1001 -S now-1hour -X -n -o user,jobname
sacct -u '' -S now-1hour -X -n -o user,jobname
sacct -u nosuch -S now-1hour
sacct --user=nosuch,alice -S now-1hour
sacct --user=alice -S now-1hour -X -n -o user
sacct --uid=nosuch
sacct --uid=99999 -n
sacct --me -S now-1hour -X -n -o user
sacct -a -S now-1hour -X -n -o user,jobname
sacct --allusers -S now-1hour -X -n -o user,jobname
sacct -L -S now-1hour -X -n -o jobname
sacct --allclusters -S now-1hour -X -n -o jobname
sacct -M oracle -S now-1hour -X -n -o jobname
sacct -M nosuch -S now-1hour -X
sacct -M '' -S now-1hour -X -n -o jobname
sacct --clusters=oracle -j {J:aok} -X
sacct --cluster=oracle -j {J:aok} -X
sacct --local -j {J:aok} -X
sacct --federation -j {J:aok} -X
sacct -A physics -S now-1hour -X -n -o jobname
sacct -A ml -S now-1hour -X -n -o jobname
sacct -A nosuch -S now-1hour -X
sacct --account=physics,ml -S now-1hour -X -n -o jobname
sacct --accounts=physics -S now-1hour -X -n -o jobname
sacct -q normal -S now-1hour -X -n -o jobname
sacct -q nosuch -S now-1hour -X
sacct --qos=high -S now-1hour -X -n
sacct -r debug -S now-1hour -X -n -o jobname
sacct -r gpu -S now-1hour -X -n -o jobname
sacct -r nosuch -S now-1hour -X
sacct --partition=gpu,debug -S now-1hour -X -n -o jobname
sacct -N n1 -S now-1hour -X
sacct -N g[1-2] -S now-1hour -X -n -o jobname
sacct -N n9 -S now-1hour -X
sacct -N n[ -S now-1hour -X
sacct --nodelist=g1 -S now-1hour -X -n -o jobname
sacct --name=acct_ok -S now-1hour -X -n -o jobname
sacct --name=acct_ok,acct_fail -S now-1hour -X -n -o jobname
sacct --name=nosuch -S now-1hour -X
sacct --name acct_ok -S now-1hour -X -n -o jobname
sacct -g alice -S now-1hour -X -n -o group,jobname
sacct -g 1001 -S now-1hour -X -n -o group
sacct -g bob -S now-1hour -X
sacct -g nosuch -S now-1hour -X
sacct --gid=alice -S now-1hour -X -n -o jobname
sacct --group=1002 -S now-1hour -X
sacct -W x -S now-1hour -X
sacct --wckeys=x -S now-1hour -X
sacct -k 5 -S now-1hour -X -n -o jobname
sacct -k abc -S now-1hour -X
sacct -k 1 -K 10 -S now-1hour -X -n -o jobname
sacct -K 5 -S now-1hour -X
sacct --timelimit-min=10 -S now-1hour -X -n -o jobname
sacct -I 1 -S now-1hour -X -n -o jobname
sacct -I 2 -S now-1hour -X -n -o jobname
sacct -I 1-4 -S now-1hour -X -n -o jobname
sacct -I abc -S now-1hour -X
sacct --ncpus=2 -S now-1hour -X -n -o jobname
sacct -i 1 -S now-1hour -X -n -o jobname
sacct -i 2-3 -S now-1hour -X
sacct -i abc -S now-1hour -X
sacct --nnodes=1 -S now-1hour -X -n -o jobname
sacct -C avx2 -S now-1hour -X
sacct -C nosuch -S now-1hour -X
sacct --constraints=avx2 -S now-1hour -X
sacct -R None -S now-1hour -X -n -o jobname
sacct -R nosuch -S now-1hour -X
sacct --reason=None -S now-1hour -X -n
sacct -x 1 -S now-1hour -X -n -o jobname
sacct -x nosuch -S now-1hour -X
sacct -F submit,backfill -S now-1hour -X
sacct -F SchedMain -S now-1hour -X -n -o jobname
sacct -F bad -S now-1hour -X
sacct --flags=SchedSubmit -S now-1hour -X -n -o jobname
sacct -d nosuch
sacct -D -j {J:aok}
sacct --duplicates -j {J:aok} -X
sacct -T -j {J:aok} -X
sacct --truncate -j {J:aok} -X
sacct -c -j {J:aok}
sacct -f nofile
sacct --file=/dev/null
sacct -B -j {J:aok}
sacct --batch-script -j {J:aok}
sacct -B -j {J:aarr}
sacct -B -j {J:aok},{J:afail}
sacct -B -j 999999
sacct -B
sacct -B -o jobid -j {J:aok}
sacct --env-vars -j {J:aok} | grep -E '^(Environment|---|FOO|HOME|LANG|SLURM)' | grep -v -E 'SLUID|TIME|PRIO'
sacct --env-vars -B -j {J:aok}
sacct --env-vars
sacct --units=K -P -o reqmem -X -j {J:aok}
sacct --units=M -P -o reqmem,reqtres -X -j {J:aok}
sacct --units=T -P -o reqmem -X -j {J:aok}
sacct --units=P -P -o reqmem -X -j {J:aok}
sacct --units=X -P -o reqmem -X -j {J:aok}
sacct --units= -P -o reqmem -X -j {J:aok}
sacct --units -P -o reqmem -X -j {J:aok}
sacct --noconvert -P -o reqmem,reqtres -X -j {J:aok}
sacct --noconvert --units=G -P -o reqmem -X -j {J:aok}
sacct --expand-patterns -P -o stdout,stderr,stdin -j {J:aok},{J:aarr}
sacct -P -o stdout,stderr,stdin -X -j {J:aok},{J:aarr}
sacct --array -j {J:aarr}
sacct --array -X -j {J:aarr}
sacct --whole-hetjob=yes -j {J:ahet}+1 -X
sacct --whole-hetjob=no -j {J:ahet} -X
sacct --whole-hetjob -j {J:ahet}+1 -X
sacct --whole-hetjob=bad -j {J:ahet} -X
sacct --use-local-uid -j {J:aok} -X
sacct --steps -j {J:aok}
sacct --allocations -j {J:aok}
sacct --onlyjob -j {J:aok}
sacct --json -j {J:afail}
sacct --json -j {J:agpu}
sacct --json -j {J:aarr}
sacct --json -j {J:ahet}
sacct --json -j {J:acan}
sacct --json -j {J:asig} -X
sacct --json -j 999999
sacct --json=v0.0.44 -j {J:acan}
sacct --json=list
sacct --json=bad
sacct --yaml -j {J:aok}
sacct --yaml -j {J:acan}
sacct --json -S 2020-01-01 -E 2020-01-02 | head -3
sacct -v -j {J:aok} -X
sacct -vv -n -X -j {J:aok}
sacct -Q -j {J:aok} -X
sacct -V
sacct --version
sacct --usage
sacct --help | head -4
sacct --help | wc -l
sacct -h | head -3
sacct --foo
sacct -Y
sacct --fo=jobid -X -j {J:aok}
sacct --form=jobid -X -j {J:aok}
sacct --n
sacct --no
sacct --st=CD -S now-1hour -X -n -o jobname
sacct extra -j {J:aok}
sacct -j {J:aok} extra
sacct -nXj {J:aok}
sacct -XPo jobid,state -j {J:aok}
sacct -j{J:aok} -X
sacct --autocomplete=x
bob$ sacct -j {J:aok}
bob$ sacct -S now-1hour -X -n
carol$ sacct
root$ sacct -S now-1hour -X -n -o user,jobname
root$ sacct -j {J:aok} -X
root$ sacct -u alice -S now-1hour -X -n -o user
dave$ sacct -a -S now-1hour -X -n -o user
dave$ sacct -j {J:aok} -X
sstat {J:aok}
sstat -j {J:aok}
sstat -j abc
sstat -j ''
sstat -a -j 999999
sstat -p -j 999999
sstat -P -j 999999
sstat -n -j 999999
sstat -o jobid -j 999999
sstat -o nosuch -j 999999
sstat -i -j 999999
sstat -V
sstat --usage
sstat --help | head -4
sstat --help | wc -l
sstat --helpformat
sstat --foo
sstat -j 999999.0
sstat --noconvert -j 999999
sstat --json
sstat extra""".split("\n")

SACCT_VARIABLES = [
    tuple(x.split("|"))
    for x in """SACCT_FORMAT|jobid%20,state|sacct -j {J:aok}
SACCT_FORMAT|nosuch|sacct -j {J:aok}
SACCT_FORMAT|jobid|sacct -b -j {J:aok}
SACCT_FORMAT|jobid|sacct -l -P -X -j {J:aok}
SACCT_FORMAT|jobid|sacct -o state -j {J:aok}
SACCT_FORMAT||sacct -X -j {J:aok}
SACCT_LOCAL|1|sacct -X -j {J:aok}
SACCT_FEDERATION|1|sacct -X -j {J:aok}
SLURM_TIME_FORMAT|%Y|sacct -X -n -o start,end,submit -j {J:aok}
SLURM_TIME_FORMAT|relative|sacct -X -n -o eligible%6 -j {J:aok}
SLURM_TIME_FORMAT|standard|sacct -X -n -o start -j {J:aok}
SLURM_TIME_FORMAT|%s|sacct -X -n -P -o start -j {J:aok}
SLURM_BITSTR_LEN|2|sacct -X -n -o jobid -j {J:aarr}
SLURM_CLUSTERS|oracle|sacct -X -j {J:aok}
SLURM_CLUSTERS|nosuch|sacct -X -j {J:aok}
SLURM_CONF|/nosuch|sacct -X -j {J:aok}""".split("\n")
]

ACCOUNTS = """sacctmgr
sacctmgr show
sacctmgr list
sacctmgr show account
sacctmgr list accounts
sacctmgr show acct
sacctmgr show acc
sacctmgr show a
sacctmgr show account ml
sacctmgr show account name=ml
sacctmgr show account where name=ml
sacctmgr show account ml,physics
sacctmgr show account nosuch
sacctmgr show account format=account,desc,org
sacctmgr show account format=account%5
sacctmgr show account format=account%-20,org
sacctmgr show account format=nosuch
sacctmgr show account format=
sacctmgr show account withassoc
sacctmgr show account withassoc ml format=account,user,share
sacctmgr show account withcoord
sacctmgr show account ml withcoord
sacctmgr show account org=lab
sacctmgr show account desc=ml
sacctmgr show account foo=1
sacctmgr show account withdeleted
sacctmgr show account wopi
sacctmgr -n show account
sacctmgr -p show account
sacctmgr -P show account
sacctmgr -nP show account
sacctmgr --noheader --parsable2 show account
sacctmgr --parsable show account
sacctmgr -o show account ml
sacctmgr show account -P
sacctmgr show -P account
sacctmgr --json show account ml
sacctmgr --yaml show account ml
sacctmgr --json show account nosuch
sacctmgr show user
sacctmgr show users
sacctmgr show user alice
sacctmgr show user alice,bob
sacctmgr show user name=alice
sacctmgr show user where name=alice
sacctmgr show user user=alice
sacctmgr show user alice bob
sacctmgr show user account=ml
sacctmgr show user defaultaccount=ml
sacctmgr show user adminlevel=operator
sacctmgr show user admin=bad
sacctmgr show user format=user,defaultaccount%30,adminlevel
sacctmgr show user format=user,admin%-9
sacctmgr show user withassoc
sacctmgr show user alice withassoc
sacctmgr -P show user alice withassoc
sacctmgr -P show user bob withassoc format=user,account,qos,defaultqos
sacctmgr show user withcoord
sacctmgr show user wckey=x
sacctmgr show user partition=debug
sacctmgr show user withassoc where account=ml
sacctmgr show user alice format=nosuch
sacctmgr show user foo=1
sacctmgr show user dave
sacctmgr -n show user root
sacctmgr --json show user bob
sacctmgr --json show user
sacctmgr --yaml show user dave
sacctmgr show assoc
sacctmgr show association
sacctmgr show associations
sacctmgr show ass
sacctmgr -P show assoc
sacctmgr -nP show assoc
sacctmgr show assoc user=alice
sacctmgr show assoc alice
sacctmgr show assoc where user=alice
sacctmgr show assoc account=ml
sacctmgr show assoc account=ml user=bob
sacctmgr show assoc user=nosuch
sacctmgr show assoc user=
sacctmgr -P show assoc user= format=account,user,parentname
sacctmgr -P show assoc format=id,account,user,parentid,lft,rgt
sacctmgr -P show assoc format=cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins,maxjobs,maxtres,maxtrespernode,maxsubmit,maxwall,maxtresmins,qos,defaultqos,grptresrunmins
sacctmgr show assoc format=account%20,user%10
sacctmgr show assoc format=account,foo
sacctmgr show assoc tree
sacctmgr show assoc tree format=account
sacctmgr -P show assoc tree format=account,user
sacctmgr -p show assoc tree format=account,user
sacctmgr show assoc parent=research format=account,user
sacctmgr show assoc parents=research
sacctmgr show assoc cluster=oracle format=account
sacctmgr show assoc cluster=nosuch
sacctmgr show assoc clusters=oracle format=user
sacctmgr show assoc partition=debug
sacctmgr show assoc qos=tiny format=account,user
sacctmgr show assoc qos=high format=account,user
sacctmgr show assoc defaultqos=high
sacctmgr show assoc wopinfo format=account,user
sacctmgr show assoc wopi format=account,user
sacctmgr show assoc wolimits
sacctmgr show assoc wopl
sacctmgr show assoc onlydefaults
sacctmgr show assoc onlydefaults format=user,account
sacctmgr show assoc withsubaccounts account=research format=account,user
sacctmgr show assoc withrawqoslevel format=account,user,qos
sacctmgr show assoc withrawqos format=account,user,qos
sacctmgr show assoc withd format=account,user
sacctmgr show assoc id=1
sacctmgr show assoc ids=1,2 format=id,account
sacctmgr show assoc foo=1
sacctmgr show assoc foo
sacctmgr --json show assoc user=bob
sacctmgr --yaml show assoc user=dave
sacctmgr --json show assoc account=ml
sacctmgr show qos
sacctmgr -P show qos
sacctmgr show qos normal
sacctmgr show qos name=high
sacctmgr show qos high,tiny format=name,priority
sacctmgr show qos nosuch
sacctmgr show qos format=name
sacctmgr show qos format=name,flags
sacctmgr show qos format=name%5,priority%-5,maxwall
sacctmgr -P show qos format=name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags,usagethres,usagefactor,limitfactor
sacctmgr -P show qos format=name,grptres,grptresmins,grptresrunmins,grpjobs,grpjobsaccrue,grpsubmit,grpwall
sacctmgr -P show qos format=name,maxtres,maxtrespernode,maxtresmins,maxwall,maxtrespu,maxtrespa,maxjobspu,maxjobspa,maxsubmitpu,maxsubmitpa,mintres
sacctmgr -P show qos format=name,maxjobs,maxsubmit,maxtresperjob,maxtresperuser,maxtresperaccount,minprio,maxprio
sacctmgr -P show qos format=id,name,description
sacctmgr show qos format=foo
sacctmgr show qos foo=1
sacctmgr show qos where name=tiny
sacctmgr show qos where flags=DenyOnLimit
sacctmgr show qos where priority=5
sacctmgr show qos withdeleted format=name
sacctmgr show qos id=1
sacctmgr show qos ids=1,2 format=name
sacctmgr show qos preemptmode=cluster format=name
sacctmgr show qos desc=x
sacctmgr --json show qos tiny
sacctmgr --json show qos high
sacctmgr --json show qos preempt
sacctmgr --yaml show qos normal
sacctmgr show cluster
sacctmgr show clusters
sacctmgr show cluster oracle
sacctmgr show cluster nosuch
sacctmgr show cluster format=cluster,classification
sacctmgr show cluster format=cluster,controlhost,rpc,tres%60
sacctmgr -P show cluster format=cluster,controlport,flags,nodecount,nodenames
sacctmgr show cluster withfed
sacctmgr show cluster classification=capability
sacctmgr show cluster format=foo
sacctmgr --json show cluster
sacctmgr show tres
sacctmgr show tres id=1
sacctmgr show tres type=gres
sacctmgr show tres type=cpu
sacctmgr show tres name=gpu
sacctmgr show tres type=nosuch
sacctmgr -P show tres
sacctmgr show tres withdeleted
sacctmgr show tres format=type,name,id
sacctmgr --json show tres
sacctmgr show wckey
sacctmgr show wckeys
sacctmgr show wckey user=alice
sacctmgr show wckey format=wckey,user
sacctmgr --json show wckey
sacctmgr show coord
sacctmgr show coordinator
sacctmgr show event
sacctmgr show events
sacctmgr show event all_time
sacctmgr -nP show event all_clusters format=cluster,node
sacctmgr show event node=n1
sacctmgr show event start=2020-01-01 end=2020-01-02
sacctmgr show event event=cluster format=cluster
sacctmgr show event event=node
sacctmgr show event event=bad
sacctmgr show event state=drain
sacctmgr show event state=bad
sacctmgr show event start=abc
sacctmgr show event format=foo
sacctmgr show event reason=x
sacctmgr show event user=root
sacctmgr show runaway
sacctmgr show runawayjobs
sacctmgr show runaway format=id
root$ sacctmgr -i show runaway
sacctmgr show problem
sacctmgr show problems
sacctmgr show problem format=account,user
sacctmgr show transaction
sacctmgr -nP show transaction format=action | sort | uniq -c
sacctmgr show transactions actor=root format=action
sacctmgr show transactions action=bad
sacctmgr show transaction start=2020-01-01 end=2020-01-02
sacctmgr show transaction format=foo
sacctmgr show transaction account=ml format=action,actor
sacctmgr show transaction user=alice format=action,actor
sacctmgr show federation
sacctmgr show fed
sacctmgr show resource
sacctmgr show resources
sacctmgr show resource withclusters
sacctmgr show resource name=x
sacctmgr show resource format=name,server
sacctmgr show resource format=foo
sacctmgr show config
sacctmgr show conf | head -3
sacctmgr show configuration | wc -l
sacctmgr show stats | head -3
sacctmgr show stat | head -1
sacctmgr show instance
sacctmgr show instances
sacctmgr show reservation
sacctmgr show reservations
sacctmgr show res
sacctmgr show archive
sacctmgr show foo
sacctmgr show u
sacctmgr show c
sacctmgr foo
sacctmgr sho user alice
sacctmgr l user alice
sacctmgr s user alice
sacctmgr SHOW USER alice
sacctmgr LIST assoc user=alice format=user
sacctmgr -V
sacctmgr --version
sacctmgr version
sacctmgr help | head -5
sacctmgr --help | head -5
sacctmgr --help | wc -l
sacctmgr --usage | head -5
sacctmgr -h | head -3
sacctmgr --foo
sacctmgr -Y show user
sacctmgr -v show user alice
sacctmgr -Q show user nosuch
sacctmgr -s show user alice
sacctmgr -s show account ml
sacctmgr -r show account
sacctmgr -i show user alice
sacctmgr --immediate show user alice
sacctmgr --associations show user alice
sacctmgr --quiet show user alice
sacctmgr --readonly show user alice
sacctmgr --readonly -i add account x
sacctmgr -M oracle show user alice
sacctmgr --cluster=oracle show user alice
sacctmgr show user alice --noheader
sacctmgr ping
sacctmgr ping --json | head -5
sacctmgr exit
sacctmgr quit
sacctmgr reconfigure
sacctmgr shutdown
sacctmgr verbose
sacctmgr '!!'
sacctmgr archive
sacctmgr archive dump
sacctmgr archive load file=x
sacctmgr archive dump directory=/tmp jobs
root$ sacctmgr -i archive
root$ sacctmgr -i archive dump
root$ sacctmgr -i archive dump directory=/tmp jobs
root$ sacctmgr -i archive dump directory=/nosuch
root$ sacctmgr -i archive dump foo=1
root$ sacctmgr -i archive load
root$ sacctmgr -i archive load file=/nosuch
root$ sacctmgr -i archive load insert=x
root$ sacctmgr -i archive foo
root$ sacctmgr -i archive dump purgejobafter=12months
sacctmgr clear stats
root$ sacctmgr clear stats
sacctmgr dump oracle file=/tmp/side.cfg
sacctmgr dump
root$ sacctmgr dump oracle file=/tmp/side.dump; cat /tmp/side.dump; rm -f /tmp/side.dump
root$ sacctmgr dump nosuch file=/tmp/side.dump; rm -f /tmp/side.dump
root$ sacctmgr dump file=/tmp/x.side
root$ sacctmgr -i load file=/nosuch
root$ sacctmgr -i load
sacctmgr load file=x
echo 'show user alice' | sacctmgr
printf 'show user alice\\nexit\\n' | sacctmgr
printf 'foo\\n' | sacctmgr
sacctmgr -i add account x
sacctmgr -i add user x account=ml
sacctmgr -i add qos x
sacctmgr -i add cluster x
sacctmgr -i add coord account=ml user=alice
sacctmgr -i add wckey x
sacctmgr -i add
sacctmgr -i create account x
sacctmgr -i modify user alice set maxjobs=1
sacctmgr -i modify user alice set defaultaccount=ml
sacctmgr -i modify user alice set defaultaccount=physics
sacctmgr -i modify user bob set maxjobs=1
sacctmgr -i modify account ml set maxjobs=1
sacctmgr -i modify qos high set priority=1
sacctmgr -i modify cluster oracle set maxjobs=1
sacctmgr -i modify job {J:aok} set comment=x
sacctmgr -i modify
sacctmgr -i modify foo
sacctmgr -i delete user alice
sacctmgr -i delete account ml
sacctmgr -i delete qos high
sacctmgr -i delete
sacctmgr -i delete foo x
sacctmgr -i remove user alice
sacctmgr -i rem qos high
bob$ sacctmgr show user bob
carol$ sacctmgr show user carol
carol$ sacctmgr show assoc user=carol
dave$ sacctmgr -i add account dx
dave$ sacctmgr -i modify user alice set maxjobs=3
dave$ sacctmgr -i modify user alice set maxjobs=-1
dave$ sacctmgr -i delete account dx
dave$ sacctmgr -i add qos dq
dave$ sacctmgr -i delete qos dq
dave$ sacctmgr -i modify user alice set adminlevel=operator
root$ sacctmgr -i add account a1 parent=research description='a one' organization=lab
root$ sacctmgr -i add account a1
root$ sacctmgr -i add account name=a2 parent=a1 fairshare=3 maxjobs=5
root$ sacctmgr -i add account a3,a4 parent=a1
root$ sacctmgr -i add account a5 parent=nosuch
root$ sacctmgr -i add account
root$ sacctmgr -i add account a6 foo=1
root$ sacctmgr -i add account a6 maxjobs=abc
root$ sacctmgr -i add account a6 cluster=nosuch
root$ sacctmgr -i add account a6 qos=nosuch
root$ sacctmgr -i add account a6 defaultqos=high
root$ sacctmgr -i add account a7 qos=normal,high defaultqos=high parent=root
root$ sacctmgr -i add account a8 grptres=cpu=10,mem=1G grpjobs=4 grpsubmitjobs=9 maxwall=1:00:00 maxtres=cpu=4,node=2 maxsubmitjobs=7
root$ sacctmgr -i add account A9
root$ sacctmgr -i add account 'a b'
root$ sacctmgr -i add account aa set fairshare=5
root$ sacctmgr -P show assoc account=a1,a2,a3,a7,a8,a9 format=account,parentname,share,maxjobs,grptres,grpjobs,grpsubmit,maxwall,maxtres,maxsubmit,qos,defaultqos
root$ sacctmgr -i add user u1 account=a1
root$ sacctmgr -i add user u1 account=a1
root$ sacctmgr -i add user u1 account=a2,a3
root$ sacctmgr -i add user u2,u3 account=a1 fairshare=2
root$ sacctmgr -i add user u4 account=nosuch
root$ sacctmgr -i add user u4
root$ sacctmgr -i add user
root$ sacctmgr -i add user account=a1
root$ sacctmgr -i add user u4 account=a1 partition=debug
root$ sacctmgr -i add user u4 account=a1 partition=gpu maxjobs=2
root$ sacctmgr -i add user u5 account=a1 adminlevel=operator
root$ sacctmgr -i add user u6 account=a1 adminlevel=bad
root$ sacctmgr -i add user u6 account=a1 defaultaccount=a2
root$ sacctmgr -i add user u6 account=a1,a2 defaultaccount=a2
root$ sacctmgr -i add user u7 defaultaccount=a3
root$ sacctmgr -i add user u8 account=a1 qos=normal,tiny defaultqos=tiny
root$ sacctmgr -i add user u9 account=a1 foo=1
root$ sacctmgr -i add user carol account=a1 maxjobs=1
root$ sacctmgr -i add user U10 account=a1
root$ sacctmgr -P show user u1,u2,u4,u5,u6,u7,u8,carol withassoc format=user,defaultaccount,admin,account,partition,share,maxjobs,qos,defaultqos
root$ sacctmgr -i modify user u1 set fairshare=7
root$ sacctmgr -i modify user u1 set fairshare=parent
root$ sacctmgr -i modify user u1 set fairshare=abc
root$ sacctmgr -i modify user u1 set share=8
root$ sacctmgr -i modify user u1 account=a2 set maxjobs=3
root$ sacctmgr -i modify user where name=u1 set maxjobs=4
root$ sacctmgr -i modify user where user=u1 account=a3 set maxjobs=6
root$ sacctmgr -i modify user name=u1 set maxjobs=-1
root$ sacctmgr -i modify user set maxjobs=5 where name=u1
root$ sacctmgr -i modify user u1 set maxsubmitjobs=9 maxwall=2:00:00
root$ sacctmgr -i modify user u1 set maxtres=cpu=8 maxtrespernode=cpu=4 maxtresmins=cpu=100
root$ sacctmgr -i modify user u1 set grptres=cpu=8,gres/gpu=2 grptresmins=cpu=99 grptresrunmins=cpu=77
root$ sacctmgr -i modify user u1 set maxtres=cpu=-1
root$ sacctmgr -i modify user u1 set maxtres=foo=1
root$ sacctmgr -i modify user u1 set maxcpus=5
root$ sacctmgr -i modify user u1 set maxnodes=3
root$ sacctmgr -i modify user u1 set grpcpus=6
root$ sacctmgr -i modify user u1 set priority=5
root$ sacctmgr -P show assoc user=u1 format=account,share,maxjobs,maxsubmit,maxwall,maxtres,maxtrespernode,maxtresmins,grptres,grptresmins,grptresrunmins,priority
root$ sacctmgr -i modify user u1 set qos=high
root$ sacctmgr -i modify user u1 set qos+=long
root$ sacctmgr -i modify user u1 set qos-=high
root$ sacctmgr -i modify user u1 set qos=
root$ sacctmgr -i modify user u1 set qos=nosuch
root$ sacctmgr -i modify user u1 set defaultqos=high
root$ sacctmgr -i modify user u1 set defaultqos=
root$ sacctmgr -i modify user u2 set qos+=tiny
root$ sacctmgr -i modify user u3 set qos-=tiny
root$ sacctmgr -P show assoc account=a1 format=account,user,qos,defaultqos
root$ sacctmgr -P show assoc account=a1 withrawqoslevel format=account,user,qos,defaultqos
root$ sacctmgr -i modify account a1 set qos=normal,high
root$ sacctmgr -P show assoc account=a1 format=account,user,qos,defaultqos
root$ sacctmgr -P show assoc account=a1 withrawqoslevel format=account,user,qos
root$ sacctmgr -i modify account a1 set qos-=high
root$ sacctmgr -P show assoc account=a1,a2 format=account,user,qos
root$ sacctmgr -P show assoc account=a1,a2 withrawqoslevel format=account,user,qos
root$ sacctmgr -i modify account a1 set qos+=preempt
root$ sacctmgr -P show assoc account=a1,a2 format=account,user,qos
root$ sacctmgr -P show assoc account=a1,a2 withrawqoslevel format=account,user,qos
root$ sacctmgr -i modify account a1 set qos=
root$ sacctmgr -P show assoc account=a1,a2 format=account,user,qos
root$ sacctmgr -i modify user u1 set adminlevel=admin
root$ sacctmgr -i modify user u1 set adminlevel=none
root$ sacctmgr -i modify user u1 set adminlevel=bad
root$ sacctmgr -i modify user u1 set defaultaccount=a2
root$ sacctmgr -i modify user u1 set defaultaccount=ml
root$ sacctmgr -i modify user u1 set foo=1
root$ sacctmgr -i modify user u1 set
root$ sacctmgr -i modify user u1
root$ sacctmgr -i modify user nosuch set maxjobs=1
root$ sacctmgr -i modify user u1 set newname=u11
root$ sacctmgr -i modify user u11 set newname=u1
root$ sacctmgr -i modify user u1,u2 set maxjobs=2
root$ sacctmgr -i modify user u1 set rawusage=0
root$ sacctmgr -i modify user u1 set rawusage=5
root$ sacctmgr -i modify user u1 account=a2 set rawusage=0
root$ sacctmgr -i modify account a1 set description=new organization=org2
root$ sacctmgr -i modify account a1 set desc='x y'
root$ sacctmgr -i modify account name=a1 set fairshare=9
root$ sacctmgr -i modify account a1 set maxjobs=10 grpjobs=20
root$ sacctmgr -i modify account a2 set parent=a3
root$ sacctmgr -i modify account a1 set parent=a2
root$ sacctmgr -i modify account a2 set parent=nosuch
root$ sacctmgr -i modify account nosuch set maxjobs=1
root$ sacctmgr -i modify account a1 set foo=1
root$ sacctmgr -i modify account where parent=a1 set maxjobs=8
root$ sacctmgr -i modify account where org=lab name=a1 set fairshare=2
root$ sacctmgr -i modify account a1 set rawusage=0
root$ sacctmgr -P show assoc tree account=a1,a2,a3,a4 format=account,user,share,maxjobs
root$ sacctmgr -i add coordinator account=a1 names=u1
root$ sacctmgr -i add coord accounts=a2 name=u2
root$ sacctmgr -i add coord account=a1 names=nosuch
root$ sacctmgr -i add coord account=nosuch names=u1
root$ sacctmgr -i add coord names=u1
root$ sacctmgr -i add coord
root$ sacctmgr show account a1 withcoord
root$ sacctmgr show user u1 withcoord
root$ sacctmgr -i delete coord account=a1 names=u1
root$ sacctmgr -i delete coord account=a1 names=u1
root$ sacctmgr -i delete coord account=a1
root$ sacctmgr -i add qos q5
root$ sacctmgr -i add qos q5
root$ sacctmgr -i add qos q6,q7 priority=3
root$ sacctmgr -i add qos q8 set priority=4 maxwall=10
root$ sacctmgr -i add qos
root$ sacctmgr -i add qos q9 foo=1
root$ sacctmgr -i add qos q9 flags=bad
root$ sacctmgr -i add qos q9 flags=DenyOnLimit,OverPartQOS
root$ sacctmgr -i add qos qa preempt=normal preemptmode=cancel
root$ sacctmgr -i add qos qb preempt=nosuch
root$ sacctmgr -i add qos qb preemptmode=bad
root$ sacctmgr -i modify qos q5 set priority=7
root$ sacctmgr -i modify qos q5 set priority=abc
root$ sacctmgr -i modify qos q5 set maxwall=1-0 maxjobspu=3 maxsubmitpu=5
root$ sacctmgr -i modify qos q5 set maxtrespu=cpu=10,gres/gpu=4 maxtrespa=cpu=20 maxtresperjob=cpu=5 mintres=cpu=2
root$ sacctmgr -i modify qos q5 set grptres=cpu=40 grpjobs=9 grpwall=100 grptresmins=cpu=1000
root$ sacctmgr -i modify qos q5 set flags=NoReserve
root$ sacctmgr -i modify qos q5 set flags+=DenyOnLimit
root$ sacctmgr -i modify qos q5 set flags-=NoReserve
root$ sacctmgr -i modify qos q5 set flags=-1
root$ sacctmgr -i modify qos q5 set flags=bad
root$ sacctmgr -i modify qos q5 set preempt=normal,high
root$ sacctmgr -i modify qos q5 set preempt+=tiny
root$ sacctmgr -i modify qos q5 set preempt-=high
root$ sacctmgr -i modify qos q5 set preempt=
root$ sacctmgr -i modify qos q5 set preempt=q5
root$ sacctmgr -i modify qos q5 set preemptmode=requeue
root$ sacctmgr -i modify qos q5 set gracetime=60 usagefactor=0.5 usagethreshold=0.2 limitfactor=2
root$ sacctmgr -i modify qos q5 set description='five'
root$ sacctmgr -i modify qos q5 set maxtrespu=cpu=-1
root$ sacctmgr -i modify qos q5 set foo=1
root$ sacctmgr -i modify qos nosuch set priority=1
root$ sacctmgr -i modify qos where name=q6 set priority=9
root$ sacctmgr -i modify qos q5 set name=q55
root$ sacctmgr -i modify qos q5 set newname=q55
root$ sacctmgr -P show qos q5,q6,q8,q9,qa
root$ sacctmgr -i modify qos q5 set rawusage=0
root$ sacctmgr -i delete qos q5
root$ sacctmgr -i delete qos q6,q7
root$ sacctmgr -i delete qos name=q8
root$ sacctmgr -i delete qos where name=q9
root$ sacctmgr -i delete qos nosuch
root$ sacctmgr -i delete qos
root$ sacctmgr -i delete qos normal
root$ sacctmgr -i delete qos qa
root$ sacctmgr -i add wckey w1 user=u1
root$ sacctmgr -i add wckey w1
root$ sacctmgr show wckey
root$ sacctmgr -i delete wckey w1
root$ sacctmgr -i add cluster oracle
root$ sacctmgr -i add cluster c2
root$ sacctmgr show cluster format=cluster
root$ sacctmgr -i delete cluster c2
root$ sacctmgr -i delete cluster nosuch
root$ sacctmgr -i modify cluster oracle set fairshare=2
root$ sacctmgr -i modify cluster oracle set classification=capacity
root$ sacctmgr -i modify cluster nosuch set fairshare=1
root$ sacctmgr -i modify cluster oracle set foo=1
root$ sacctmgr -i modify cluster oracle set fairshare=1
root$ sacctmgr -i add resource name=lic1 server=s1 servertype=flexlm count=10 type=license
root$ sacctmgr show resource
root$ sacctmgr -i delete resource lic1
root$ sacctmgr -i add federation f1
root$ sacctmgr show federation
root$ sacctmgr -i delete federation f1
root$ sacctmgr -i add association x
root$ sacctmgr -i modify assoc x
root$ sacctmgr -i modify job {J:aok} set comment=new
root$ sacctmgr -i modify job where jobid={J:aok} set comment=newer
root$ sacctmgr -i modify job {J:aok} set admincomment=adm
root$ sacctmgr -i modify job {J:aok} set derivedexitcode=3
root$ sacctmgr -i modify job {J:aok} set derivedexitcode=abc
root$ sacctmgr -i modify job {J:aok} set newwckey=x
root$ sacctmgr -i modify job {J:aok} set extra=x systemcomment=y
root$ sacctmgr -i modify job 999999 set comment=x
root$ sacctmgr -i modify job {J:aok} set foo=1
root$ sacctmgr -i modify job {J:aok} set
root$ sacct -X -n -P -o comment,admincomment,derivedexitcode,extra,systemcomment -j {J:aok}
sacctmgr -i modify job {J:afail} set comment=mine
root$ sacctmgr -i delete user u1 account=a2
root$ sacctmgr -i delete user u1 account=a2
root$ sacctmgr -i delete user where name=u2 account=a1
root$ sacctmgr -i delete user u4 partition=debug
root$ sacctmgr -i delete user u1
root$ sacctmgr -i delete user u3,u4
root$ sacctmgr -i delete user nosuch
root$ sacctmgr -i delete user
root$ sacctmgr -i delete user u6 foo=1
root$ sacctmgr -i delete user where account=a1
root$ sacctmgr -i delete account a4
root$ sacctmgr -i delete account a1
root$ sacctmgr -i delete account where name=a7
root$ sacctmgr -i delete account a8,a9
root$ sacctmgr -i delete account parent=a1
root$ sacctmgr -i delete account nosuch
root$ sacctmgr -i delete account
root$ sacctmgr -i delete account root
root$ sacctmgr -Q -i add account qa1
root$ sacctmgr -Q -i modify account qa1 set maxjobs=1
root$ sacctmgr -Q -i delete account qa1
echo n | sudo true 2>/dev/null; echo
root$ echo n | sacctmgr add account ask1
root$ echo y | sacctmgr add account ask1
root$ echo n | sacctmgr delete account ask1
root$ echo y | sacctmgr delete account ask1
root$ sacctmgr add account ask2 < /dev/null
root$ sacctmgr -nP show account format=account
root$ sacctmgr -nP show user format=user
sshare
sshare -l
sshare -a
sshare -U
sshare -u alice
sshare -u alice,bob
sshare -u nosuch
sshare -u bob -l -P
sshare -A ml
sshare -A ml,physics
sshare -A nosuch
sshare -A physics -a -P
sshare -p
sshare -P
sshare -n
sshare -h
sshare --noheader
sshare --parsable
sshare --parsable2 -a
sshare -aP -o account,user,rawshares,normshares
sshare -a -P -o account,user,fairshare
sshare -o account%20,user%-10
sshare -o account%3
sshare -o account,foo
sshare -o ''
sshare -o account -P
sshare -o GrpTRESMins,TRESRunMins -P
sshare -o cluster,partition,id -P -a
sshare -m
sshare -m -a
sshare --partition
sshare --all --long -P -o account,rawusage
sshare -M oracle
sshare -M nosuch
sshare -M all
sshare --users=bob
sshare --accounts=ml
sshare --user=alice
sshare --helpformat
sshare -V
sshare --version
sshare --usage
sshare --help | head -4
sshare --help | wc -l
sshare --foo
sshare -Y
sshare extra
sshare -v -u alice
sshare --json | head -20
sshare --json=list
sshare -a --json
sshare --yaml -u bob
bob$ sshare
carol$ sshare
root$ sshare
dave$ sshare -U
sprio
sprio -l
sprio -n
sprio -w
sprio -W
sprio -h
sprio --noheader
sprio -w -h
sprio -w -l
sprio -j abc
sprio -j ''
sprio -j 999999,999998
sprio -u alice
sprio -u nosuch
sprio -u ''
sprio -p debug
sprio -p nosuch
sprio -o %i
sprio -o '%i %Y'
sprio -o '%.10i|%a'
sprio -o %
sprio -o x
sprio -o ''
sprio -o %x
sprio -w -o '%A %B %F %J %P %Q %T'
sprio -w -o '%a %b %f %j %p %q %t'
sprio -w -o '%i %u %Y %y %N %S %s %r %o %c %C %n'
sprio -S Y
sprio -S -i
sprio -S x
sprio -S ''
sprio -M oracle
sprio -M nosuch
sprio --federation
sprio --local
sprio --sibling
sprio --norm
sprio --long
sprio --weights
sprio --user=bob
sprio --jobs=5
sprio -V
sprio --usage
sprio --help | head -4
sprio --help | wc -l
sprio --foo
sprio extra
sprio -v
SPRIO_FORMAT=%i sprio
SPRIO_FORMAT=%Y sprio -w
SPRIO_LOCAL=1 sprio
sreport
sreport foo
sreport cluster
sreport cluster foo
sreport cluster utilization start=2020-01-01 end=2020-01-02
sreport cluster util start=2020-01-01 end=2020-01-02
sreport cluster Utilization start=2020-01-01 end=2020-01-02 format=cluster,allocated
sreport cluster AccountUtilizationByUser start=2020-01-01 end=2020-01-02
sreport cluster UserUtilizationByAccount start=2020-01-01 end=2020-01-02
sreport cluster UserUtilizationByWckey start=2020-01-01 end=2020-01-02
sreport cluster WCKeyUtilizationByUser start=2020-01-01 end=2020-01-02
sreport cluster AccountUtilizationByQOS start=2020-01-01 end=2020-01-02
sreport -P cluster AccountUtilizationByUser start=2020-01-01 end=2020-01-02
sreport -n cluster utilization start=2020-01-01 end=2020-01-02
sreport -p cluster utilization start=2020-01-01 end=2020-01-02
sreport -t percent cluster utilization start=2020-01-01 end=2020-01-02
sreport -t minper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t seconds cluster utilization start=2020-01-01 end=2020-01-02
sreport -t hourper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t secper cluster utilization start=2020-01-01 end=2020-01-02
sreport -t bad cluster utilization start=2020-01-01 end=2020-01-02
sreport -T cpu,mem cluster utilization start=2020-01-01 end=2020-01-02
sreport -T gres/gpu cluster utilization start=2020-01-01 end=2020-01-02
sreport -T all cluster utilization start=2020-01-01 end=2020-01-02
sreport -T bad cluster utilization start=2020-01-01 end=2020-01-02
sreport job
sreport job SizesByAccount start=2020-01-01 end=2020-01-02
sreport job sizes start=2020-01-01 end=2020-01-02
sreport job SizesByAccountAndWcKey start=2020-01-01 end=2020-01-02
sreport job SizesByWckey start=2020-01-01 end=2020-01-02
sreport -P job SizesByAccount start=2020-01-01 end=2020-01-02 grouping=10,50
sreport job SizesByAccount start=2020-01-01 end=2020-01-02 flatview
sreport job foo
sreport user
sreport user topusage start=2020-01-01 end=2020-01-02
sreport user top start=2020-01-01 end=2020-01-02 topcount=5
sreport -P user topusage start=2020-01-01 end=2020-01-02 group
sreport user foo
sreport reservation
sreport reservation utilization start=2020-01-01 end=2020-01-02
sreport -P reservation utilization start=2020-01-01 end=2020-01-02
sreport res util start=2020-01-01 end=2020-01-02
sreport cluster utilization start=abc
sreport cluster utilization start=2020-01-02 end=2020-01-01
sreport cluster utilization foo=1
sreport cluster utilization format=foo
sreport cluster utilization cluster=nosuch start=2020-01-01 end=2020-01-02
sreport cluster utilization clusters=oracle start=2020-01-01 end=2020-01-02
sreport -M nosuch cluster utilization start=2020-01-01 end=2020-01-02
sreport --local cluster utilization start=2020-01-01 end=2020-01-02
sreport -a cluster utilization start=2020-01-01 end=2020-01-02
sreport -Q cluster utilization start=2020-01-01 end=2020-01-02
sreport cluster AccountUtilizationByUser start=2020-01-01 end=2020-01-02 tree
sreport cluster AccountUtilizationByUser start=2020-01-01 end=2020-01-02 accounts=ml
sreport cluster UserUtilizationByAccount start=2020-01-01 end=2020-01-02 users=alice
sreport cluster AccountUtilizationByUser start=2020-01-01 end=2020-01-02 format=account,login,used
sreport -V
sreport version
sreport help | head -3
sreport --help | head -3
sreport --usage | head -3
sreport --foo
sreport exit
echo exit | sreport
SREPORT_TRES=mem sreport cluster utilization start=2020-01-01 end=2020-01-02""".split("\n")

MISC = """sdiag -V
sdiag --usage
sdiag --help | head -4
sdiag --help | wc -l
sdiag --foo
sdiag extra
sdiag -r
sdiag --reset
root$ sdiag -r
root$ sdiag --reset
sdiag -M nosuch
sdiag -M oracle | head -4
sdiag -a | head -2
sdiag | head -8 | cut -d: -f1
sdiag | cut -d: -f1 | grep -E '^[A-Z\\t]' | head -60
sdiag -t | head -3
sdiag -T | head -3
sdiag -i | head -3
sdiag -I | head -3
sdiag -c | head -2
sdiag --json | head -12
sdiag --json=list
scrontab -l
scrontab -e < /dev/null
scrontab -r
scrontab -V
scrontab --usage
scrontab --help | head -4
scrontab --foo
scrontab nofile
scrontab -u bob -l
root$ scrontab -u bob -l
root$ scrontab -u nosuch -l
printf '@daily true\\n' > c; scrontab c; echo $?; scrontab -l; scrontab -r
printf '* * * true\\n' > c; scrontab c
printf '0 1 * * * /bin/true\\n' | scrontab -; scrontab -l
printf '#SCRON --foo\\n@daily true\\n' > c; scrontab c
strigger
strigger --get
strigger --get -h
strigger --get --noheader
strigger --get -j 999999
strigger --get --id=5
strigger --get --user=alice
strigger --get --node
strigger --get -v
strigger -V
strigger --version
strigger --usage
strigger --help | head -4
strigger --help | wc -l
strigger --foo
strigger --set
strigger --set --node --down --program=/bin/true
strigger --set --jobid={J:aok} --fini --program=/bin/true
strigger --set --jobid={J:aok} --program=/bin/true
strigger --set --fini --program=/bin/true
strigger --set --jobid=abc --fini --program=/bin/true
strigger --set --jobid=999999 --fini --program=/bin/true
strigger --set --time --jobid=999999 --program=/bin/true
strigger --set --program=true --fini
strigger --clear
strigger --clear --id=5
strigger --clear --id=abc
strigger --clear --jobid=999999
strigger --clear --user=alice
strigger --clear --user=nosuch
strigger extra
strigger --get extra
strigger --get --clear
root$ strigger --get
root$ strigger --set --node --down --program=/bin/true
root$ strigger --clear --user=root
seff {J:aok}
seff 999999
seff""".split("\n")
