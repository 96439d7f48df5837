"""The errors of mpad. Messages say what was expected, what was found, and what to do.

MPADError
├── InputError (ValueError)      data or options that cannot be used as given
│   ├── UnknownDataset           no dataset of that name
│   ├── MissingDataset           a dataset without local files: says how to get them
│   ├── DataFileError            a data file that cannot be read: names the file and the line
│   └── VectorFileError          a word-vector file that cannot be read: names the file and byte or line
├── MissingExtra (ImportError)   an optional part is not installed: says which command installs it
├── NotFinite (ArithmeticError)  a loss or prediction that is NaN or infinite: says what to change
├── EngineError (RuntimeError)   Ray or Spark is unreachable or has stopped
└── StoreError                   a saved model that cannot be written or loaded
    ├── MissingModelFile         a file of the folder is missing
    ├── FutureFormat             written by a newer version of mpad
    ├── CheckpointError          a checkpoint that training cannot resume from
    ├── DamagedModel             a file that is damaged or has other contents than expected
    └── ShapeMismatch            a tensor that does not fit the configuration

DataWarning (UserWarning)        usable data that probably contains a mistake
"""


class MPADError(Exception):
    """Base of every error that mpad raises on purpose."""


class InputError(MPADError, ValueError):
    """Data or options that cannot be used as given."""


class UnknownDataset(InputError):
    """No dataset of that name."""


class MissingDataset(InputError):
    """A dataset without local files."""


class DataFileError(InputError):
    """A data file that cannot be read."""


class VectorFileError(InputError):
    """A word-vector file that cannot be read."""


class MissingExtra(MPADError, ImportError):
    """An optional dependency that is not installed."""


class NotFinite(MPADError, ArithmeticError):
    """A loss or prediction that is NaN or infinite."""


class EngineError(MPADError, RuntimeError):
    """Ray or Spark is unreachable or has stopped."""


class StoreError(MPADError):
    """A saved model that cannot be written or loaded."""


class CheckpointError(StoreError):
    """A checkpoint that training cannot resume from."""


class MissingModelFile(StoreError):
    """A file of the model folder is missing."""


class FutureFormat(StoreError):
    """A folder that a newer version of mpad wrote."""


class DamagedModel(StoreError):
    """A file of the model folder that is damaged or has other contents than expected."""


class ShapeMismatch(StoreError):
    """A tensor that does not fit the configuration."""


class DataWarning(UserWarning):
    """Usable data that probably contains a mistake."""
