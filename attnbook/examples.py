"""The worked examples of the four sources, written down once, as exact numbers.

Everything else in the book imports from here and computes; nobody retypes a matrix. Matrices are
tuples of rows of integers and :class:`~fractions.Fraction`: exact, and nobody can change them.
What a source *gives* is data here; what follows from it is computed where it is needed. Three kinds
of entry are not a source's givens. Fields with ``printed`` in their name repeat what a source
printed, often wrongly: never use them as truth. The ``E_RECONSTRUCTION`` examples and ``W_K``,
``W_V``, ``W_Q_for_Q_printed`` of ``M_SENTENCE`` were found by this book, because the sources lost
them or never had them. ``HEAD_ALL_WIDTHS_DIFFER`` is the book's own.

``where`` says where an example stands: source, equation, lines of the source document.
Scores such as log 3 are not rational: they are stored as their exponentials, in ``exp_scores``.

Examples
--------
>>> R_HEAD.W_V
((1, 0), (0, 2))
>>> R_HEAD.where
'[R] (5.13), lines 162-182: three positions, all widths 2, causal'
"""

from fractions import Fraction
from typing import NamedTuple

Number = int | Fraction
Vector = tuple[Number, ...]
Matrix = tuple[Vector, ...]
Allowed = tuple[tuple[bool, ...], ...]

_HALF = Fraction(1, 2)


def _over(denominator: int, rows: tuple[tuple[int, ...], ...]) -> Matrix:
    """Divide a matrix of integers: printed decimals without a point in every entry."""
    return tuple(tuple(Fraction(entry, denominator) for entry in row) for row in rows)


def _allowed(query_positions: tuple[int, ...], key_positions: tuple[int, ...]) -> Allowed:
    """Write out the causal rule of R (5.12): a query reads the keys at or before its position."""
    return tuple(tuple(j <= i for j in key_positions) for i in query_positions)


# ---------------------------------------------- what an example consists of


class SelfAttentionHead(NamedTuple):
    """One head that reads the sequence it is asked from: inputs, projections, who may read whom.

    ``X`` is n x d, ``W_Q`` and ``W_K`` are d x d_k, ``W_V`` is d x d_v; ``allowed`` is n x n
    (True = may read).
    """

    where: str
    X: Matrix
    W_Q: Matrix
    W_K: Matrix
    W_V: Matrix
    allowed: Allowed


class CrossAttentionHead(NamedTuple):
    """One head with two inputs: ``X_q`` gives the queries, ``X_m`` the keys and values.

    ``X_q`` is T x d_q, ``X_m`` is S x d_m, the projections are d_q x d_k, d_m x d_k and d_m x d_v.
    ``allowed`` (T x S, True = may read) is the causal rule on the absolute positions beside it.
    """

    where: str
    X_q: Matrix
    X_m: Matrix
    W_Q: Matrix
    W_K: Matrix
    W_V: Matrix
    query_positions: tuple[int, ...]
    key_positions: tuple[int, ...]
    allowed: Allowed


class WeightedRead(NamedTuple):
    """Exponentials of the scaled scores, T x S, and the values to read, S x d_v."""

    where: str
    exp_scores: Matrix
    V: Matrix


class LocalGradient(NamedTuple):
    """An upstream gradient ``dO`` (T x d_v) for the head ``of``; ``row`` counts from 0."""

    where: str
    of: SelfAttentionHead
    row: int
    dO: Matrix


class Shapes(NamedTuple):
    """Lengths and widths only."""

    where: str
    T: int
    S: int
    d_k: int
    d_v: int


class ComponentVariances(NamedTuple):
    """Variances of the independent, zero-mean components of queries and keys."""

    where: str
    query: int
    key: int


class Positions(NamedTuple):
    """Absolute positions, counted from 0, of the queries and keys at hand."""

    where: str
    query_positions: tuple[int, ...]
    key_positions: tuple[int, ...]


class WeightMemory(NamedTuple):
    """Sizes that decide how many bytes a stored weight matrix takes."""

    where: str
    B: int
    H: int
    T: int
    S: int
    bytes_per_number: int


