"""Prediction without torch: text → probabilities with NumPy and compiled code.

>>> from mpad import inference
>>> model = inference.load("my-model")                     # doctest: +SKIP
>>> model.predict(["a moving film"])                     # doctest: +SKIP
array(['positive'], dtype='<U8')

For serving and fast startup. It needs only a model folder written by `MPADClassifier.save` or `mpad fit`.
"""

from mpad.inference.network import Answer, Network
from mpad.inference.pipeline import Pipeline, load

__all__ = ["Answer", "Network", "Pipeline", "load"]
