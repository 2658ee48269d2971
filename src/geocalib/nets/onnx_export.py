"""Networks as ONNX files, for programs without torch.

The file keeps numbers as the weights do: in half precision where that loses nothing. What folding
made of a batch norm, a gain per channel, stands beside them, and is multiplied when the file is
loaded. So the network in the file is the one in torch, up to the rounding of single precision.

As these numbers are those of the weights' file, byte by byte, it can also leave them there.
"""

from __future__ import annotations

import json
import logging
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from geocalib.errors import MissingPackageError, WeightsError, how_to_get
from geocalib.files import write_bytes
from geocalib.nets.direct import Binned
from geocalib.nets.lean import AttentionBlock, LeanNetwork
from geocalib.nets.onnx_names import FIELDS, IMAGE, LOGITS, MULTIPLE_KEY, QUARTER_TURN, WANTED
from geocalib.nets.upright import find_upright
from geocalib.nets.weights.card import CARD_KEY, WeightCard
from geocalib.nets.weights.catalogue import PACKAGES, PUBLISHED, existing_file, weights_file
from geocalib.nets.weights.files import is_direct, load_network, read_direct

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

OPSET = 20
"""Version of the operators, the first with GELU."""

SMALL = 256
"""Numbers of a tensor that is kept as it is."""

HALF = ".half"
"""Ends the name of a tensor in half precision."""

ROUNDING = 1e-6
"""Rounding of single precision, relative to the largest number of a row."""

EXAMPLE = (2, 3, 256, 320)
"""A shape to follow the network with. No side is special: all of them may change."""

SIDES = {2: "rows", 3: "columns"}
"""Axes of an input whose sizes are multiples, and the names of how often."""

Array = npt.NDArray[Any]