class SharedCache(NamedTuple):
    """Sizes of a key-value cache; a size that the source leaves open is None."""

    where: str
    H_q: int
    H_kv: int
    d_h: int | None
    S: int | None
    bytes_per_number: int | None


class ScalarHeads(NamedTuple):
    """Scalar queries, one per head, that read the same scalar keys and values."""

    where: str
    queries: Vector
    keys: Vector
    values: Vector


class ScoreGaps(NamedTuple):
    """The same row of scores before and after it grows by sqrt(d_k)."""

    where: str
    d_k: int
    near: Vector
    far: Vector
    many_keys: int
    few_keys: int


class PrintedWeights(NamedTuple):
    """The weights of an example whose inputs are lost, as printed (three decimals)."""

    where: str
    A_printed: Matrix


class TwoHeads(NamedTuple):
    """Two heads over the input of ``of``, each with its projections, and the output projection."""

    where: str
    of: SelfAttentionHead
    W_Q: tuple[Matrix, Matrix]
    W_K: tuple[Matrix, Matrix]
    W_V: tuple[Matrix, Matrix]
    W_O: Matrix


class ColumnAlgebra(NamedTuple):
    """Small numbers of the chapter on matrix products.

    ``factor`` scales ``scaled``; ``e_1 + e_2`` is the sum; ``direction`` is one feature's direction
    in six dimensions. ``A`` (2 x 3) and ``B`` (3 x 2) have the sizes of the source, which has
    letters only: their numbers are the book's, as are ``turn`` and ``stretch``, two maps that do
    not commute.
    """

    where: str
    factor: int
    scaled: Vector
    e_1: Vector
    e_2: Vector
    direction: Vector
    A: Matrix
    B: Matrix
    turn: Matrix
    stretch: Matrix


class Sentence(NamedTuple):
    """The running example "I love GPU programming": four tokens, six features.

    Truth: ``X``, ``W_Q`` (given by the source); ``W_K``, ``W_V`` (found by the book, they give the
    source's ``K`` and ``V`` exactly); ``A``, ``A_1``, ``A_2`` and the love rows (weights that the
    source sets by hand). ``W_Q_for_Q_printed`` gives ``Q_printed`` exactly, for comparison only.

    As printed, mostly wrong: ``Q_printed`` and its copy in the section on heads,
    ``Q_printed_heads``, whose first entry differs; ``scores_printed``, ``scaled_printed``; for row
    love ``exp_printed``, ``exp_sum_printed``, ``softmax_printed``; ``out_love_printed`` and
    ``output_printed``.
    """

    where: str
    tokens: tuple[str, ...]
    X: Matrix
    W_Q: Matrix
    W_K: Matrix
    W_V: Matrix
    K: Matrix
    V: Matrix
    A: Matrix
    A_1: Matrix
    A_2: Matrix
    A_love_one_head: Vector
    A_love_object_head: Vector
    A_love_subject_head: Vector
    H: int
    W_Q_for_Q_printed: Matrix
    Q_printed: Matrix
    Q_printed_heads: Matrix
    scores_printed: Matrix
    love_prog_score_printed: Number
    scaled_printed: Matrix
    exp_printed: Vector
    exp_sum_printed: Number
    softmax_printed: Vector
    out_love_printed: Vector
    output_printed: Matrix


# ---------------------------------------------- source D

D_TWO_SCORES = WeightedRead(
    where="[D] section 5, lines 33-34: scaled scores log 3 and 0",
    exp_scores=((3, 1),),
    V=((2, 0), (0, 4)),
)

# ---------------------------------------------- source R

R_HEAD = SelfAttentionHead(
    where="[R] (5.13), lines 162-182: three positions, all widths 2, causal",
    X=((1, 0), (0, 1), (1, 1)),
    W_Q=((1, 0), (0, 1)),
    W_K=((1, 0), (0, 1)),
    W_V=((1, 0), (0, 2)),
    allowed=_allowed((0, 1, 2), (0, 1, 2)),
)

