"""A saved model in other forms: for ONNX Runtime, with tables of 8 bits, in a repository of models."""

from mpad.export.int8_folder import export_int8
from mpad.export.onnx_folder import export_onnx, onnx_inputs

__all__ = ["export_int8", "export_onnx", "onnx_inputs"]
