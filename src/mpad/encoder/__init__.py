"""The pretrained encoder: an MPAD network that imitates sentence transformers, to start training from.

`pretrain(texts, teachers)` trains one; `load_encoder` reads one that was saved; `Encoder.encode` returns the vectors of
texts. `mpad.MPADEncoder` is the same as a scikit-learn transformer.
"""

from mpad.encoder.encoder import Encoder, load_encoder
from mpad.encoder.pretraining import PretrainConfig, pretrain

__all__ = ["Encoder", "PretrainConfig", "load_encoder", "pretrain"]
