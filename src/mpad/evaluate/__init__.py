"""Measure, compare, tune and report on models."""
