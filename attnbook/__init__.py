"""The code of attnbook, an interactive textbook on the attention mechanism.

``import attnbook`` loads numpy alone. The exact mathematics (``attnbook.exact``, sympy), the
pictures (``attnbook.picture``, matplotlib for the still images) and the labs (``attnbook.labs``,
ipywidgets) load their package when they are imported.
"""

from attnbook import masks
from attnbook.attention import Attention, Gradients, attention, attention_backward
from attnbook.softmax import entropy, softmax, softmax_backward

__version__ = "0.1.0"

__all__ = [
    "Attention",
    "Gradients",
    "attention",
    "attention_backward",
    "entropy",
    "masks",
    "softmax",
    "softmax_backward",
]
