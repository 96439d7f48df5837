"""An ONNX graph, written node by node."""

from typing import Any

import numpy as np

from mpad.extras import require

OPSET, IR_VERSION = 18, 9  # of 2023: ONNX Runtime 1.17 and newer read both
FLOAT = 1  # ONNX's number of float32
NUMBERS = "model.onnx.data"  # the file beside model.onnx that holds the numbers where they are many
_FEW = 8
_LARGEST = 1 << 30  # bytes of numbers up to which model.onnx itself holds them; protobuf's limit is twice that


class Builder:
    """Collects nodes, inputs and constants; a tensor is the name that it has in the graph."""

    def __init__(self) -> None:
        self._onnx = require("onnx", extra="onnx")
        self._helper, self._arrays = self._onnx.helper, self._onnx.numpy_helper
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._constants: dict[tuple[Any, ...], Any] = {}
        self._bytes = 0

    def input(self, name: str, kind: type[np.generic], axis: str) -> str:
        """A vector that is handed in, its length named by `axis`."""
        element = self._helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        self._inputs.append(self._helper.make_tensor_value_info(name, element, [axis]))
        return name

    @property
    def input_names(self) -> list[str]:
        """Names of what is handed in."""
        return [tensor.name for tensor in self._inputs]

    def constant(self, value: Any, kind: type[np.generic] | None = np.float32) -> str:
        """Numbers of the model, the same few of them kept once. Without a `kind`, of the type that they have."""
        array = np.ascontiguousarray(value, kind).reshape(np.shape(value))
        key = array.dtype.str, array.shape, array.tobytes() if array.size <= _FEW else len(self._constants)
        if key not in self._constants:
            self._bytes += array.nbytes
            self._constants[key] = self._arrays.from_array(array, f"constant_{len(self._constants)}")
        return str(self._constants[key].name)

    def __call__(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Apply an ONNX operator; what it gives."""
        return self.several(1, operator, *inputs, name=name, **attributes)[0]

    def several(self, n: int, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> list[str]:
        """The same of an operator that gives several tensors."""
        outputs = [f"{operator.lower()}_{len(self._nodes)}_{k}" for k in range(n)] if name is None else [name]
        self._nodes.append(self._helper.make_node(operator, list(inputs), outputs, **attributes))
        return outputs

    def length(self, tensor: str) -> str:
        """Rows of a tensor: (1,)."""
        return self("Shape", tensor, start=0, end=1)

    def sum_rows(self, x: str, owner: str, n: str, width: int | None = None) -> str:
        """Σ of the rows of each owner: (rows, width) → (n, width); without a width, of numbers: (rows,) → (n,)."""
        shape, index = n, owner
        if width is not None:
            shape = self("Concat", n, self.constant([width], np.int64), axis=0)
            index = self("Expand", self("Unsqueeze", owner, self.constant([1], np.int64)), self("Shape", x))
        zeros = self("Expand", self.constant(0.0), shape)
        return self("ScatterElements", zeros, index, x, axis=0, reduction="add")

    def softmax(self, score: str, owner: str, n: str) -> str:
        """exp(score) / Σ exp(score) among the rows of each owner: (rows,) → (rows,)."""
        lowest = self("Expand", self.constant(np.finfo(np.float32).min), n)
        largest = self("ScatterElements", lowest, owner, score, axis=0, reduction="max")
        power = self("Exp", self("Sub", score, self("Gather", largest, owner)))
        return self("Div", power, self("Gather", self.sum_rows(power, owner, n), owner))

    def save(self, path: str, outputs: dict[str, int], facts: dict[str, str]) -> None:
        """Write the graph; `outputs` are matrices, by their widths."""
        tensor = self._helper.make_tensor_value_info
        shapes = [tensor(name, self._onnx.TensorProto.FLOAT, ["documents", width]) for name, width in outputs.items()]
        graph = self._helper.make_graph(self._nodes, "mpad", self._inputs, shapes, list(self._constants.values()))
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="mpad")
        self._helper.set_model_props(model, facts)
        self._onnx.save_model(model, path, save_as_external_data=self._bytes > _LARGEST, location=NUMBERS)
        self._onnx.checker.check_model(path)
