"""Tokenizers, vocabulary and word vectors: text → words → ids."""
