import numpy as np
import pytest
from sklearn.svm import SVC

from mpad.errors import InputError
from mpad.paper import zoo


def test_the_kernel_of_two_small_graphs_worked_out_by_hand():
    """a – b – c has paths ab, bc of length 1 and ac of length 2 (each way); a – b shares ab and both words."""
    model = zoo.make("spgk", depth=2, C=1.0).fit(["a b c", "a b"], [0, 1])
    kernel = (model.paths_ @ model.paths_.T).toarray()
    long, short = 3 + 2 * (1 + 1 + 0.25), 2 + 2 * 1
    assert kernel[0, 1] == pytest.approx((2 + 2) / (long * short) ** 0.5)
    assert np.allclose(np.diag(kernel), 1)
    direct = zoo.make("spgk", depth=1, C=1.0).fit(["a b c", "a b"], [0, 1])
    assert (direct.paths_ @ direct.paths_.T).toarray()[0, 1] == pytest.approx(4 / (7 * 4) ** 0.5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_are_those_of_the_svm(n_classes):
    generator = np.random.default_rng(0)
    labels = [k % n_classes for k in range(60)]
    texts = [" ".join(f"w{v}" for v in [*generator.integers(0, 9, 6), 20 + label]) for label in labels]
    model = zoo.make("spgk", C=10.0).fit(texts[:45], labels[:45])
    kernel = (model.paths_ @ model.paths_.T).toarray()
    svm = SVC(C=10.0, kernel="precomputed").fit(kernel, labels[:45])
    asked = (model._paths(texts[45:]) @ model.paths_.T).toarray()
    assert model.predict(texts[45:]).tolist() == svm.predict(asked).tolist()


def test_a_matrix_that_would_not_fit_is_refused_before_it_is_made():
    with pytest.raises(InputError, match=r"2,000 documents takes 0.03 GB; gigabytes=0.01 allows less"):
        zoo.make("spgk", gigabytes=0.01).fit([f"w{k}" for k in range(2000)], [k % 2 for k in range(2000)])
