"""The paper's eleven datasets: what each is, which files hold it, and where they come from."""

from dataclasses import dataclass

FIXED, FOLDS, DEV = ("train", "test"), ("all",), ("train", "dev", "test")


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue."""

    title: str  # as the paper prints it
    about: str
    parts: tuple[str, ...]  # the files: <part>.tsv, also .xz or .gz
    source: str  # what `mpad data import` reads
    folders: tuple[str, ...] = ()  # other names that its folder may have


CATALOGUE = {
    "reuters": Entry(
        "Reuters", "newswire, 8 topics (R8)", FIXED, "reuters21578.tar.gz, or a folder of reut2-*.sgm", ("r8",)
    ),
    "snippets": Entry(
        "Snippets", "web search results, 8 domains", FIXED, "data-web-snippets: train.txt and test.txt, label last"
    ),
    "bbcsport": Entry("BBCSport", "sports news, 5 sports", FOLDS, "bbcsport-fulltext.zip, or its folder"),
    "polarity": Entry(
        "Polarity", "film review sentences, good or bad", FOLDS, "rt-polaritydata.tar.gz: rt-polarity.pos and .neg"
    ),
    "subjectivity": Entry(
        "Subjectivity",
        "film sentences, subjective or objective",
        FOLDS,
        "rotten_imdb.tar.gz: quote.tok.gt9.5000 and plot.tok.gt9.5000",
    ),
    "mpqa": Entry("MPQA", "opinion phrases, good or bad", FOLDS, "mpqa.pos and mpqa.neg, or mpqa.all"),
    "imdb": Entry("IMDB", "film reviews, good or bad", FIXED, "aclImdb_v1.tar.gz, or its folder"),
    "trec": Entry("TREC", "questions, 6 kinds", FIXED, "a folder of train_5500.label and TREC_10.label"),
    "sst1": Entry(
        "SST-1",
        "film review phrases, 5 grades",
        DEV,
        "trainDevTestTrees_PTB.zip, or a folder of train.txt, dev.txt, test.txt",
    ),
    "sst2": Entry(
        "SST-2",
        "film review phrases, good or bad",
        DEV,
        "trainDevTestTrees_PTB.zip, or a folder of train.txt, dev.txt, test.txt",
    ),
    "yelp2013": Entry("Yelp2013", "restaurant reviews, 5 stars", DEV, "a folder of yelp-2013-{train,dev,test}.txt.ss"),
}
