"""The version of what each system computes. Every record keeps it: a configuration does not say how it was computed.

Raise a system's number, with a line here, whenever the same configuration gives numbers of another kind: another
network, dropout of another meaning, another precision or rounding, other preprocessing. What only makes it faster, or
draws the same things from another generator, is no raise. Records of an older engine stay valid: tables say where they
stand, and `mpad reproduce --engine current` runs them again.

Numbers count from 0. What raised them, and since which commit:

mpad, 1 (cedf3d8): no bias before a batch norm; on a GPU products in TF32, factors of weight gradients in bfloat16
mpad, 2 (20b9e8e): dropout by word (all nodes of a word share a mask within a batch) on a GPU, too, as on a CPU
mpad-best, mpad-best-5, 3 (their linear part alone): potentials of words take what is learnt of their letters
mpad-best, mpad-best-5, 4: no part is trained on a validation part that the dataset has (SST; elsewhere nothing changed)
texting, 1 (cedf3d8): its gate is mpad's: on a GPU in TF32
lstm-grnn, hn-att, 1: sentences of more than 60 words are cut (Reuters, which has no full stops; BBCSport, IMDB,
    Subjectivity; elsewhere nothing has changed)
doc2vec, 1 (3f9c756): vectors are standardised, word vectors are learnt beside those of documents
doc2vec, 2: documents are shuffled before vectors are learnt
wmd, 1 (3f9c756): without stop words
fasttext, 1 (9a8aac4): lines are shuffled; learning rate and epochs are chosen on a tenth of the training documents
"""

from mpad.registry import REGISTRY

# By row, else by `Entry.kind`; all others: 0.
_RAISED = {"mpad": 2, "mpad-best": 4, "mpad-best-5": 4}
_RAISED |= dict.fromkeys(("texting", "lstm-grnn", "hn-att", "wmd", "fasttext"), 1)
_RAISED |= {"doc2vec": 2}


def engine_of(row: str) -> int:
    """The present engine of a table's row; ablations and recipes are rows of mpad."""
    entry = REGISTRY.get(row) or REGISTRY[row.split("-")[0]]
    return _RAISED.get(row, _RAISED.get(entry.kind, 0))
