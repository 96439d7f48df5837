"""The built-in tweets: 3,432 tweets that twenty people each rated as positive or negative (Hutto & Gilbert, 2014).

They come from the package vaderSentiment 3.3.2 (MIT, license next to the file), `tweets_GroundTruth.txt`: those with a
mean rating of at least half a point to either side. `python -m benchmarks.make_tweets` writes tweets.tsv.xz. A checksum
of each text decides on which side of the split it is, so copies share theirs.
"""

import lzma
from importlib.resources import files

from mpad.data.equal_texts import text_key
from mpad.paper.datasets.dataset import Dataset, split_by_checksum


def load() -> Dataset:
    """Read the tweets, with the labels "positive" and "negative"."""
    packed = files(__package__).joinpath("tweets.tsv.xz").read_bytes()
    rows = (line.split("\t", 1) for line in lzma.decompress(packed).decode("utf-8").splitlines())
    return split_by_checksum("tweets", ((text_key(text), label, text) for label, text in rows))
