"""Ids → documents as sequences of words, for networks that read text in order."""