def export_onnx(weights: str | Path, output: str | Path, refer: bool = False) -> None:
    """Write the lean network of a name or a file, and its classifier of which side is up; or, of a
    file, a network that answers cameras, for a second estimate.

    The file takes any number of images of any size at once. refer: leave the numbers in the file of
    the weights, which is in the same folder and has to stay there.
    """
    from safetensors.torch import load_file

    given = _given(weights)
    with weights_file(weights) as path:
        if refer and path.resolve().parent != Path(output).resolve().parent:
            raise WeightsError(f"{output} cannot refer to {path}, which is in another folder")
        stored = load_file(path)
    model = _traced(given.whole, given.outputs)
    _compact(model.graph, {name: value.float().numpy() for name, value in stored.items()})
    if refer:
        _refer(model.graph, path)
    _spell_out_sigmoid(model.graph)
    _tidy(model)
    if QUARTER_TURN in given.outputs:
        _decode_on_demand(model.graph)
    metadata = {CARD_KEY: given.card.to_json(), MULTIPLE_KEY: str(LeanNetwork.multiple)}
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    write_bytes(Path(output), model.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class _Given:
    """What a file is made of."""

    whole: nn.Module
    """All that the file computes."""
    outputs: Sequence[str]
    card: WeightCard


def _given(weights: str | Path) -> _Given:
    # Nothing is fetched to be refused.
    if weights not in PUBLISHED:
        if weights not in PACKAGES and is_direct(existing_file(weights)):
            network, card = read_direct(weights)
            return _Given(_Answers(network), (LOGITS,), card)
        loaded = load_network(weights)
        if loaded.card.sha256 is not None and isinstance(loaded.network, LeanNetwork):
            upright = find_upright(loaded)
            if upright is not None:
                return _Given(upright, (*FIELDS, QUARTER_TURN), loaded.card)
            return _Given(loaded.network, FIELDS, loaded.card)
    raise WeightsError(f"{weights} cannot be exported; give lean, or a file of a lean network")


class _Answers(nn.Module):
    """A network that sees no fields."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: Tensor) -> Tensor:
        answer: Binned = self.network(image)
        return answer.logits


def _traced(whole: nn.Module, outputs: Sequence[str]) -> ModelProto:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(f"to export needs {error.name}; {how_to_get('export')}") from None
    sides = {axis: LeanNetwork.multiple * torch.export.Dim(name) for axis, name in SIDES.items()}
    for part in whole.modules():
        if isinstance(part, AttentionBlock):
            part.attend = partial(_attend, part)  # type: ignore[method-assign]
    with _silent():
        program = torch.onnx.export(
            whole.eval(),
            (torch.zeros(EXAMPLE),),
            input_names=[IMAGE],
            output_names=outputs,
            dynamic_shapes={"image": {0: torch.export.Dim("images"), **sides}},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def _attend(block: AttentionBlock, x: Tensor) -> Tensor:
    """What its tokens see, by one operator of ONNX Runtime."""
    return torch.onnx.ops.symbolic(
        "com.microsoft::Attention",
        (x, block.qkv.weight.T, block.qkv.bias),
        {"num_heads": block.heads},
        dtype=x.dtype,
        shape=x.shape,
        version=1,
    )


@contextmanager
def _silent() -> Iterator[None]:
    """Hide the exporter's messages about missing packages that it does not need."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _compact(graph: GraphProto, stored: Mapping[str, Array]) -> None:
    """Large tensors in half precision, where that is what they were made from."""
    from onnx import numpy_helper

    matrices = {value.T.tobytes(): name for name, value in stored.items() if value.ndim == 2}
    makers: list[NodeProto] = []
    for tensor in list(graph.initializer):
        numbers = numpy_helper.to_array(tensor)
        if numbers.dtype != np.float32 or numbers.size < SMALL:
            continue
        # The exporter has matrices multiply from the other side.
        turned = matrices.get(numbers.tobytes())
        source = tensor.name.removeprefix("network.") if turned is None else turned
        parts = _parts(numbers if turned is None else numbers.T, stored.get(source))
        if parts is not None:
            if parts.half.ndim == 4 and parts.half.shape != numbers.shape:
                _pad_unevenly(graph, tensor.name)
            makers.extend(_makers(graph, tensor, parts, source, turned is not None))
    # Nodes come in the order of their use.
    _replace(graph.node, [*makers, *graph.node])


@dataclass(frozen=True)
class _Parts:
    """A tensor as a product."""

    half: npt.NDArray[np.float16]
    gain: npt.NDArray[np.float32] | None
    """The scale of each row."""


def _parts(numbers: Array, source: Array | None) -> _Parts | None:
    """What a tensor was made from, if that fits in half precision."""
    if (half := _halved(numbers)) is not None:
        return _Parts(half, None)
    if source is None or numbers.ndim != 4 or (half := _halved(source)) is None:
        return None
    if source.shape != numbers.shape:
        # A kernel with a row and a column of zeros at its start: see ``HalvingConv.folded``.
        numbers = numbers[:, :, 1:, 1:]
    rows, made = (part.reshape(len(part), -1).astype(np.float64) for part in (source, numbers))
    length = (rows**2).sum(1)
    gain = np.where(length > 0, (rows * made).sum(1) / np.where(length > 0, length, 1), 1)
    far = np.abs(gain[:, None] * rows - made).max(1) > ROUNDING * np.abs(made).max(1)
    if far.any():
        return None
    return _Parts(half, gain.astype(np.float32).reshape(-1, 1, 1, 1))


def _halved(numbers: Array) -> npt.NDArray[np.float16] | None:
    """The same numbers in half precision, if they are the same."""
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float16)
    return half if bool((half == numbers).all()) else None


def _makers(
    graph: GraphProto, tensor: TensorProto, parts: _Parts, source: str, turned: bool
) -> Iterator[NodeProto]:
    """The nodes that make a tensor of its parts, which take its place. source: what they are called
    in the weights."""
    from onnx import TensorProto, helper, numpy_helper

    name = tensor.name
    whole = parts.gain is None and not turned
    cast = name if whole else f"{source}.single"
    tensor.CopyFrom(numpy_helper.from_array(parts.half, f"{source}{HALF}"))
    yield helper.make_node("Cast", [tensor.name], [cast], to=TensorProto.FLOAT)
    if parts.gain is not None:
        graph.initializer.append(numpy_helper.from_array(parts.gain, f"{source}.gain"))
        yield helper.make_node("Mul", [cast, f"{source}.gain"], [name])
    elif turned:
        yield helper.make_node("Transpose", [cast], [name], perm=[1, 0])


def _refer(graph: GraphProto, weights: Path) -> None:
    """Tensors that the weights' file holds as they are, in its place."""
    from onnx import TensorProto, numpy_helper

    data = weights.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    start = 8 + length
    table = json.loads(data[8:start])
    for tensor in graph.initializer:
        entry = table.get(tensor.name.removesuffix(HALF))
        if entry is None or not tensor.name.endswith(HALF):
            continue
        first, last = (start + offset for offset in entry["data_offsets"])
        if data[first:last] == numpy_helper.to_array(tensor).tobytes():
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            place = {"location": weights.name, "offset": first, "length": last - first}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))


