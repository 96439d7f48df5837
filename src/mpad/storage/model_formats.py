"""Compatibility with folders that earlier versions of mpad wrote.

| format | differences                                                                                            |
|--------|--------------------------------------------------------------------------------------------------------|
| 1      | no checksums                                                                                           |
| 2      | one setting `authors` for all differences from the paper's network; other names of MPAD's tensors      |
| 3      | no potentials                                                                                          |
| 4      | one network per model, no thresholds of labels                                                         |
| 5      | no tables of 8 bits                                                                                    |
| 6      | no features of nodes by a transformer                                                                  |
| 7      | no potentials of words that no training document has                                                   |
"""

import re
from collections.abc import Mapping
from typing import Any

FORMAT = 8
_AUTHORS = {
    "mlp_before": True,
    "mlp_norm": True,
    "mlp_relu": False,
    "attention_bias": True,
    "score_tanh": True,
    "attention_dense": True,
}
_LAYERS = {
    "mlp1": "sent",
    "mlp_norm": "sent_norm",
    "mlp2": "heard",
    "before1": "enter",
    "before_norm": "enter_norm",
    "before2": "state",
    "project": "state",
    "gate": "combine",
}


def network_settings(network: Any, version: int) -> Any:
    """Return the settings of MPAD's network under their current names."""
    if version >= 3 or not isinstance(network, Mapping) or "authors" not in network:
        return network
    rest = {name: value for name, value in network.items() if name != "authors"}
    return rest | (_AUTHORS if network["authors"] is True else {})


def tensor_name(name: str, version: int) -> str:
    """Return the name of one of MPAD's tensors in a folder of format `version`."""
    if version >= 3:
        return name
    layer = re.sub(r"\.rounds\.(\d+)\.(\w+)", lambda result: f".steps.{result[1]}.{_LAYERS[result[2]]}", name)
    layer = re.sub(r"\.readout\.attention\.(\d+)\.", r".readouts.\1.attention.", layer)
    return layer.replace(".readout.", ".")
