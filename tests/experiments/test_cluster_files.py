"""The files for schedulers are valid, and `train` accepts their commands."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from seq2seq_memattn.config import DevicesConfig
from seq2seq_memattn.presets.load import PRESETS
from seq2seq_memattn.training.distributed.cluster import find_cluster
from tests.running import ROOT

FOLDER = ROOT / "experiments" / "clusters"
RELEASE = "1.31"  # the version of Kubernetes


@pytest.fixture
def documents() -> dict[str, Any]:
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_kubernetes_knows_every_field(documents: dict[str, Any]) -> None:
    assert set(documents) == {"Service", "Job"}
    for document in documents.values():
        kubernetes_validate.validate(document, RELEASE, strict=True)
    wrong = {**documents["Service"], "spec": {"clusterIp": "None"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, RELEASE, strict=True)


def test_kubernetes_starts_a_whole_cluster(documents: dict[str, Any]) -> None:
    service, job = documents["Service"], documents["Job"]
    name, pod = job["metadata"]["name"], job["spec"]["template"]["spec"]
    assert service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    (container,) = pod["containers"]
    words = shlex.split(container["args"][0])
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    assert words[:3] == ["exec", "memattn", "train"]
    assert options["task_index"] == "$JOB_COMPLETION_INDEX"
    assert options["config"] in PRESETS
    port = service["spec"]["ports"][0]["port"]
    # The host names of an indexed job's pods.
    count = job["spec"]["completions"]
    hosts = [f"{name}-{index}.{pod['subdomain']}:{port}" for index in range(count)]
    assert job["spec"]["parallelism"] == count
    for index in (0, count - 1):
        found = find_cluster(DevicesConfig(workers=options["workers"], task_index=index), {})
        assert found is not None
        assert (found.addresses["worker"], found.task) == (hosts, index)
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounted) == {volume["name"] for volume in pod["volumes"]}
    assert options["data_dir"].startswith(mounted["data"])
    assert options["run_dir"].startswith(mounted["runs"])


@pytest.mark.parametrize(
    ("status", "other", "ends_with"),
    [
        (0, 75, 0),
        (1, 75, 1),
        (75, 137, 75),
        (75, 1, 1),  # such as missing data on this worker: requeueing would not help
        (137, 75, 137),
        (143, 143, 143),
    ],
)
def test_slurm_gets_a_command_for_each_task_and_goes_by_their_statuses(
    tmp_path: Path, status: int, other: int, ends_with: int
) -> None:
    # Replacements of Slurm's commands that the script uses. Each task's shell gets SIGTERM.
    fakes = {
        "scontrol": 'if [ "$1" = show ]; then printf "n1\\nn2\\n"; else echo "$@" > queued; fi',
        "srun": 'shift; SLURM_PROCID=1 "$@"; SLURM_PROCID=0 "$@"; exit 139',
        "memattn": 'printf "%s\\n" "$@" > "arguments$SLURM_PROCID"; '
        f"kill -TERM $PPID; if [ $SLURM_PROCID = 0 ]; then exit {status}; else exit {other}; fi",
    }
    for name, body in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_ID": "7",
    }
    process = subprocess.run(
        [FOLDER / "slurm.sh", "--config=copy_20_k4", "--data_dir=a b"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert process.returncode == ends_with, process.stderr
    for task in (0, 1):
        assert (tmp_path / f"arguments{task}").read_text().splitlines() == [
            "train",
            "--workers=n1:2222,n2:2222",
            f"--task_index={task}",
            "--config=copy_20_k4",
            "--data_dir=a b",
        ]
    assert (tmp_path / "queued").exists() == (ends_with in (75, 137, 143))
    assert not list(tmp_path.glob("seq2seq-train*"))
