"""The recordings of two trained models: what they hold, whence, and the weights that follow."""

import hashlib
import math

import numpy as np
import pytest

from attnbook import recordings

LIST = recordings.word_list()


def plain_row(q, k):
    """One row of weights in plain Python, from the visible keys."""
    u = [math.fsum(float(x) * float(y) for x, y in zip(q, row, strict=True)) / 8 for row in k]
    e = [math.exp(x - max(u)) for x in u]
    return [x / math.fsum(e) for x in e]


def test_shapes_and_types():
    for text, layers in ((recordings.sentence(), 30), (LIST, 6)):
        T = len(text.tokens)
        assert len(text.layers) == layers
        assert text.q.shape == (layers, 9, T, 64)
        assert text.k.shape == text.v.shape == (layers, 3, T, 64)
        assert text.q.dtype == text.k.dtype == text.v.dtype == np.float16
        assert "".join(text.tokens) == text.text
        assert [p for _, p in text.next_tokens] == sorted((p for _, p in text.next_tokens))[::-1]
    encoder = recordings.encoder_sentence()
    assert encoder.A.shape == (6, 12, 7, 7)
    np.testing.assert_allclose(encoder.A.sum(axis=-1), 1, atol=1e-6)


def test_nobody_can_write_to_a_recording():
    arrays = [LIST.q, LIST.k, LIST.v, recordings.encoder_sentence().A]
    for x in arrays:
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 0


def test_provenance_stands_beside_the_arrays():
    said = (recordings.FOLDER / "README.md").read_text(encoding="utf-8")
    for file in recordings.FOLDER.iterdir():
        assert f"`{file.name}`" in said or file.name == "README.md"
    for word in ("SmolLM2-135M-Instruct", "all-MiniLM-L6-v2", "Apache License 2.0", "4 bits"):
        assert word in said
    assert "Apache License" in (recordings.FOLDER / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize(("n", "h", "i"), [(0, 0, 17), (1, 2, 9), (2, 4, 12), (3, 8, 1), (5, 5, 0)])
def test_weights_are_softmax_of_the_shared_keys(n, h, i):
    a = recordings.weights(LIST)[n, h, i]
    np.testing.assert_allclose(
        a[: i + 1], plain_row(LIST.q[n, h, i], LIST.k[n, h // 3, : i + 1]), atol=1e-12
    )
    assert not a[i + 1 :].any()


@pytest.mark.parametrize(
    ("text", "name", "digest"),
    [
        ("sentence", "q", "bf55491382a36b64"),
        ("sentence", "k", "1a62f9ba3374d5f1"),
        ("sentence", "v", "d87602902999ad12"),
        ("word_list", "q", "63c031bcde38a187"),
        ("word_list", "k", "1847af4631bcea6d"),
        ("word_list", "v", "5fc7f44d9c6c3276"),
        ("encoder_sentence", "A", "a859ee6aaf5aba0a"),
    ],
)
def test_the_arrays_are_those_that_were_recorded(text, name, digest):
    """Every number of chapter 14 rests on them; the files were copied, not computed anew."""
    x = getattr(getattr(recordings, text)(), name)
    data = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")).tobytes()
    assert hashlib.sha256(data).hexdigest()[:16] == digest


def test_which_layers_were_recorded():
    assert recordings.sentence().layers == tuple(range(30))
    assert LIST.layers == (11, 16, 17, 18, 20, 29)


def test_next_tokens_belong_to_their_text():
    assert LIST.next_tokens[0] == (" window", 0.427)
    assert recordings.sentence().next_tokens[0] == (".", 0.211)
    assert LIST.tokens[8] == " window"
    for text in (recordings.sentence(), LIST):
        assert len(text.next_tokens) == 5
        assert 0 < sum(p for _, p in text.next_tokens) < 1


def test_weights_without_the_recording_of_v():
    """The values have no part in the weights; a common shift of all keys has none either."""
    other = LIST._replace(v=np.zeros_like(LIST.v), k=LIST.k.astype(float) + np.arange(64) / 9)
    np.testing.assert_allclose(recordings.weights(other), recordings.weights(LIST), atol=1e-9)


def test_what_is_no_recording_of_a_decoder_is_told():
    for other in (None, "sentence", recordings.sentence):
        with pytest.raises(TypeError, match="recording must be a Decoder, as sentence"):
            recordings.weights(other)
    with pytest.raises(TypeError, match=r"got Encoder: its weights are recorded, in \.A"):
        recordings.weights(recordings.encoder_sentence())
    with pytest.raises(ValueError, match="one row for each of the 1 tokens"):
        recordings.weights(recordings.sentence()._replace(tokens=("I",)))
    with pytest.raises(ValueError, match=r"expected Q \(\.\.\., T, d_k\)"):
        recordings.weights(LIST._replace(q=LIST.q[:2]))
