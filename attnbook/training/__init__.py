"""Training in numpy: a small attention-only model, its gradients, Adam, and tasks to learn.

Nothing here is needed to understand attention; chapter 13 uses it to test what is said about
training.
"""

from attnbook.training import tasks
from attnbook.training.adam import Moments, adam_step, no_moments
from attnbook.training.loss import accuracy, cross_entropy, cross_entropy_backward
from attnbook.training.model import Forward, logits_backward, logits_of
from attnbook.training.patterns import after_the_same, previous, weight_on
from attnbook.training.run import Run, generate, span, train
from attnbook.training.step import by_target, gradient
from attnbook.training.weights import Layer, Model, Weights, initial, pack, unpack

__all__ = [
    "Forward",
    "Layer",
    "Model",
    "Moments",
    "Run",
    "Weights",
    "accuracy",
    "adam_step",
    "after_the_same",
    "by_target",
    "cross_entropy",
    "cross_entropy_backward",
    "generate",
    "gradient",
    "initial",
    "logits_backward",
    "logits_of",
    "no_moments",
    "pack",
    "previous",
    "span",
    "tasks",
    "train",
    "unpack",
    "weight_on",
]