R_LOCAL_GRADIENT = LocalGradient(
    where="[R] (5.32)-(5.33), lines 294-300: the loss is entry (2, 1) of the output",
    of=R_HEAD,
    row=1,
    dO=((0, 0), (1, 0), (0, 0)),
)

R_CROSS = WeightedRead(
    where="[R] (5.23), lines 240-242: scaled scores (0, 0), (log 3, 0), (0, log 3)",
    exp_scores=((1, 1), (3, 1), (1, 3)),
    V=((2, 0), (0, 4)),
)

R_OFFSET = Positions(
    where="[R] section 5.3, line 156: one query at position 3, four keys",
    query_positions=(3,),
    key_positions=(0, 1, 2, 3),
)

R_WEIGHT_MEMORY = WeightMemory(
    where="[R] (5.35), lines 314-316", B=2, H=16, T=4096, S=4096, bytes_per_number=2
)

R_SHARING = SharedCache(
    where="[R] section 5.8, line 337: MHA, GQA and MQA compared",
    H_q=32,
    H_kv=8,
    d_h=None,
    S=None,
    bytes_per_number=None,
)

R_EXERCISE_5_1 = Shapes(where="[R] exercise 5.1, lines 409-413", T=5, S=7, d_k=8, d_v=3)

R_EXERCISE_5_2 = ComponentVariances(where="[R] exercise 5.2, lines 417-421", query=4, key=4)

# Exercise 5.3 keeps Q and K and sets the third value vector to zero.
R_EXERCISE_5_3 = R_HEAD._replace(
    where="[R] exercise 5.3, lines 425-429: the head of (5.13) without its mask",
    allowed=((True,) * 3,) * 3,
)

R_EXERCISE_5_6 = Positions(
    where="[R] exercise 5.6, lines 449-453: one query at position 8, nine keys",
    query_positions=(8,),
    key_positions=(0, 1, 2, 3, 4, 5, 6, 7, 8),
)

R_EXERCISE_5_7 = SharedCache(
    where="[R] exercise 5.7, lines 457-461", H_q=24, H_kv=6, d_h=64, S=2048, bytes_per_number=2
)

R_EXERCISE_5_8 = ScalarHeads(
    where="[R] exercise 5.8, line 469", queries=(0, 1), keys=(0, 1), values=(0, 1)
)

R_EXERCISE_5_11 = R_SHARING._replace(where="[R] exercise 5.11, lines 489-493")

# ---------------------------------------------- the book's own twin of R (5.13)

# The example of [R] cannot see a swapped projection, a missing transpose or the root of a wrong
# width: its widths are all 2 and W_Q = W_K. Here T, S, d_q, d_m, d_k, d_v = 4, 6, 7, 5, 3, 2 all
# differ, and none is the square of d_k (or "divided by d_k" would look like the root of that size).
# The scores are small: every row of the output shows a wrong scale. The values lie in the plane.
HEAD_ALL_WIDTHS_DIFFER = CrossAttentionHead(
    where="the book's own: four queries at the end of six positions, causal",
    X_q=(
        (0, 1, 1, _HALF, 1, -1, 0),
        (0, 0, 0, 2, 0, _HALF, 0),
        (1, 0, -1, 2, -1, 1, -1),
        (0, 2, 0, 2, -1, -1, -1),
    ),
    X_m=(
        (0, _HALF, 0, 0, _HALF),
        (1, -1, 1, 2, 0),
        (_HALF, 0, _HALF, _HALF, -1),
        (1, _HALF, _HALF, _HALF, -1),
        (-1, 2, -1, -1, -1),
        (0, -1, _HALF, 1, 0),
    ),
    W_Q=(
        (-1, 0, 0),
        (1, 0, 0),
        (0, -1, _HALF),
        (_HALF, 0, 1),
        (2, 1, -1),
        (0, -1, -1),
        (1, 1, _HALF),
    ),
    W_K=((_HALF, 0, 0), (0, 0, _HALF), (0, 1, 1), (-1, 0, 0), (-1, 1, 0)),
    W_V=((-1, -1), (2, 0), (-1, 1), (2, 1), (1, 2)),
    query_positions=(2, 3, 4, 5),
    key_positions=(0, 1, 2, 3, 4, 5),
    allowed=_allowed((2, 3, 4, 5), (0, 1, 2, 3, 4, 5)),
)

