"""The manifests against the schema that JobSet publishes, with fields that it does not know taken for mistakes."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import jsonschema
import pytest

from everstep.launch import kubernetes
from everstep.launch.kubernetes import Plan

SMALL = Plan("small", "registry/image:1", ["python", "train.py"])
LARGE = Plan(
    "large",
    "registry/image:1",
    ["python", "train.py", "--steps", "10"],
    namespace="training",
    slices=4,
    workers_per_slice=2,
    devices_per_worker=8,
    spares=3,
    resources={"cpu": "4", "nvidia.com/gpu": "8"},
)


def _closed(schema: Any) -> Any:
    """Kubernetes drops what it does not know without a word; here it is an error."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


@pytest.fixture(scope="module")
def schema() -> Any:
    (path,) = pathlib.Path(__file__).parent.joinpath("schemas").glob("jobset-*.json")
    schema = json.loads(path.read_text())
    schema["properties"]["metadata"] |= {"properties": {"name": {"type": "string"}, "namespace": {"type": "string"}}, "required": ["name"]}
    return _closed(schema)


@pytest.mark.parametrize("plan", [SMALL, LARGE], ids=lambda plan: plan.name)
def test_the_jobset_is_as_published(plan: Plan, schema: Any) -> None:
    jsonschema.validate(kubernetes.jobset(plan), schema)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "failurePolicy", "maxRestarts"), "3"),
        (("spec", "replicatedJobs", 1, "dependsOn", 0, "status"), "Up"),
        (("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "comand"), ["everstep"]),
    ],
    ids=["type", "choice", "unknown field"],
)
def test_mistakes_would_be_found(path: tuple[str | int, ...], value: Any, schema: Any) -> None:
    wrong: Any = copy.deepcopy(kubernetes.jobset(SMALL))
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_who_is_there() -> None:
    head, slices, spares = kubernetes.jobset(LARGE)["spec"]["replicatedJobs"]
    assert [(job["name"], job["replicas"], job["template"]["spec"]["parallelism"]) for job in (head, slices, spares)] == [
        ("head", 1, 1),
        ("slice", 4, 2),
        ("spare", 1, 3),
    ]
    assert "dependsOn" not in head
    assert [job["dependsOn"] for job in (slices, spares)] == [[{"name": name, "status": "Ready"}] for name in ("head", "slice")]
    assert len(kubernetes.jobset(SMALL)["spec"]["replicatedJobs"]) == 2


def test_a_worker_is_told_to_go_and_has_time_to() -> None:
    _, slices = kubernetes.jobset(SMALL)["spec"]["replicatedJobs"]
    pod = slices["template"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > SMALL.grace
    assert pod["restartPolicy"] == "OnFailure"  # this container, and no other


def test_each_has_its_own_token_and_no_other() -> None:
    secret = kubernetes.secret(LARGE, "of the head", "of the workers")
    assert secret["metadata"] == {"name": "large", "namespace": "training"}
    for job, key in zip(kubernetes.jobset(LARGE)["spec"]["replicatedJobs"], ("head", "worker", "worker"), strict=True):
        pod = job["template"]["spec"]["template"]["spec"]
        (volume,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
        assert volume == {"secretName": "large", "items": [{"key": key, "path": "token"}]}
        assert key in secret["stringData"]
