"""Samples: cut from text or tokens, in an order that is a function of the seed and the number of the sample alone."""

from __future__ import annotations

import glob
import pathlib
import sysconfig
from collections.abc import Sequence

import grain
import numpy as np
import numpy.typing as npt

from everstep.train.config import ConfigError, Data

Tokens = npt.NDArray[np.int32]

_BYTES = 256


class Samples:
    """Samples of `length` + 1 tokens each: what the model reads, and one more."""

    def __init__(self, tokens: Tokens, length: int, seed: int) -> None:
        """tokens: [any number]. Raises ConfigError if they are not enough for one sample."""
        self._tokens = tokens
        self._length = length
        self.count = (len(tokens) - 1) // length
        if self.count < 1:
            raise ConfigError(
                f"data.files: {len(tokens)} tokens are not enough for a sample of {length + 1} (model.context, data.validation)"
            )
        self._order = grain.MapDataset.range(self.count).seed(seed).shuffle().repeat()

    def batch(self, step: int, size: int) -> Tokens:
        """The samples of a step: int32 [size, length + 1]. The order is another one in each pass over the data."""
        starts = [int(self._order[index]) * self._length for index in range(step * size, (step + 1) * size)]
        return np.stack([self._tokens[start : start + self._length + 1] for start in starts])


class Corpus:
    """All the data of a run."""

    def __init__(self, config: Data, length: int) -> None:
        """Reads everything. Raises ConfigError for files that are not there or not usable."""
        paths = _paths(config.files)
        if all(path.suffix == ".npy" for path in paths):
            tokens = np.concatenate([_load(path) for path in paths])
            self.vocabulary = int(tokens.max()) + 1
        else:
            tokens, self.vocabulary = _tokenized(paths, config.tokenizer)
        held_out = int(len(tokens) * config.validation)
        self.files = len(paths)
        self.training = Samples(tokens[: len(tokens) - held_out], length, config.seed)
        self.validation = Samples(tokens[len(tokens) - held_out :], length, config.seed) if held_out > length else None


def _paths(files: Sequence[str]) -> list[pathlib.Path]:
    paths: list[pathlib.Path] = []
    for pattern in files:
        if pattern == "stdlib":
            found = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        else:
            found = sorted(path for name in glob.glob(pattern, recursive=True) if (path := pathlib.Path(name)).is_file())
        if not found:
            raise ConfigError(f"data.files: {pattern!r} names no file")
        paths += found
    return paths


def _load(path: pathlib.Path) -> Tokens:
    tokens = np.load(path)
    if not np.issubdtype(tokens.dtype, np.integer) or (tokens.size and tokens.min() < 0):
        raise ConfigError(f"data.files: {path} holds {tokens.dtype}, not tokens: whole numbers from 0 on")
    return np.asarray(tokens.reshape(-1), np.int32)


def _tokenized(paths: Sequence[pathlib.Path], tokenizer: str) -> tuple[Tokens, int]:
    if tokenizer == "bytes":
        return np.concatenate([np.frombuffer(path.read_bytes(), np.uint8) for path in paths]).astype(np.int32), _BYTES
    import sentencepiece

    try:
        pieces = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"data.tokenizer: {tokenizer!r} is neither 'bytes' nor a SentencePiece model: {error}") from error
    tokens = [np.asarray(pieces.encode(path.read_text(errors="replace")), np.int32) for path in paths]
    return np.concatenate(tokens), int(pieces.vocab_size())
