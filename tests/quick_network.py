"""A network in an ONNX file that answers at once, for tests of what is around a network.

Its fields are those of a level camera, bent by the colours of the picture: a fit settles, and no
two pictures get the same answer. The answers mean nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geocalib.nets.onnx_names import FIELDS, IMAGE, MULTIPLE_KEY
from geocalib.nets.weights.card import CARD_KEY, WeightCard

STRIDE = 4
PER_ROW = 0.015
"""By which the latitude falls from a row of cells to the next, in radians."""
BENT = 0.1
"""What a colour adds to a field, at one sigma."""

CARD = WeightCard(
    name="quick",
    architecture="lean",
    short_side=256,
    confidence_scale=1e-4,
    trained=True,
    licence="",
    source="",
    description="",
)


def write_quick_network(path: Path) -> Path:
    """One colour per cell, and a linear function of it per field."""
    from onnx import TensorProto, helper, numpy_helper, save

    random = np.random.default_rng(0)
    numbers: list[Any] = []
    nodes: list[Any] = []

    def number(name: str, value: Any) -> str:
        numbers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, inputs: list[str], output: str, **settings: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **settings))
        return output

    def mixed(name: str, offset: list[float]) -> str:
        mix = random.normal(0, BENT, (len(offset), 3, 1, 1)).astype(np.float32)
        offsets = number(f"{name}.offset", np.array(offset, np.float32))
        return node("Conv", [colour, number(f"{name}.mix", mix), offsets], f"{name}.mixed")

    colour = node("AveragePool", [IMAGE], "colour", kernel_shape=[STRIDE] * 2, strides=[STRIDE] * 2)
    up, latitude, *confidences = FIELDS
    node("LpNormalization", [mixed(up, [0.0, -1.0])], up, axis=1)
    # The latitude of each row: half of what falls from the top to it, less what falls from it on.
    bent = mixed(latitude, [0.0])
    fall, none = number("fall", np.float32(-PER_ROW / 2)), number("none", np.float32(0))
    falls = node("Add", [node("Mul", [bent, none], "nothing"), fall], "falls")
    axis = number("axis", np.int64(2))
    above = node("CumSum", [falls, axis], "above")
    level = node("Sub", [above, node("CumSum", [falls, axis], "below", reverse=1)], "level")
    node("Add", [bent, level], latitude)
    for name in confidences:
        node("Squeeze", [node("Sigmoid", [mixed(name, [1.0])], f"{name}.all"), "channel"], name)
    number("channel", np.array([1]))

    def values(name: str, *shape: Any) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    outputs = [values(up, "B", 2, "h", "w"), values(latitude, "B", 1, "h", "w")]
    outputs += [values(name, "B", "h", "w") for name in confidences]
    graph = helper.make_graph(nodes, "quick", [values(IMAGE, "B", 3, "H", "W")], outputs, numbers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    helper.set_model_props(model, {CARD_KEY: CARD.to_json(), MULTIPLE_KEY: "32"})
    save(model, path)
    return path
