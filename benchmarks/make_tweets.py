"""`python -m benchmarks.make_tweets vaderSentiment-3.3.2.tar.gz`: write the built-in tweets from their source.

The source distribution comes from the Python package index:
`pip download --no-deps --no-binary :all: vaderSentiment==3.3.2`.
"""

import html
import io
import lzma
import sys
import tarfile
from pathlib import Path

import mpad.paper.datasets.tweets

_ARCHIVE = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_TWEETS = "hutto_ICWSM_2014/tweets_GroundTruth.txt"
_LICENSE = "vaderSentiment-3.3.2/LICENSE.txt"
_CLEAR = 0.5  # points of the mean rating, from -4 to 4


def main() -> None:
    """Write tweets.tsv.xz and LICENSE.txt into the package."""
    folder = Path(mpad.paper.datasets.tweets.__file__).parent
    with tarfile.open(sys.argv[1]) as package:
        with tarfile.open(fileobj=io.BytesIO(_read(package, _ARCHIVE))) as resources:
            rows = [line.split("\t", 2) for line in _read(resources, _TWEETS).decode("utf-8").splitlines()]
        (folder / "LICENSE.txt").write_bytes(_read(package, _LICENSE))
    lines = [
        f"{'positive' if float(mean) > 0 else 'negative'}\t{' '.join(html.unescape(text).split())}\n"
        for _, mean, text in rows
        if abs(float(mean)) >= _CLEAR
    ]
    (folder / "tweets.tsv.xz").write_bytes(lzma.compress("".join(lines).encode(), preset=9))
    print(f"{len(lines):,} tweets")


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    assert member is not None, name
    return member.read()


if __name__ == "__main__":
    main()
