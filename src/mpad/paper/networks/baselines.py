"""The baselines' networks by name, each with its configuration."""

from dataclasses import fields

from mpad.errors import InputError
from mpad.network import Network
from mpad.paper.networks.c_lstm import CLSTM, CLSTMConfig
from mpad.paper.networks.cnn import CNN, CNNConfig
from mpad.paper.networks.config import NetworkConfig
from mpad.paper.networks.dan import DAN, DANConfig
from mpad.paper.networks.disan import DiSAN, DiSANConfig
from mpad.paper.networks.drnn import DRNN, DRNNConfig
from mpad.paper.networks.hn_att import HNATT, HNATTConfig
from mpad.paper.networks.lstm_grnn import LSTMGRNN, LSTMGRNNConfig
from mpad.paper.networks.lstmn import LSTMN, LSTMNConfig
from mpad.paper.networks.texting import TextING, TextINGConfig
from mpad.paper.networks.tree_lstm import TreeLSTM, TreeLSTMConfig
from mpad.paper.networks.widemlp import WideMLP, WideMLPConfig

BASELINES: dict[str, tuple[type[Network], type[NetworkConfig]]] = {
    "cnn": (CNN, CNNConfig),
    "dan": (DAN, DANConfig),
    "tree-lstm": (TreeLSTM, TreeLSTMConfig),
    "drnn": (DRNN, DRNNConfig),
    "lstmn": (LSTMN, LSTMNConfig),
    "c-lstm": (CLSTM, CLSTMConfig),
    "disan": (DiSAN, DiSANConfig),
    "lstm-grnn": (LSTMGRNN, LSTMGRNNConfig),
    "hn-att": (HNATT, HNATTConfig),
    "widemlp": (WideMLP, WideMLPConfig),
    "texting": (TextING, TextINGConfig),
}


def find_baseline(name: str) -> tuple[type[Network], type[NetworkConfig]]:
    """The network of that name and its configuration."""
    if name not in BASELINES:
        raise InputError(f"no network '{name}' (known: {', '.join(BASELINES)})")
    return BASELINES[name]


def baseline_options(name: str) -> set[str]:
    """Return a network's own options."""
    return {field.name for field in fields(find_baseline(name)[1])} - {field.name for field in fields(NetworkConfig)}
