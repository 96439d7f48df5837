"""Measure, compare, tune and report on models."""

from mpad.evaluate.class_scores import ClassScores, evaluate
from mpad.evaluate.label_scores import LabelScores

__all__ = ["ClassScores", "LabelScores", "evaluate"]
