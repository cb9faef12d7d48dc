"""Record the curves and patterns that the labs of chapter 13 show.

    python figures/record_learning.py

Takes a minute or two. The chapter reruns a short version; tests hold its first steps to the record.
At large widths without the division last digits decide how a run goes on: another processor may
record other curves there, as high as these.
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from attnbook.labs.learning_to_attend import RATES, RECORDED, WIDTHS
from attnbook.softmax import entropy
from attnbook.training import (
    Model,
    after_the_same,
    cross_entropy,
    logits_of,
    previous,
    train,
    unpack,
    weight_on,
)
from attnbook.training.tasks import recall, repetitions

CURVE_STEPS, EVERY, SEEDS = 200, 5, (0, 1, 2)


def tell(text):
    print(text, file=sys.stderr, flush=True)


def curves():
    """Train the recall model at every width, rate and scale; keep loss and entropy as they go."""
    tokens, _ = recall(np.random.default_rng(1000), 256)
    kept = CURVE_STEPS // EVERY
    loss = np.zeros((len(WIDTHS), len(RATES), 2, len(SEEDS), kept))
    spread = np.zeros_like(loss)
    for i, d_k in enumerate(WIDTHS):
        for j, rate in enumerate(RATES):
            for divide in (0, 1):
                scale = None if divide else 1.0
                model = Model(20, 4, d=16, d_k=d_k, causal=False, scale=scale)
                for seed in SEEDS:
                    place = i, j, divide, seed

                    def watch(step, theta, _, model=model, place=place):
                        if step % EVERY == 0:
                            A = logits_of(model, unpack(model, theta), tokens).heads[0].A
                            share = entropy(A[:, 0, -1]).mean() / np.log(A.shape[-1])
                            spread[place][step // EVERY] = share

                    run = train(model, recall, steps=CURVE_STEPS, rate=rate, seed=seed, watch=watch)
                    loss[place] = run.losses.reshape(kept, EVERY).mean(axis=1)
            tell(f"width {d_k}, rate {rate}: done")
    return loss, spread


PATTERN_STEPS, PATTERN_EVERY, PATTERN_SEEDS = 200, 5, (0, 1, 2, 3, 4)
INDUCTION = Model(16, 16, d=32, d_k=16, layers=2, positions=20)


def patterns():
    """Train the two-layer model on repetitions; keep loss, two scores, the weights of one run."""
    tokens, targets = repetitions(np.random.default_rng(1000), 64)
    shown = tokens[:1]
    kept = PATTERN_STEPS // PATTERN_EVERY + 1
    told = np.zeros((3, len(PATTERN_SEEDS), kept))
    A = np.zeros((kept, 2, 20, 20))
    copied = after_the_same(tokens)
    passed_on = previous(20) & copied.any(axis=-2)[:, :, None]
    for seed in PATTERN_SEEDS:

        def watch(step, theta, _, seed=seed):
            if step % PATTERN_EVERY:
                return
            n, weights = step // PATTERN_EVERY, unpack(INDUCTION, theta)
            forward = logits_of(INDUCTION, weights, tokens)
            first, second = (heads.A[:, 0] for heads in forward.heads)
            told[:, seed, n] = (
                cross_entropy(forward.logits, targets),
                weight_on(first, passed_on),
                weight_on(second, copied),
            )
            if seed == 0:
                A[n] = [h.A[0, 0] for h in logits_of(INDUCTION, weights, shown).heads]

        train(INDUCTION, repetitions, steps=PATTERN_STEPS + 1, rate=0.01, seed=seed, watch=watch)
        tell(f"repetitions, seed {seed}: done")
    return shown[0], told, A


def save(**arrays):
    """Write arrays as `numpy.savez_compressed` does, but with bytes that depend on them alone."""
    with zipfile.ZipFile(RECORDED, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, array)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)


def thousandths(x):
    return np.round(1000 * x).astype(np.uint16)


def main():
    Path(RECORDED).parent.mkdir(exist_ok=True)
    tokens, told, A = patterns()
    loss, spread = curves()
    save(
        curve_loss=thousandths(loss),
        curve_entropy=thousandths(spread),
        tokens=tokens.astype(np.uint8),
        loss=thousandths(told[0]),
        previous=thousandths(told[1]),
        induction=thousandths(told[2]),
        A=thousandths(A),
    )


if __name__ == "__main__":
    main()