def _pad_unevenly(graph: GraphProto, weight: str) -> None:
    """The convolution of a weight, whose first row and column are left out: with less padding at
    the start."""
    (node,) = (node for node in graph.node if weight in node.input)
    for attribute in node.attribute:
        if attribute.name == "pads":
            top, left, bottom, right = attribute.ints
            attribute.ints[:] = top - 1, left - 1, bottom, right
        elif attribute.name == "kernel_shape":
            attribute.ints[:] = [side - 1 for side in attribute.ints]


def _spell_out_sigmoid(graph: GraphProto) -> None:
    """As 1 / (1 + exp(-x)): ONNX Runtime rounds its own to 1e-7, which is coarse for confidences of
    1e-6, and these are the weights of a fit."""
    from onnx import helper, numpy_helper

    one = "sigmoid.one"
    graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), one))
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type != "Sigmoid":
            nodes.append(node)
            continue
        (x,), (y,) = node.input, node.output
        nodes += [
            helper.make_node("Neg", [x], [f"{y}.minus"]),
            helper.make_node("Exp", [f"{y}.minus"], [f"{y}.exp"]),
            helper.make_node("Add", [f"{y}.exp", one], [f"{y}.sum"]),
            helper.make_node("Reciprocal", [f"{y}.sum"], [y]),
        ]
    _replace(graph.node, nodes)


def _decode_on_demand(graph: GraphProto) -> None:
    """All that only the fields need goes into a branch, which is not taken where
    only the quarter turns of pictures are wanted."""
    from onnx import TensorProto, helper, numpy_helper

    first = _ancestors(graph, QUARTER_TURN)
    early = [node for node in graph.node if node.output[0] in first]
    late = [node for node in graph.node if node.output[0] not in first]
    inner = {name: f"{name}.seen" for name in FIELDS}
    for node in late:
        for names in (node.input, node.output):
            names[:] = [inner.get(name, name) for name in names]
    shared = {name for node in early for name in node.input}
    numbers = [tensor for tensor in graph.initializer if tensor.name in shared]
    own = [tensor for tensor in graph.initializer if tensor.name not in shared]
    ranks = {o.name: len(o.type.tensor_type.shape.dim) for o in graph.output}
    seen = [
        helper.make_tensor_value_info(inner[name], TensorProto.FLOAT, [None] * ranks[name])
        for name in FIELDS
    ]
    empty = [
        numpy_helper.from_array(np.zeros([0] * ranks[name], np.float32), inner[name])
        for name in FIELDS
    ]
    shapes = list(graph.value_info)
    _replace(graph.value_info, [value for value in shapes if value.name in first])
    late_shapes = [value for value in shapes if value.name not in first]
    nothing = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in empty]
    choice = helper.make_node(
        "If",
        [WANTED],
        list(FIELDS),
        then_branch=helper.make_graph(late, "fields", [], seen, own, value_info=late_shapes),
        else_branch=helper.make_graph(nothing, "nothing", [], seen),
    )
    graph.input.append(helper.make_tensor_value_info(WANTED, TensorProto.BOOL, []))
    # A number under the name of an input is what that is by default.
    numbers.append(numpy_helper.from_array(np.array(True), WANTED))
    _replace(graph.initializer, numbers)
    _replace(graph.node, [*early, choice])


def _replace(place: Any, content: Sequence[Any]) -> None:
    """What a list in a graph holds."""
    kept = list(content)
    del place[:]
    place.extend(kept)


def _ancestors(graph: GraphProto, name: str) -> set[str]:
    """All that a value is computed from, and itself."""
    makers = {output: node for node in graph.node for output in node.output}
    found: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one in makers and one not in found:
            found.update(makers[one].output)
            todo.extend(makers[one].input)
    return found


def _tidy(model: ModelProto) -> None:
    """Without notes of where each part came from, and what follows from the rest."""
    graph = model.graph
    # Where maps that are added are known to be of one shape, ONNX Runtime adds within convolutions.
    # Those of tokens are left out: a sum and a norm in one take it several times as long.
    added = {name for node in graph.node if node.op_type == "Add" for name in node.input}
    maps = [v for v in graph.value_info if len(v.type.tensor_type.shape.dim) == 4]
    _replace(graph.value_info, [value for value in maps if value.name in added])
    values = (*graph.input, *graph.value_info, *graph.output)
    for entry in (model, graph, *graph.node, *graph.initializer, *values):
        del entry.metadata_props[:]
        entry.doc_string = ""
    graph.name = "geocalib"
    model.producer_name = "geocalib"
