"""What the labs of chapter 13 show is what was recorded, and that is what training gives."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from attnbook import style
from attnbook.labs import learning_to_attend as labs
from attnbook.labs.learning_to_attend import (
    RATES,
    STEPS,
    WIDTHS,
    compute_curves,
    compute_head,
    progress_bar,
    recorded,
)
from attnbook.picture import Polyline, Rect
from attnbook.training import Model, initial, logits_of, tasks, train, unpack

ROOT = Path(__file__).parents[1]
RECORD = runpy.run_path(str(ROOT / "figures" / "record_learning.py"))
CLOSE = {"atol": 0.00051}  # recorded in thousandths


def test_what_is_recorded():
    kept = recorded()
    assert {name: x.shape for name, x in kept.items()} == {
        "curve_loss": (5, 3, 2, 3, 40),
        "curve_entropy": (5, 3, 2, 3, 40),
        "tokens": (20,),
        "loss": (5, 41),
        "previous": (5, 41),
        "induction": (5, 41),
        "A": (41, 2, 20, 20),
    }
    np.testing.assert_allclose(kept["A"].sum(axis=-1), 1, atol=0.011)
    assert (kept["A"] * (1 - np.tri(20)) == 0).all()
    assert (kept["curve_entropy"] <= 1).all()
    assert labs.RECORDED.stat().st_size < 50_000


@pytest.mark.parametrize(("d_k", "rate", "divide", "seed"), [(16, 0.003, 1, 0), (64, 0.01, 0, 2)])
def test_a_recorded_curve_begins_as_a_run_does(d_k, rate, divide, seed):
    model = Model(20, 4, d=16, d_k=d_k, causal=False, scale=None if divide else 1.0)
    tokens, _ = tasks.recall(np.random.default_rng(1000), 256)
    run = train(model, tasks.recall, steps=20, rate=rate, seed=seed)
    kept = compute_curves(d_k, rate)
    np.testing.assert_allclose(
        kept.loss[divide, seed, :4], run.losses.reshape(4, 5).mean(axis=1), **CLOSE
    )
    start = unpack(model, initial(model, np.random.default_rng(seed)))
    a = logits_of(model, start, tokens).heads[0].A[:, 0, -1]
    share = -(a * np.log(np.maximum(a, 1e-300))).sum(axis=-1).mean() / np.log(5)
    assert kept.entropy[divide, seed, 0] == pytest.approx(share, abs=0.00051)


def test_the_recorded_head_begins_as_a_run_does():
    model = RECORD["INDUCTION"]
    tokens, targets = tasks.repetitions(np.random.default_rng(1000), 64)
    steps = 25
    theta = train(model, tasks.repetitions, steps=steps, rate=0.01, seed=0).theta
    forward = logits_of(model, unpack(model, theta), tokens)
    first, second = (heads.A[:, 0] for heads in forward.heads)
    n = STEPS.index(steps)
    assert compute_head(steps, 1).tokens.tolist() == tokens[0].tolist()
    np.testing.assert_allclose(compute_head(steps, 1).A, first[0], **CLOSE)
    np.testing.assert_allclose(compute_head(steps, 2).A, second[0], **CLOSE)

    before, copies, losses = [], [], []
    for b, x in enumerate(tokens.tolist()):
        for i in range(20):
            read = [j for j in range(1, i + 1) if x[j - 1] == x[i]]
            if read:
                copies.append(sum(second[b, i, j] for j in read))
            if i and any(x[i - 1] == x[k] for k in range(i, 20)):
                before.append(first[b, i, i - 1])
            if targets[b, i] >= 0:
                u = forward.logits[b, i]
                losses.append(np.log(np.exp(u).sum()) - u[targets[b, i]])
    kept = recorded()
    assert kept["previous"][0, n] == pytest.approx(np.mean(before), abs=0.00051)
    assert kept["induction"][0, n] == pytest.approx(np.mean(copies), abs=0.00051)
    assert kept["loss"][0, n] == pytest.approx(np.mean(losses), abs=0.00051)


def test_the_record_is_written_with_the_same_bytes_again(tmp_path):
    save = RECORD["save"]
    save.__globals__["RECORDED"] = tmp_path / "a.npz"
    arrays = {"x": np.arange(5, dtype=np.uint16), "y": np.eye(3)}
    save(**arrays)
    first = (tmp_path / "a.npz").read_bytes()
    save(**arrays)
    assert (tmp_path / "a.npz").read_bytes() == first
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(file["y"], np.eye(3))


def test_framed_keys_of_both_layers():
    x = recorded()["tokens"].tolist()
    for layer in (1, 2):
        framed = compute_head(100, layer).framed
        for i in range(20):
            for j in range(20):
                copied = 1 <= j <= i and x[j - 1] == x[i]
                passed_on = j == i - 1 and any(x[j] == x[k] for k in range(i, 20))
                assert framed[i, j] == (passed_on, copied)[layer - 1]


@pytest.mark.parametrize(("step", "layer"), [(0, 1), (75, 2), (200, 2)])
def test_a_cell_is_drawn_for_each_weight_and_a_frame_for_each_framed_key(step, layer):
    lab = labs.emerging_head(step=step, layer=layer)
    cells = [
        x for x in lab.picture.items if isinstance(x, Rect) and x.width == x.height == labs.CELL
    ]
    assert len(cells) == 20 * 21 // 2
    frames = [x for x in lab.picture.items if isinstance(x, Rect) and x.stroke == style.KEY]
    assert {frame.width for frame in frames} == {labs.CELL - 3}
    assert len(frames) == compute_head(step, layer).framed.sum()
    darkest = min(cells, key=lambda cell: int(cell.fill[1:3], 16) + int(cell.fill[3:5], 16))
    A = compute_head(step, layer).A
    i, j = (round((v - o) / labs.CELL) for v, o in ((darkest.y, labs.TOP), (darkest.x, labs.LEFT)))
    assert A[i, j] == A.max()


@pytest.mark.parametrize(("d_k", "rate"), [(4, 0.001), (256, 0.003), (1024, 0.01)])
def test_curves_are_drawn_where_the_losses_lie(d_k, rate):
    lab, arrays = labs.learning_curves(d_k=d_k, rate=rate), compute_curves(d_k, rate)
    curves = [x for x in lab.picture.items if isinstance(x, Polyline)]
    assert len(curves) == 12
    loss, entropy = curves[0::2], curves[1::2]
    n = 0
    for divide in (0, 1):
        for seed in range(3):
            y = [300 - 250 * min(v, 2.5) / 2.5 for v in arrays.loss[divide, seed]]
            np.testing.assert_allclose([p[1] for p in loss[n].points], y, atol=1e-9)
            y = [300 - 250 * v / 1.02 for v in arrays.entropy[divide, seed]]
            np.testing.assert_allclose([p[1] for p in entropy[n].points], y, atol=1e-9)
            n += 1
    assert ("cut" in lab.caption_text) == (arrays.loss.max() > 2.5)


def test_every_recorded_state_can_be_chosen():
    assert len(WIDTHS) * len(RATES) == 15
    assert STEPS[-1] == RECORD["PATTERN_STEPS"]
    assert np.diff(STEPS).tolist() == [RECORD["PATTERN_EVERY"]] * 40


# ---- what chapter 13 says should have been seen ------------------------------------------------


def test_what_is_said_about_the_curves():
    for d_k in (256, 1024):
        for rate in RATES:
            undivided, divided = compute_curves(d_k, rate).loss[:, :, -1]
            assert undivided.min() > divided.max()
    for rate in RATES:
        undivided, divided = compute_curves(4, rate).loss[:, :, -1]
        assert undivided.min() < divided.max()
        assert divided.min() < undivided.max()
    undivided, divided = compute_curves(4, 0.001).loss[:, :, -1]
    assert undivided.mean() < divided.mean()


def test_what_is_said_about_the_head():
    kept = recorded()
    early, late, end = (STEPS.index(step) for step in (65, 90, 200))
    told = {"loss": (2.30, 0.72), "previous": (0.31, 0.58), "induction": (0.27, 0.82)}
    for name, values in told.items():
        assert kept[name][0, [early, late]] == pytest.approx(values, abs=0.005)
    assert kept["loss"][0, STEPS.index(10)] < kept["loss"][0, 0] - 1
    assert (kept["loss"][:, end] < 0.1).all()
    assert (kept["loss"][:, late] > 2).sum() == 3
    third = compute_head(200, 2)
    first_copy = [j for j in range(20) if third.framed[:, j].sum() == 2]
    assert third.A[14:, first_copy].sum() > 0.5 * third.A[14:].sum()


# ---- the progress bar --------------------------------------------------------------------------


def test_the_bar_fills_with_the_steps(capsys):
    step = progress_bar(40)
    assert "progress bar" in capsys.readouterr().out
    bar = step.__closure__[[c for c in step.__code__.co_freevars].index("bar")].cell_contents
    for n in range(1, 41):
        step("whatever", n, 0.5)
        assert bar.value == 100 * n // 40
    assert bar.description == "100 %"
    assert capsys.readouterr().out == ""
