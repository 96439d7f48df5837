"""The errors of mpad. Messages say what was expected, what was found, and what to do."""


class MPADError(Exception):
    """Base of every error that mpad raises on purpose."""


class InputError(MPADError, ValueError):
    """Data or options that cannot be used as given."""


class UnknownDataset(InputError):
    """No dataset of that name."""


class MissingDataset(InputError):
    """A dataset without local files: says how to get them."""


class DataFileError(InputError):
    """A data file that cannot be read: names the file and the line."""


class VectorFileError(InputError):
    """A word-vector file that cannot be read: names the file and byte or line."""


class MissingExtra(MPADError, ImportError):
    """An optional dependency that is not installed: says which command installs it."""


class NotFinite(MPADError, ArithmeticError):
    """A loss or prediction that is NaN or infinite: says what to change."""


class EngineError(MPADError, RuntimeError):
    """Ray or Spark is unreachable or has stopped."""


class StoreError(MPADError):
    """A saved model that cannot be written or loaded."""


class MissingModelFile(StoreError):
    """A file of the model folder is missing."""


class FutureFormat(StoreError):
    """A folder that a newer version of mpad wrote."""


class CheckpointError(StoreError):
    """A checkpoint that training cannot resume from."""


class DamagedModel(StoreError):
    """A file of the model folder that is damaged or has other contents than expected."""


class ShapeMismatch(StoreError):
    """A tensor that does not fit the configuration."""


class DataWarning(UserWarning):
    """Usable data that probably contains a mistake."""
