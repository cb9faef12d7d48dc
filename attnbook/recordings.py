"""What two trained models computed for two short texts: queries, keys, values and weights.

Which models, how they were recorded and under which licence: ``attnbook/recorded/README.md``.
Layers and heads count from 0 here, as in the recorded arrays.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnbook.heads import grouped_attention
from attnbook.masks import causal

FOLDER = Path(__file__).parent / "recorded"


class Decoder(NamedTuple):
    """One text in SmolLM2-135M-Instruct, causal, nine query heads on three key/value heads."""

    tokens: tuple[str, ...]
    layers: tuple[int, ...]  # which layers were recorded
    q: NDArray  # (layers, 9, T, 64), float16, after the rotary positions
    k: NDArray  # (layers, 3, T, 64), float16, after the rotary positions
    v: NDArray  # (layers, 3, T, 64), float16
    text: str
    next_tokens: tuple[tuple[str, float], ...]  # the five most probable ones, with probabilities


class Encoder(NamedTuple):
    """One text in all-MiniLM-L6-v2, without a mask, twelve heads."""

    tokens: tuple[str, ...]
    A: NDArray  # (6, 12, T, T), float32


def sentence() -> Decoder:
    """Return the recording of "I love GPU programming" in SmolLM2, all 30 layers.

    Returns
    -------
    Decoder
        T = 4; the arrays cannot be written to.

    Examples
    --------
    >>> sentence().tokens, sentence().q.shape
    (('I', ' love', ' GPU', ' programming'), (30, 9, 4, 64))
    """
    return _decoder("sentence", "i_love_gpu_programming")


def word_list() -> Decoder:
    """Return the recording of a list of nine words that begins again, in six layers of SmolLM2.

    Returns
    -------
    Decoder
        T = 18; the arrays cannot be written to.

    Examples
    --------
    >>> word_list().layers, word_list().next_tokens[0]
    ((11, 16, 17, 18, 20, 29), (' window', 0.427))
    """
    return _decoder("word_list", "word_list_twice")


@cache
def encoder_sentence() -> Encoder:
    """Return the recorded weights of "I love GPU programming" in MiniLM, all 6 layers.

    Returns
    -------
    Encoder
        T = 7, with the tokens [CLS] and [SEP] around the text; A cannot be written to.

    Examples
    --------
    >>> encoder_sentence().tokens
    ('[CLS]', 'i', 'love', 'gp', '##u', 'programming', '[SEP]')
    """
    arrays = _arrays("minilm_sentence")
    return Encoder(tuple(arrays["tokens"].tolist()), arrays["attention"])


def weights(recording: Decoder) -> NDArray:
    """Return the weights of every recorded head, recomputed from q and k in float64.

    With g(h) = floor(h / 3), for each layer and head h = 0, ..., 8::

        A^(h) = softmax(q^(h) k^(g(h))^T / sqrt(64)),   position i reading positions 0, ..., i

    Parameters
    ----------
    recording : Decoder

    Returns
    -------
    float64 array, shape (layers, 9, T, T)

    Raises
    ------
    TypeError
        This is not the recording of a decoder.
    ValueError
        Its arrays were replaced by others that do not fit together.

    Examples
    --------
    >>> weights(sentence())[1, 0, 3].round(2).tolist()
    [0.07, 0.09, 0.46, 0.38]
    """
    if not isinstance(recording, Decoder):
        hint = ": its weights are recorded, in .A" if isinstance(recording, Encoder) else ""
        raise TypeError(
            "recording must be a Decoder, as sentence() and word_list() return it; got "
            f"{type(recording).__name__}{hint}"
        )
    Q, K, V = (np.asarray(x, dtype=float) for x in (recording.q, recording.k, recording.v))
    T = len(recording.tokens)
    if Q.ndim < 2 or Q.shape[-2] != T:
        raise ValueError(f"q must have one row for each of the {T} tokens, got shape {Q.shape}")
    return grouped_attention(Q, K, V, causal(T, T)).A


@cache
def _decoder(name: str, key: str) -> Decoder:
    arrays = _arrays(f"smollm2_{name}")
    said = json.loads((FOLDER / "smollm2_next_tokens.json").read_text(encoding="utf-8"))[key]
    return Decoder(
        tuple(arrays["tokens"].tolist()),
        tuple(arrays["layers"].tolist()),
        arrays["q"],
        arrays["k"],
        arrays["v"],
        said["text"],
        tuple((token, probability) for token, probability in said["next"]),
    )


def _arrays(name: str) -> dict[str, NDArray]:
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays
