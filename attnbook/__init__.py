"""The code of attnbook, an interactive textbook on the attention mechanism.

``import attnbook`` loads numpy alone. The exact mathematics (``attnbook.exact``, sympy), the
pictures (``attnbook.picture``, matplotlib for the still images) and the labs (``attnbook.labs``,
ipywidgets) load their package when they are imported.
"""

from attnbook import cost, masks
from attnbook.attention import Attention, Gradients, attention, attention_backward
from attnbook.cache import KVCache
from attnbook.heads import (
    MultiHead,
    MultiHeadGradients,
    grouped_attention,
    grouped_attention_backward,
    merge_heads,
    multi_head_attention,
    multi_head_attention_backward,
    pack_projections,
    split_heads,
    unpack_projections,
)
from attnbook.softmax import entropy, softmax, softmax_backward
from attnbook.tiled import Tiled, TiledGradients, tiled_attention, tiled_attention_backward

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Gradients",
    "KVCache",
    "MultiHead",
    "MultiHeadGradients",
    "Tiled",
    "TiledGradients",
    "attention",
    "attention_backward",
    "cost",
    "entropy",
    "grouped_attention",
    "grouped_attention_backward",
    "masks",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_backward",
    "pack_projections",
    "progress",
    "softmax",
    "softmax_backward",
    "split_heads",
    "tiled_attention",
    "tiled_attention_backward",
    "unpack_projections",
]


def progress():
    """Return how the reader stands with the exercises of the book: `attnbook.exercises.progress`.

    Examples
    --------
    >>> progress().standings["4.2"].state.name
    'OPEN'
    """
    from attnbook.exercises.progress import progress

    return progress()
