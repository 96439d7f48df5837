"""The errors of mpad, each saying what was expected, what came, and what to do.

MPADError
├── InputError (ValueError)      data or options that cannot be used as given
│   ├── UnknownDataset           no dataset of that name
│   ├── MissingDataset           a dataset whose files are not here: says how to get them
│   ├── DataFileError            a data file that cannot be read: names the file and the line
│   └── VectorFileError          a word-vector file that cannot be read: names the file and byte or line
├── MissingExtra (ImportError)   an optional part is not installed: says which command installs it
├── NotFinite (ArithmeticError)  a loss or an answer that is NaN or infinite: says what to change
├── EngineError (RuntimeError)   Ray or Spark cannot be reached, or is gone
└── StoreError                   a saved model that cannot be written or loaded
    ├── MissingModelFile         a file of the folder is not there
    ├── FutureFormat             written by a newer version of mpad
    ├── CheckpointError          a checkpoint that training cannot go on from
    ├── DamagedModel             a file is there but cannot be read as what it should be
    └── ShapeMismatch            a tensor does not fit the configuration beside it

DataWarning (UserWarning)        data that can be used, but hardly as it was meant
"""


class MPADError(Exception):
    """Base of every error that mpad raises on purpose."""


class InputError(MPADError, ValueError):
    """Data or options that cannot be used as given."""


class UnknownDataset(InputError):
    """No dataset of that name."""


class MissingDataset(InputError):
    """A dataset whose files are not here."""


class DataFileError(InputError):
    """A data file that cannot be read."""


class VectorFileError(InputError):
    """A word-vector file that cannot be read."""


class MissingExtra(MPADError, ImportError):
    """An optional part is not installed."""


class NotFinite(MPADError, ArithmeticError):
    """A loss or an answer is NaN or infinite."""


class EngineError(MPADError, RuntimeError):
    """An engine that work was handed to cannot be reached, or is gone."""


class StoreError(MPADError):
    """A saved model that cannot be written or loaded."""


class CheckpointError(StoreError):
    """A checkpoint that training cannot go on from."""


class MissingModelFile(StoreError):
    """A file of the model folder is not there."""


class FutureFormat(StoreError):
    """The folder was written by a newer version of mpad."""


class DamagedModel(StoreError):
    """A file of the model folder cannot be read as what it should be."""


class ShapeMismatch(StoreError):
    """A tensor does not fit the configuration beside it."""


class DataWarning(UserWarning):
    """Data that can be used, but hardly as it was meant."""
