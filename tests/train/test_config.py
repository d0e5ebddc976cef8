"""Configs, and messages that name the field."""

from __future__ import annotations

import pathlib

import pytest

from everstep.train.config import Config, ConfigError


def test_defaults_are_good() -> None:
    assert Config.load(None) == Config()


def test_a_file_and_overrides(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("model: {width: 64, heads: 2, kv_heads: 1}\noptimizer:\n  learning_rate: 3e-4\n")
    config = Config.load(path, ["model.layers=2", "optimizer.clip=2", "data.files=[a, b]", "train.elastic=off"])
    assert (config.model.width, config.model.layers, config.optimizer.learning_rate, config.optimizer.clip) == (64, 2, 3e-4, 2.0)
    assert (config.data.files, config.train.elastic) == (["a", "b"], "off")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.widht=1"], "model.widht: there is no such field; is 'width' meant?"),
        (["modell.width=1"], "modell: there is no such field; is 'model' meant?"),
        (["model.width=wide"], "model.width: 'wide' is not a whole number"),
        (["model.width=1.5"], "model.width: 1.5 is not a whole number"),
        (["model.width=true"], "model.width: True is not a whole number"),
        (["model.heads=3"], "model.heads: 3 does not divide model.width, 128"),
        (["model.kv_heads=3"], "model.kv_heads: 3 does not divide model.heads, 4"),
        (["model.dtype=float16"], "model.dtype: 'float16' is neither float32 nor bfloat16"),
        (["optimizer.learning_rate=fast"], "optimizer.learning_rate: 'fast' is not a number"),
        (["optimizer.learning_rate=0"], "optimizer.learning_rate: 0.0 is not above zero"),
        (["data.files=[]"], "data.files: there must be some"),
        (["data.files=all"], "data.files: 'all' is not a list of texts"),
        (["data.validation=0.7"], "data.validation: 0.7 is not from 0 to 0.5"),
        (["train.elastic=on"], "train.elastic: 'on' is none of pause, resize, off"),
        (["train.elastic=maybe"], "train.elastic: 'maybe' is none of pause, resize, off"),
        (["train.steps=0"], "train.steps: 0 is not above zero"),
        (["model=5"], "'model=5' is not GROUP.FIELD=VALUE, e.g. model.width=256"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_is_wrong_is_named(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        Config.load(None, overrides)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"), [("[1]", "must hold fields with their values"), ("model: 5", "model must hold fields"), ("{", "is not YAML")]
)
def test_files_that_are_no_config(tmp_path: pathlib.Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        Config.load(path)


def test_what_may_not_change_in_the_middle_of_a_run() -> None:
    before = Config.load(None)
    after = Config.load(None, ["model.width=64", "train.log=1", "train.batch=8", "mesh.fsdp=2"])
    assert after.difference(before.as_dict()) == ["model.width: 64, was 128", "train.batch: 8, was 16"]
    assert before.difference(before.as_dict()) == []
