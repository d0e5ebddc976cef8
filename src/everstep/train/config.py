"""What a training run is made of: a small YAML file, overrides on the command line, and messages that name the field."""

from __future__ import annotations

import dataclasses
import difflib
import json
import pathlib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import yaml

T = TypeVar("T")


class ConfigError(ValueError):
    """A field is wrong; the message names it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A decoder. hidden: width of the feed-forward layers, 0: 8/3 of width, rounded up to a multiple of 32."""

    width: int = 128
    layers: int = 4
    heads: int = 4
    kv_heads: int = 4
    hidden: int = 0
    context: int = 128
    dtype: str = "float32"  # of activations: float32 or bfloat16; parameters are float32

    def check(self) -> None:
        _positive(self, "model", "width", "layers", "heads", "kv_heads", "context")
        _require(self.width % self.heads == 0, "model.heads", f"{self.heads} does not divide model.width, {self.width}")
        _require((self.width // self.heads) % 2 == 0, "model.heads", "rotary positions need heads of an even width")
        _require(self.heads % self.kv_heads == 0, "model.kv_heads", f"{self.kv_heads} does not divide model.heads, {self.heads}")
        _require(self.hidden >= 0, "model.hidden", f"{self.hidden} is negative")
        _require(self.dtype in ("float32", "bfloat16"), "model.dtype", f"{self.dtype!r} is neither float32 nor bfloat16")


@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    """Text or tokens. files: paths and globs of text, or of .npy files of tokens; "stdlib": the sources of Python's standard library.

    tokenizer: "bytes" or the path of a SentencePiece model. validation: the share of the data that is held out.
    seed: of the order of samples.
    """

    files: list[str] = dataclasses.field(default_factory=lambda: ["stdlib"])
    tokenizer: str = "bytes"
    validation: float = 0.02
    seed: int = 0

    def check(self) -> None:
        _require(bool(self.files), "data.files", "there must be some")
        _require(0 <= self.validation < 0.5, "data.validation", f"{self.validation} is not from 0 to 0.5")


@dataclasses.dataclass(frozen=True, slots=True)
class Optimizer:
    """AdamW with a linear warm-up and a cosine decay to `floor` times the learning rate."""

    learning_rate: float = 1e-3
    warmup: int = 20
    floor: float = 0.1
    weight_decay: float = 0.1
    clip: float = 1.0
    b1: float = 0.9
    b2: float = 0.95

    def check(self) -> None:
        _positive(self, "optimizer", "learning_rate", "clip")
        _require(self.warmup >= 0, "optimizer.warmup", f"{self.warmup} is negative")
        for name in ("floor", "b1", "b2"):
            _require(0 <= getattr(self, name) < 1, f"optimizer.{name}", f"{getattr(self, name)} is not from 0 to 1")


@dataclasses.dataclass(frozen=True, slots=True)
class Mesh:
    """How devices are used: `fsdp` of them share the parameters, `tensor` share each matrix; what is left is data parallel."""

    fsdp: int = 1
    tensor: int = 1

    def check(self) -> None:
        _positive(self, "mesh", "fsdp", "tensor")


@dataclasses.dataclass(frozen=True, slots=True)
class Train:
    """The run. batch: samples per step over all devices, the same whatever slices there are. most: samples per device at one time.

    Every so many steps: evaluate, checkpoint, snapshot, log. 0: never. keep: so many checkpoints.
    checkpoint_timeout: seconds after which one that is not written is given up.
    """

    steps: int = 200
    batch: int = 16
    most: int = 8
    seed: int = 0
    evaluate: int = 100
    evaluate_batches: int = 4
    checkpoint: int = 50
    checkpoint_timeout: float = 600.0
    keep: int = 3
    snapshot: int = 1
    log: int = 10
    elastic: str = "pause"  # pause, resize, off

    def check(self) -> None:
        _positive(self, "train", "steps", "batch", "most", "evaluate_batches", "checkpoint_timeout", "keep", "log")
        for name in ("evaluate", "checkpoint", "snapshot"):
            _require(getattr(self, name) >= 0, f"train.{name}", f"{getattr(self, name)} is negative")
        _require(self.elastic in ("pause", "resize", "off"), "train.elastic", f"{self.elastic!r} is none of pause, resize, off")


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """Everything."""

    model: Model = dataclasses.field(default_factory=Model)
    data: Data = dataclasses.field(default_factory=Data)
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    mesh: Mesh = dataclasses.field(default_factory=Mesh)
    train: Train = dataclasses.field(default_factory=Train)

    @staticmethod
    def load(path: pathlib.Path | None, overrides: Sequence[str] = ()) -> Config:
        """From a YAML file (None: the defaults) and overrides like "model.width=256". Raises ConfigError, OSError."""
        values: Any = {}
        if path is not None:
            try:
                values = yaml.safe_load(path.read_text()) or {}
            except yaml.YAMLError as error:
                raise ConfigError(f"{path} is not YAML: {error}") from error
        if not isinstance(values, dict):
            raise ConfigError(f"{path} must hold fields with their values, not {type(values).__name__}")
        for override in overrides:
            name, equals, text = override.partition("=")
            group, dot, field = name.partition(".")
            if not (equals and dot and field):
                raise ConfigError(f"{override!r} is not GROUP.FIELD=VALUE, e.g. model.width=256")
            values = {**values, group: {**(values.get(group) or {}), field: yaml.safe_load(text)}}
        config = _made(Config, values, "")
        for each in (config.model, config.data, config.optimizer, config.mesh, config.train):
            each.check()
        return config

    def as_dict(self) -> dict[str, Any]:
        """For JSON and YAML."""
        return dataclasses.asdict(self)

    def difference(self, other: Mapping[str, Any]) -> list[str]:
        """What can't be changed in the middle of a run and differs from another run's `as_dict`: "model.width: 128, was 256"."""
        mine, fixed = json.loads(json.dumps(self.as_dict())), (("train", "batch"), ("train", "seed"), ("train", "steps"))
        names = [(group, field) for group in ("model", "data", "optimizer") for field in mine[group]] + list(fixed)
        return [
            f"{group}.{field}: {mine[group][field]}, was {other.get(group, {}).get(field)}"
            for group, field in names
            if mine[group][field] != other.get(group, {}).get(field)
        ]


def _made(kind: type[T], values: Any, where: str) -> T:
    """A dataclass from nested dictionaries. Raises ConfigError that names the field."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where or 'the config'} must hold fields with their values, not {values!r}")
    hints = typing.get_type_hints(kind)
    given = {}
    for name, value in values.items():
        full = f"{where}.{name}" if where else str(name)
        if name not in hints:
            close = difflib.get_close_matches(str(name), hints, 1)
            advice = f"is {close[0]!r} meant?" if close else f"there are {', '.join(hints)}"
            raise ConfigError(f"{full}: there is no such field; {advice}")
        hint = hints[name]
        given[name] = _made(hint, value, full) if isinstance(hint, type) and dataclasses.is_dataclass(hint) else _value(hint, value, full)
    return kind(**given)


def _value(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, types.GenericAlias):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ConfigError(f"{where}: {value!r} is not a list of texts")
        return value
    if hint is str and isinstance(value, bool):  # YAML reads off as False
        return "on" if value else "off"
    if hint is float and isinstance(value, str):  # YAML reads 1e-3 as a text
        try:
            return float(value)
        except ValueError:
            pass
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or isinstance(value, bool):
        what = {int: "a whole number", float: "a number", str: "a text"}[hint]
        raise ConfigError(f"{where}: {value!r} is not {what}")
    return value


def _positive(config: Any, group: str, *names: str) -> None:
    for name in names:
        _require(getattr(config, name) > 0, f"{group}.{name}", f"{getattr(config, name)} is not above zero")


def _require(condition: bool, name: str, message: str) -> None:
    if not condition:
        raise ConfigError(f"{name}: {message}")
