"""The names of the datasets, known without loading any."""

PAPER = (
    "reuters",
    "snippets",
    "bbcsport",
    "polarity",
    "subjectivity",
    "mpqa",
    "imdb",
    "trec",
    "sst1",
    "sst2",
    "yelp2013",
)
BUILT_IN = ("tweets", "docstrings")
NAMES = (*BUILT_IN, *PAPER)
