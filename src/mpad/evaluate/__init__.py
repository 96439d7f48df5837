"""Measure, compare, tune and report on models."""

from mpad.evaluate.class_scores import ClassScores, evaluate
from mpad.evaluate.label_errors import LabelError, LabelErrors, find_label_errors
from mpad.evaluate.label_scores import LabelScores

__all__ = ["ClassScores", "LabelError", "LabelErrors", "LabelScores", "evaluate", "find_label_errors"]
