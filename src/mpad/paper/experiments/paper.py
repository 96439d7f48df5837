"""The numbers that the paper printed, as data (Nikolentzos, Tixier, Vazirgiannis, AAAI 2020)."""

from mpad.paper.datasets.statistics import Statistics

# Table 1: training and test documents, classes, mean and most words, vocabulary, words with a pretrained vector.
_PRINTED = {
    "reuters": (5_485, 2_189, 8, 102.3, 964, 23_585, 15_587),
    "snippets": (10_060, 2_280, 8, 18.0, 50, 29_257, 17_142),
    "bbcsport": (737, 0, 5, 380.5, 1_818, 14_340, 13_390),
    "polarity": (10_662, 0, 2, 20.3, 56, 18_777, 16_416),
    "subjectivity": (10_000, 0, 2, 23.3, 120, 21_335, 17_896),
    "mpqa": (10_606, 0, 2, 3.0, 36, 6_248, 6_085),
    "imdb": (25_000, 25_000, 2, 254.3, 2_633, 141_655, 104_391),
    "trec": (5_452, 500, 6, 10.0, 37, 9_593, 9_125),
    "sst1": (157_918, 2_210, 5, 7.4, 53, 17_833, 16_262),
    "sst2": (77_833, 1_821, 2, 9.5, 53, 17_237, 15_756),
    "yelp2013": (301_514, 33_504, 5, 143.7, 1_184, 48_212, 48_212),
}
TABLE_1 = {name: Statistics(*row) for name, row in _PRINTED.items()}

# Table 2. None: not printed; "OOM": more than 16 GB of memory.
TABLE_2_DATASETS = tuple(name for name in _PRINTED if name != "snippets")
_ONLY_SST = (None,) * 7
TABLE_2: dict[str, tuple[float | str | None, ...]] = {
    "doc2vec": (95.34, 98.64, 67.30, 88.27, 82.57, 92.5, 70.80, 48.7, 87.8, 57.7),
    "cnn": (97.21, 98.37, 81.5, 93.4, 89.5, 90.28, 93.6, 48.0, 87.2, 64.89),
    "dan": (94.79, 94.30, 80.3, 92.44, 88.91, 89.4, 89.60, 47.7, 86.3, 61.55),
    "tree-lstm": (*_ONLY_SST, 51.0, 88.0, None),
    "drnn": (*_ONLY_SST, 49.8, 86.6, None),
    "lstmn": (*_ONLY_SST, 47.9, 87.0, None),
    "c-lstm": (*_ONLY_SST[:6], 94.6, 49.2, 87.8, None),
    "spgk": (96.39, 94.97, 77.89, 91.48, 85.78, "OOM", 90.69, "OOM", "OOM", "OOM"),
    "wmd": (96.5, 98.71, 66.42, 86.04, 83.95, "OOM", 73.40, "OOM", "OOM", "OOM"),
    "disan": (97.35, 96.05, 80.38, 94.2, 90.1, 83.25, 94.2, 51.72, 86.76, 60.51),
    "lstm-grnn": (96.16, 95.52, 79.98, 92.38, 89.08, 89.98, 89.40, 48.09, 86.38, 65.1),
    "hn-att": (97.25, 96.73, 80.78, 92.92, 89.08, 90.06, 90.80, 49.00, 86.71, 68.2),
    "mpad": (97.07, 98.37, 80.24, 93.46, 90.02, 91.30, 95.60, 49.09, 87.80, 66.16),
    "mpad-sentence-att": (96.89, 99.32, 80.44, 93.02, 90.12, 91.70, 95.60, 49.95, 88.30, 66.47),
    "mpad-clique": (97.57, 99.72, 81.17, 92.82, 89.96, 91.87, 95.20, 48.86, 87.91, 66.60),
    "mpad-path": (97.44, 99.59, 80.46, 93.31, 89.81, 91.84, 93.80, 49.68, 87.75, 66.80),
}

TABLE_3_DATASETS = ("reuters", "polarity", "imdb")
TABLE_3: dict[str, tuple[float, ...]] = {
    "mpad-1mp": (96.57, 79.91, 90.57),
    "mpad": (97.07, 80.24, 91.30),
    "mpad-3mp": (97.07, 80.20, 91.24),
    "mpad-4mp": (97.48, 80.52, 91.30),
    "mpad-undirected": (97.35, 80.05, 90.97),
    "mpad-no-master": (96.66, 79.15, 91.09),
    "mpad-no-renormalisation": (96.02, 79.84, 91.16),
    "mpad-neighbours-only": (97.12, 79.22, 89.50),
    "mpad-no-master-skip": (96.93, 80.62, 91.12),
}


def printed(row: str, dataset: str) -> float | str | None:
    """Return the number in a row of Table 2 or 3 for a dataset, or None."""
    if row in TABLE_2 and dataset in TABLE_2_DATASETS:
        return TABLE_2[row][TABLE_2_DATASETS.index(dataset)]
    if row in TABLE_3 and dataset in TABLE_3_DATASETS:
        return TABLE_3[row][TABLE_3_DATASETS.index(dataset)]
    return None


def largest_printed(dataset: str) -> float | None:
    """Return the largest number that the paper prints for a dataset, of any model."""
    values = [printed(row, dataset) for row in TABLE_2]
    return max((value for value in values if isinstance(value, float)), default=None)
