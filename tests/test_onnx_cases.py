"""attnbook against the conformance cases of the ONNX operator Attention, through one adapter.

58 stored cases, and every case that the installed package onnx generates.
"""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from onnx.backend.test.case import node as node_cases
from onnx.helper import get_attribute_value
from onnx_adapter import onnx_attention

FOLDER = Path(__file__).parent / "data" / "onnx_attention"
STORED = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))["cases"]
importlib.import_module("onnx.backend.test.case.node.attention")  # fills the list of node_cases
# "_expanded": the same numbers for the operator written out in other operators.
GENERATED = [
    case
    for case in node_cases._NodeTestCases
    if case.name.startswith("test_attention_") and not case.name.endswith("_expanded")
]


def check(slots, attributes, inputs, outputs, rtol, atol):
    """Run a case and compare every output that it asks for."""
    result = onnx_attention(*(inputs[name] if name else None for name in slots), **attributes)
    assert "Y" in outputs
    for name, expected in outputs.items():
        got = getattr(result, name)
        assert got.shape == expected.shape, name
        assert got.dtype == expected.dtype, name
        if got.dtype.name == "bfloat16":  # the tolerance of the suite's own runner
            rtol = 2**-6
        kind = np.promote_types(got.dtype, np.float32)
        np.testing.assert_allclose(
            got.astype(kind), expected.astype(kind), rtol=rtol, atol=atol, err_msg=name
        )


def test_all_stored_cases_are_here():
    assert len(STORED) == 58
    assert {case["name"] for case in STORED} == {file.stem for file in FOLDER.glob("*.npz")}
    assert {case["op"] for case in STORED} == {"Attention"}


@pytest.mark.parametrize("case", STORED, ids=lambda case: case["name"])
def test_stored(case):
    with np.load(FOLDER / f"{case['name']}.npz") as arrays:
        inputs, outputs = (
            {x["name"]: arrays[x["key"]].astype(x["dtype"]) for x in case[side]}
            for side in ("inputs", "outputs")
        )
    assert list(outputs) == list(filter(None, case["node_output_slots"]))
    check(case["node_input_slots"], case["attributes"], inputs, outputs, case["rtol"], case["atol"])


def test_the_package_generates_at_least_the_stored_cases():
    assert {case["name"] for case in STORED} <= {case.name for case in GENERATED}


@pytest.mark.parametrize("case", GENERATED, ids=lambda case: case.name)
def test_generated(case):
    (node,) = case.model.graph.node
    assert node.op_type == "Attention"
    ((inputs, outputs),) = case.data_sets
    inputs = dict(zip(filter(None, node.input), inputs, strict=True))
    outputs = dict(zip(filter(None, node.output), outputs, strict=True))
    attributes = {a.name: get_attribute_value(a) for a in node.attribute}
    check(node.input, attributes, inputs, outputs, case.rtol, case.atol)
