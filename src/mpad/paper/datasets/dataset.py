"""The type of a dataset."""

from dataclasses import dataclass

from mpad.data.readers import Documents


@dataclass(frozen=True)
class Dataset:
    """A corpus with its split: labelled documents to train on, to test on, and perhaps to choose the epoch by.

    A corpus that is meant for cross-validation has all its documents in `train`; its `test` is empty.
    """

    name: str
    train: Documents
    test: Documents
    validation: Documents | None = None

    @property
    def classes(self) -> list[str]:
        """The labels, in order."""
        return sorted(set(self.train.labels or []))

    @property
    def cross_validated(self) -> bool:
        """Return whether the dataset has no test part and is cross-validated."""
        return not len(self.test)

    @property
    def parts(self) -> dict[str, Documents]:
        """Every part that holds documents, by name."""
        named = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: part for name, part in named.items() if part is not None and len(part)}
