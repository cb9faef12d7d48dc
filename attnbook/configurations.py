"""Sizes of public language models, as their publishers state them, and what follows from them."""

from typing import NamedTuple

from attnbook import _checks, cost


class Configuration(NamedTuple):
    """Sizes of a decoder: `d_h` is the width of a key and of a value, `d_ff` that of the FFN.

    ``ffn_matrices`` is 3 where the feed-forward network is gated, 2 where it is not; ``tied`` says
    that input and output embeddings are one matrix.
    """

    name: str
    year: int
    source: str
    layers: int
    d: int
    H_q: int
    H_kv: int
    d_h: int
    d_ff: int
    ffn_matrices: int
    vocabulary: int
    tied: bool


_HUB = "https://huggingface.co/{}/blob/main/config.json"

MODELS = (
    Configuration(
        name="Llama 2 7B",
        year=2023,
        source=_HUB.format("meta-llama/Llama-2-7b-hf"),
        layers=32,
        d=4096,
        H_q=32,
        H_kv=32,
        d_h=128,
        d_ff=11008,
        ffn_matrices=3,
        vocabulary=32000,
        tied=False,
    ),
    Configuration(
        name="Llama 2 70B",
        year=2023,
        source=_HUB.format("meta-llama/Llama-2-70b-hf"),
        layers=80,
        d=8192,
        H_q=64,
        H_kv=8,
        d_h=128,
        d_ff=28672,
        ffn_matrices=3,
        vocabulary=32000,
        tied=False,
    ),
    Configuration(
        name="Falcon 7B",
        year=2023,
        source=_HUB.format("tiiuae/falcon-7b"),
        layers=32,
        d=4544,
        H_q=71,
        H_kv=1,
        d_h=64,
        d_ff=18176,
        ffn_matrices=2,
        vocabulary=65024,
        tied=True,  # though the published file stores the matrix twice
    ),
    Configuration(
        name="Mistral 7B",
        year=2023,
        source=_HUB.format("mistralai/Mistral-7B-v0.1"),
        layers=32,
        d=4096,
        H_q=32,
        H_kv=8,
        d_h=128,
        d_ff=14336,
        ffn_matrices=3,
        vocabulary=32000,
        tied=False,
    ),
    Configuration(
        name="Gemma 2B",
        year=2024,
        source=_HUB.format("google/gemma-2b"),
        layers=18,
        d=2048,
        H_q=8,
        H_kv=1,
        d_h=256,
        d_ff=16384,
        ffn_matrices=3,
        vocabulary=256000,
        tied=True,
    ),
    Configuration(
        name="Llama 3 8B",
        year=2024,
        source=_HUB.format("meta-llama/Meta-Llama-3-8B"),
        layers=32,
        d=4096,
        H_q=32,
        H_kv=8,
        d_h=128,
        d_ff=14336,
        ffn_matrices=3,
        vocabulary=128256,
        tied=False,
    ),
)


def weights(model: Configuration) -> int:
    """Return the numbers in the weight matrices of a model.

    Biases and the vectors of normalisation, fewer than one in 10,000, are left out::

        (1 or 2) vocabulary d + layers (d (H_q + 2 H_kv) d_h + H_q d_h d + ffn_matrices d d_ff)

    Parameters
    ----------
    model : Configuration

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        This is no configuration, or one of its sizes is no whole number.

    Examples
    --------
    >>> weights(MODELS[0])
    6738149376
    """
    _check(model)
    attention = sum(
        cost.parameters(d=model.d, H_q=model.H_q, H_kv=model.H_kv, d_k=model.d_h, d_v=model.d_h)
    )
    embeddings = (1 if model.tied else 2) * model.vocabulary * model.d
    return embeddings + model.layers * (attention + model.ffn_matrices * model.d * model.d_ff)


def cache_bytes_per_position(model: Configuration, bytes_per_number: int = 2) -> int:
    """Return the memory of the keys and values of one position, in all layers of a model.

    Parameters
    ----------
    model : Configuration
    bytes_per_number : int, optional
        float16 and bfloat16 take 2 bytes.

    Returns
    -------
    int
        Bytes: 2 layers H_kv d_h bytes_per_number.

    Raises
    ------
    TypeError, ValueError
        This is no configuration, or one of its sizes or bytes_per_number is no whole number.

    Examples
    --------
    >>> cache_bytes_per_position(MODELS[0]) == 2**19  # 512 KiB
    True
    """
    _check(model)
    return cost.cache_bytes(
        S=1,
        H_kv=model.H_kv,
        d_k=model.d_h,
        layers=model.layers,
        bytes_per_number=bytes_per_number,
    )


def _check(model: object) -> None:
    if not isinstance(model, Configuration):
        raise TypeError(
            f"model must be a Configuration, for example one of MODELS; got {model!r:.60}"
        )
    for name in ("layers", "d", "H_q", "H_kv", "d_h", "d_ff", "ffn_matrices", "vocabulary"):
        _checks.whole_number(name, getattr(model, name))
