"""Scikit-learn estimators over raw text."""
