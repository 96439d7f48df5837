"""The datasets by name, and of the paper's eleven what each is, which files hold it, and where they come from."""

from dataclasses import dataclass

FIXED, FOLDS, DEV = ("train", "test"), ("all",), ("train", "dev", "test")


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue."""

    title: str  # as the paper prints it
    about: str
    parts: tuple[str, ...]  # the files: <part>.tsv, also .xz or .gz
    source: str  # what `mpad data import` reads
    format: str  # module of mpad.paper.datasets.importers, whose function read_<name> reads the source
    classes: int
    folders: tuple[str, ...] = ()  # other names that its folder may have


_TREES = "trainDevTestTrees_PTB.zip, or a folder of train.txt, dev.txt, test.txt"
_R8, _SNIPPETS = "reuters21578.tar.gz, or a folder of reut2-*.sgm", "data-web-snippets: train.txt, test.txt, label last"
_SENTENCES = "rt-polaritydata.tar.gz: rt-polarity.pos and .neg"
_SUBJECTIVITY = "rotten_imdb.tar.gz: quote.tok.gt9.5000 and plot.tok.gt9.5000"
CATALOGUE = {
    "reuters": Entry("Reuters", "newswire, 8 topics (R8)", FIXED, _R8, "reuters", 8, ("r8",)),
    "snippets": Entry("Snippets", "web search results, 8 domains", FIXED, _SNIPPETS, "lines", 8),
    "bbcsport": Entry("BBCSport", "sports news, 5 sports", FOLDS, "bbcsport-fulltext.zip, or its folder", "folders", 5),
    "polarity": Entry("Polarity", "film review sentences, good or bad", FOLDS, _SENTENCES, "lines", 2),
    "subjectivity": Entry("Subjectivity", "film sentences, subjective or objective", FOLDS, _SUBJECTIVITY, "lines", 2),
    "mpqa": Entry("MPQA", "opinion phrases, good or bad", FOLDS, "mpqa.pos and mpqa.neg, or mpqa.all", "lines", 2),
    "imdb": Entry("IMDB", "film reviews, good or bad", FIXED, "aclImdb_v1.tar.gz, or its folder", "folders", 2),
    "trec": Entry("TREC", "questions, 6 kinds", FIXED, "a folder of train_5500.label and TREC_10.label", "lines", 6),
    "sst1": Entry("SST-1", "film review phrases, 5 grades", DEV, _TREES, "treebank", 5),
    "sst2": Entry("SST-2", "film review phrases, good or bad", DEV, _TREES, "treebank", 2),
    "yelp2013": Entry("Yelp2013", "reviews, 5 stars", DEV, "a folder of yelp-2013-{train,dev,test}.txt.ss", "lines", 5),
}
PAPER = tuple(CATALOGUE)
BUILT_IN = ("tweets", "docstrings")  # modules of this package
NAMES = (*BUILT_IN, *PAPER)
