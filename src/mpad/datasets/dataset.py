"""What a dataset is."""

from dataclasses import dataclass

from mpad.text.readers import Documents


@dataclass(frozen=True)
class Dataset:
    """A corpus with its split: labelled documents to train on and to test on."""

    name: str
    train: Documents
    test: Documents

    @property
    def classes(self) -> list[str]:
        """The labels, in order."""
        return sorted(set(self.train.labels or []))
