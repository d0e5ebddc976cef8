"""Samples are a function of the seed and their number."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from everstep.train.config import ConfigError, Data
from everstep.train.data import Corpus, Samples

TOKENS = np.arange(101, dtype=np.int32)


def test_each_pass_has_every_sample_once_in_another_order() -> None:
    samples = Samples(TOKENS, 10, seed=1)
    assert samples.count == 10
    passes = [samples.batch(number, 10)[:, 0] // 10 for number in range(3)]
    assert all(sorted(each) == list(range(10)) for each in passes)
    assert not (passes[0] == passes[1]).all()


def test_the_order_depends_on_the_number_of_the_sample_alone() -> None:
    samples = Samples(TOKENS, 10, seed=1)
    whole = np.concatenate([samples.batch(step, 4) for step in range(6)])
    np.testing.assert_array_equal(whole, np.concatenate([Samples(TOKENS, 10, seed=1).batch(step, 3) for step in range(8)]))
    np.testing.assert_array_equal(samples.batch(5, 4), whole[20:])
    assert not (Samples(TOKENS, 10, seed=2).batch(0, 10) == samples.batch(0, 10)).all()


def test_a_sample_is_what_is_read_and_one_token_more() -> None:
    for sample in Samples(TOKENS, 10, seed=0).batch(0, 10):
        np.testing.assert_array_equal(sample, np.arange(sample[0], sample[0] + 11))


def test_text_as_bytes_with_a_part_held_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_bytes(bytes(range(100)))
    (tmp_path / "b.txt").write_bytes(bytes(range(100)))
    corpus = Corpus(Data([f"{tmp_path}/*.txt"], validation=0.2), 9)
    assert (corpus.files, corpus.vocabulary, corpus.training.count) == (2, 256, 17)
    assert corpus.validation is not None
    assert corpus.validation.count == 4
    assert corpus.validation.batch(0, 4).min() >= 60


def test_tokens_in_arrays(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "tokens.npy", np.arange(50, dtype=np.uint16))
    corpus = Corpus(Data([f"{tmp_path}/tokens.npy"], validation=0), 7)
    assert (corpus.vocabulary, corpus.training.count, corpus.validation) == (50, 7, None)


def test_a_sentencepiece_model(tmp_path: pathlib.Path) -> None:
    import sentencepiece

    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 200)
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(tmp_path / "m"), vocab_size=30, minloglevel=2)
    corpus = Corpus(Data([str(text)], tokenizer=str(tmp_path / "m.model")), 8)
    assert corpus.vocabulary == 30
    assert corpus.training.batch(0, 2).max() < 30


@pytest.mark.parametrize(
    ("files", "tokenizer", "message"),
    [
        (["nothing/*.txt"], "bytes", "data.files: 'nothing/\\*.txt' names no file"),
        (["{here}/floats.npy"], "bytes", "holds float64, not tokens"),
        (["{here}/short.txt"], "bytes", "data.files: 3 tokens are not enough for a sample of 9"),
        (["{here}/short.txt"], "nowhere.model", "data.tokenizer: 'nowhere.model' is neither 'bytes' nor a SentencePiece model"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: pathlib.Path, files: list[str], tokenizer: str, message: str) -> None:
    np.save(tmp_path / "floats.npy", np.ones(50))
    (tmp_path / "short.txt").write_text("abc")
    with pytest.raises(ConfigError, match=message):
        Corpus(Data([each.replace("{here}", str(tmp_path)) for each in files], tokenizer), 8)
