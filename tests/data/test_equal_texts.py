import numpy as np

from mpad.data.equal_texts import Copies, count_copies, one_per_group, text_groups, text_hashes


def test_case_white_space_and_unicode_forms_do_not_matter():
    texts = ["A good  film", "a good film\n", "caf\u00e9", "other", "cafe\u0301", "A GOOD FILM"]
    assert text_groups(texts).tolist() == [0, 0, 1, 2, 1, 0]
    hashes = text_hashes(texts)
    assert hashes[0] == hashes[1] == hashes[5] != hashes[3] and hashes[2] == hashes[4]


def test_copies_and_conflicts():
    groups = np.array([0, 1, 0, 2, 1, 0])
    assert count_copies(groups, np.array([0, 1, 0, 1, 0, 0])) == Copies(documents=3, conflicts=1)
    assert count_copies(groups, np.eye(2)[[0, 1, 0, 1, 0, 0]]) == Copies(documents=3, conflicts=1)
    assert count_copies(groups[:0], np.zeros(0, int)) == Copies(0, 0)


def test_one_document_per_group_in_order():
    first, place = one_per_group(np.array([7, 3, 7, 5]), 4)
    assert first.tolist() == [0, 1, 3] and place.tolist() == [0, 1, 0, 2]
    assert one_per_group(None, 3)[1].tolist() == [0, 1, 2]