# ---------------------------------------------- source E

E_TWO_POSITIONS = PrintedWeights(
    where="[E] section 1.1, line 39: all that is left of the example of sections 3 and 4",
    A_printed=_over(1000, ((76, 924), (18, 982))),
)

E_GAPS = ScoreGaps(
    where="[E] section 2, lines 53-79",
    d_k=64,
    near=(0, 1, 2),
    far=(0, 8, 16),
    many_keys=128,
    few_keys=10,
)

E_RECONSTRUCTION_1 = SelfAttentionHead(
    where="reconstruction of the lost example of [E] sections 3.1-3.4 (widths d = d_k = d_v = 4)",
    X=((1, 0, 1, 0), (0, 1, 1, 1)),
    W_Q=((1, 0, 1, 1), (0, 1, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1)),
    W_K=((1, 0, 0, 0), (0, 1, 1, 1), (0, 0, 0, 1), (0, 0, 0, 1)),
    W_V=((1, 0, 1, 0), (0, 1, 0, 1), (0, 0, 1, 0), (0, 0, 0, 1)),
    allowed=((True, True), (True, True)),
)

E_RECONSTRUCTION_2 = SelfAttentionHead(
    where="second reconstruction, drawable in the plane (d = d_v = 2, d_k = 4)",
    X=((1, 0), (1, 1)),
    W_Q=((1, 1, 1, 1), (1, 0, 1, 0)),
    W_K=((1, 1, 0, 0), (2, 1, 1, 1)),
    W_V=((1, 0), (1, 2)),
    allowed=((True, True), (True, True)),
)

# The heads are the left and the right half of the columns of reconstruction 1, so d_k = d_v = 2.
E_RECONSTRUCTION_HEADS = TwoHeads(
    where="reconstruction of the lost example of [E] sections 4.1-4.3, on reconstruction 1",
    of=E_RECONSTRUCTION_1,
    W_Q=(
        tuple(row[:2] for row in E_RECONSTRUCTION_1.W_Q),
        tuple(row[2:] for row in E_RECONSTRUCTION_1.W_Q),
    ),
    W_K=(
        tuple(row[:2] for row in E_RECONSTRUCTION_1.W_K),
        tuple(row[2:] for row in E_RECONSTRUCTION_1.W_K),
    ),
    W_V=(
        tuple(row[:2] for row in E_RECONSTRUCTION_1.W_V),
        tuple(row[2:] for row in E_RECONSTRUCTION_1.W_V),
    ),
    W_O=((1, 0, -1, 0), (0, 1, 0, -1), (1, 0, 1, 0), (0, 1, 0, 1)),
)

# ---------------------------------------------- source M

M_ALGEBRA = ColumnAlgebra(
    where="[M] lines 45 and 51 (columns), 147 (order of maps), 277 (sizes), 396 (a direction)",
    factor=3,
    scaled=(1, 2),
    e_1=(1, 0),
    e_2=(0, 1),
    direction=_over(10, ((3, 5, 1, 6, 2, 4),))[0],
    A=((2, -1, 3), (0, 1, 4)),
    B=((1, 2), (5, 0), (-2, 1)),
    turn=((0, -1), (1, 0)),
    stretch=((2, 0), (0, 1)),
)

_Q_PRINTED = (
    (38, 42, 28, 47, 29, 44),
    (32, 43, 50, 45, 39, 34),
    (47, 34, 33, 38, 32, 49),
    (51, 46, 43, 40, 34, 51),
)

