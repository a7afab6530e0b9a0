import json
from typing import Any

import pytest

from seq2seq_memattn.config import DevicesConfig
from seq2seq_memattn.training.distributed.cluster import Cluster, find_cluster

HOSTS = ["a:1", "b:2", "c:3"]


def variable(cluster: Any, task: Any) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def test_alone_there_is_no_cluster() -> None:
    assert find_cluster(DevicesConfig(), {}) is None
    assert find_cluster(DevicesConfig(), {"TF_CONFIG": "{}"}) is None


def test_options_and_variable_name_the_same_cluster() -> None:
    config = DevicesConfig(workers=",".join(HOSTS), task_index=2)
    given = find_cluster(config, {})
    assert given == Cluster({"worker": HOSTS}, "worker", 2)
    task = {"type": "worker", "index": 2}
    assert find_cluster(DevicesConfig(), variable({"worker": HOSTS}, task)) == given
    assert given is not None
    assert (given.size, given.position, given.serves) == (3, 2, False)


def test_the_chief_comes_first() -> None:
    jobs = {"worker": HOSTS[:2], "chief": HOSTS[2:]}
    tasks = [("chief", 0), ("worker", 0), ("worker", 1)]
    found = [
        find_cluster(DevicesConfig(), variable(jobs, {"type": job, "index": index}))
        for job, index in tasks
    ]
    assert [cluster and cluster.position for cluster in found] == [0, 1, 2]


def test_beside_parameter_servers_all_but_the_chief_serve() -> None:
    jobs = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    for job, expected in (("chief", False), ("worker", True), ("ps", True)):
        cluster = find_cluster(DevicesConfig(), variable(jobs, {"type": job, "index": 0}))
        assert cluster is not None
        assert cluster.is_asynchronous
        assert cluster.serves is expected


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ({"workers": "a:1,b:2", "task_index": 2}, {}, "expected a task of worker 0 to 1"),
        ({"workers": "a:1,b:2"}, {}, "expected a task of worker 0 to 1; got worker -1"),
        ({"workers": "a:1,b", "task_index": 0}, {}, "expected host:port; got 'b'"),
        ({"workers": "a:1,b:x", "task_index": 0}, {}, "expected host:port; got 'b:x'"),
        ({"workers": "a:1, a:1", "task_index": 0}, {}, "expected addresses that differ"),
        ({"task_index": 0}, {}, "--task_index: expected --workers too"),
        (
            {"workers": "a:1,b:2", "task_index": 0},
            variable({"worker": HOSTS}, {"type": "worker", "index": 0}),
            "expected no TF_CONFIG, which also",
        ),
        ({}, {"TF_CONFIG": "{"}, "TF_CONFIG: expected {"),
        ({}, {"TF_CONFIG": "[1]"}, "TF_CONFIG: expected {"),
        ({}, variable({"worker": HOSTS}, {}), "TF_CONFIG: expected {"),
        (
            {},
            variable({"worker": HOSTS}, {"type": "worker", "index": "x"}),
            "TF_CONFIG: expected {",
        ),
        ({}, variable({"worker": HOSTS}, {"type": "worker", "index": 3}), "got worker 3"),
        ({}, variable({"boss": HOSTS}, {"type": "boss", "index": 0}), "got 'boss'"),
        (
            {},
            variable({"chief": HOSTS}, {"type": "chief", "index": 0}),
            "expected one chief; got 3",
        ),
        (
            {},
            variable({"worker": HOSTS[:2], "ps": HOSTS[2:]}, {"type": "ps", "index": 0}),
            "expected one chief and at least one worker with parameter servers",
        ),
    ],
)
def test_what_names_no_cluster_is_refused(
    options: dict[str, Any], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError) as error:
        find_cluster(DevicesConfig(**options), environment)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
