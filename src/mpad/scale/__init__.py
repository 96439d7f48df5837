"""Batch prediction on processes, Ray and Spark.

>>> from mpad.scale import Predictor
>>> dataset.map_batches(Predictor("my-model"))           # doctest: +SKIP
"""

from mpad.scale.predictor import Predictor

__all__ = ["Predictor"]