M_SENTENCE = Sentence(
    where="[M] lines 417-1132: X 423, W_Q 433, Q 445 and 966, K 449, V 453, A 782, heads 1010-1132",
    tokens=("I", "love", "GPU", "programming"),
    X=_over(10, ((10, 2, 3, 5, 1, 4), (4, 9, 1, 2, 3, 5), (3, 1, 8, 6, 2, 1), (2, 5, 7, 9, 4, 3))),
    W_Q=_over(
        10,
        (
            (1, 2, 0, 3, 1, 2),
            (0, 1, 4, 2, 3, 0),
            (3, 0, 1, 1, 2, 3),
            (2, 3, 2, 0, 1, 2),
            (1, 2, 3, 1, 0, 2),
            (2, 1, 0, 3, 2, 1),
        ),
    ),
    W_K=_over(
        100,
        (
            (18, 13, 21, 43, 5, 24),
            (2, 30, 12, 20, 32, 8),
            (6, 30, 36, 30, 36, 34),
            (30, -13, 7, -13, -7, 8),
            (18, 33, 31, 3, -15, 34),
            (20, -7, -27, 13, 17, -8),
        ),
    ),
    W_V=_over(
        100,
        (
            (34, 19, 24, 6, 23, 11),
            (27, 20, 22, 5, 25, 36),
            (26, 60, 26, 30, 60, 38),
            (-6, -9, -16, 14, -13, -17),
            (4, 19, 14, 16, -7, 11),
            (1, -21, 26, 11, -2, 7),
        ),
    ),
    K=_over(
        100,
        (
            (45, 22, 30, 55, 24, 40),
            (31, 39, 20, 43, 37, 28),
            (34, 29, 44, 33, 28, 46),
            (49, 38, 46, 33, 35, 51),
        ),
    ),
    V=_over(
        100,
        (
            (45, 30, 40, 29, 38, 25),
            (41, 25, 46, 23, 32, 44),
            (31, 52, 26, 39, 48, 30),
            (35, 49, 33, 47, 44, 38),
        ),
    ),
    A=_over(100, ((60, 15, 10, 15), (25, 15, 10, 50), (10, 10, 30, 50), (10, 20, 55, 15))),
    A_1=_over(10, ((5, 2, 1, 2), (2, 1, 1, 6), (1, 1, 3, 5), (1, 2, 5, 2))),
    A_2=_over(10, ((3, 3, 2, 2), (5, 2, 1, 2), (3, 2, 3, 2), (4, 2, 2, 2))),
    A_love_one_head=_over(10, ((3, 1, 1, 5),))[0],
    A_love_object_head=_over(10, ((1, 1, 1, 7),))[0],
    A_love_subject_head=_over(10, ((6, 1, 1, 2),))[0],
    H=2,
    W_Q_for_Q_printed=_over(
        100,
        (
            (9, 28, 17, 34, 23, 20),
            (10, 26, 51, 30, 30, 15),
            (50, 18, 38, 40, 40, 50),
            (1, 6, -13, -14, -23, 0),
            (-1, 28, 7, 4, 23, 0),
            (29, -6, -12, 4, -7, 15),
        ),
    ),
    Q_printed=_over(100, _Q_PRINTED),
    Q_printed_heads=_over(100, ((39, *_Q_PRINTED[0][1:]), *_Q_PRINTED[1:])),
    scores_printed=_over(
        100, ((85, 68, 72, 88), (78, 72, 75, 90), (82, 70, 76, 91), (93, 75, 82, 102))
    ),
    love_prog_score_printed=Fraction(90, 100),
    scaled_printed=_over(
        1000,
        ((347, 278, 294, 359), (318, 294, 306, 367), (335, 286, 310, 372), (380, 306, 335, 417)),
    ),
    exp_printed=_over(1000, ((1374, 1342, 1358, 1443),))[0],
    exp_sum_printed=Fraction(5517, 1000),
    softmax_printed=_over(1000, ((249, 243, 246, 262),))[0],
    out_love_printed=_over(1000, ((380, 410, 360, 381, 411, 349),))[0],
    output_printed=_over(
        100,
        (
            (42, 32, 40, 30, 38, 29),
            (38, 41, 36, 38, 41, 35),
            (36, 43, 34, 40, 42, 35),
            (35, 44, 32, 38, 44, 32),
        ),
    ),
)
