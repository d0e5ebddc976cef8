"""Manifests for Kubernetes: a JobSet in which the head runs the program and workers dial it. Kubernetes places and restarts the pods.

The JobSet API: https://jobset.sigs.k8s.io (v1alpha2). The guide: docs/kubernetes.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from everstep.launch.seam import ALLOCATOR

Manifest: TypeAlias = dict[str, Any]

PORT = 7000
_TOKENS = "/var/run/secrets/everstep"
_FOREVER = (1 << 31) - 1  # restarts: the head counts incarnations, and Kubernetes slows a loop of crashes down
_GONE_SECONDS = 30  # a node that says nothing for so long has lost its pods
_MARGIN_SECONDS = 10  # between the end that a worker makes for itself and the one that Kubernetes makes


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is to run.

    name: of the JobSet; a DNS label. command: the program's. resources: of each worker's container, by Kubernetes' names ("cpu",
    "nvidia.com/gpu"). grace: seconds that a worker stays after it was told to go. restarts: of everything, when the head's pod is lost.
    """

    name: str
    image: str
    command: Sequence[str]
    namespace: str | None = None
    slices: int = 1
    workers_per_slice: int = 1
    devices_per_worker: int = 1
    spares: int = 0
    resources: Mapping[str, str] = dataclasses.field(default_factory=dict)
    grace: int = 20
    restarts: int = 3


def secret(plan: Plan, head: str, worker: str) -> Manifest:
    """The tokens of the head and of the workers. To be kept as the secrets that they are."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(plan),
        "type": "Opaque",
        "stringData": {"head": head, "worker": worker},
    }


def jobset(plan: Plan) -> Manifest:
    """The head, a Job for each slice, and one for the spares."""
    jobs = [_head(plan), _workers(plan, "slice", plan.slices, plan.workers_per_slice, after="head")]
    if plan.spares:  # last, so that each slice's own workers have its places first
        jobs.append(_workers(plan, "spare", 1, plan.spares, after="slice"))
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(plan),
        "spec": {
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["head"]},  # it is over when the program is
            "failurePolicy": {
                "maxRestarts": plan.restarts,
                # A program that fails is not run again; one whose pod was taken away is.
                "rules": [
                    {
                        "name": "program",
                        "action": "FailJobSet",
                        "targetReplicatedJobs": ["head"],
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": jobs,
        },
    }


def _metadata(plan: Plan) -> Manifest:
    return {"name": plan.name} | ({"namespace": plan.namespace} if plan.namespace else {})


def _head(plan: Plan) -> Manifest:
    counts = {"slices": plan.slices, "workers-per-slice": plan.workers_per_slice, "devices-per-worker": plan.devices_per_worker}
    options = [f"--{name}={count}" for name, count in counts.items()]
    container = {
        "name": "head",
        "image": plan.image,
        "command": [
            *("everstep", "run", "--workers=external", f"--join=[$(POD_IP)]:{PORT}", f"--token-file={_TOKENS}/token"),
            *(*options, f"--grace-period={plan.grace}", "--", *plan.command),
        ],
        "env": [_from_pod("POD_IP", "status.podIP")],
        "ports": [{"name": "workers", "containerPort": PORT}],
        # Workers are created when it listens. Only asked until then: each question is a call that the head refuses.
        "startupProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 2, "failureThreshold": 150},
        "volumeMounts": [_token_mount(), {"name": "memory", "mountPath": "/dev/shm"}],  # for host buffers, between program and head
    }
    job = {
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"containerName": "head", "operator": "NotIn", "values": [0]}},
            ]
        },
    }
    volumes = [_token_volume(plan, "head"), {"name": "memory", "emptyDir": {"medium": "Memory"}}]
    return _replicated("head", 1, 1, job, {"restartPolicy": "Never", "containers": [container], "volumes": volumes})


def _workers(plan: Plan, name: str, replicas: int, pods: int, *, after: str) -> Manifest:
    """Jobs of so many pods each. A container that ends is started again where it was, a pod that is gone is made anew, and no other."""
    where = ["--slice=$(SLICE)"] if name == "slice" else []
    container: Manifest = {
        "name": "worker",
        "image": plan.image,
        "command": [
            *("everstep", "worker", f"--head={plan.name}-head-0-0.{plan.name}:{PORT}", f"--token-file={_TOKENS}/token"),
            *(*where, f"--devices={plan.devices_per_worker}"),
        ],
        "env": [
            _from_pod("SLICE", "metadata.labels['jobset.sigs.k8s.io/job-index']"),
            *({"name": name, "value": value} for name, value in ALLOCATOR.items()),
        ],
        "volumeMounts": [_token_mount()],
    }
    if plan.resources:
        container["resources"] = {"requests": dict(plan.resources), "limits": dict(plan.resources)}
    gone = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _GONE_SECONDS}
        for what in ("not-ready", "unreachable")
    ]
    pod = {
        "restartPolicy": "OnFailure",
        # SIGTERM, which comes first, is the notice. A preStop hook would come before it, and only put it off.
        "terminationGracePeriodSeconds": plan.grace + _MARGIN_SECONDS,
        "tolerations": gone,
        "containers": [container],
        "volumes": [_token_volume(plan, "worker")],
    }
    job = _replicated(name, replicas, pods, {"backoffLimit": _FOREVER}, pod)
    return job | {"dependsOn": [{"name": after, "status": "Ready"}]}


def _replicated(name: str, replicas: int, pods: int, job: Manifest, pod: Manifest) -> Manifest:
    spec = {"completions": pods, "parallelism": pods, **job, "template": {"spec": {"automountServiceAccountToken": False, **pod}}}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def _from_pod(name: str, path: str) -> Manifest:
    """An environment variable with something that Kubernetes knows of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _token_volume(plan: Plan, whose: str) -> Manifest:
    return {"name": "token", "secret": {"secretName": plan.name, "items": [{"key": whose, "path": "token"}]}}


def _token_mount() -> Manifest:
    return {"name": "token", "mountPath": _TOKENS, "readOnly": True}
