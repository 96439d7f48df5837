from dataclasses import replace

from tests.paper.experiments.test_records import ONE

from mpad.paper.experiments import tables
from mpad.paper.experiments.summary import summarise
from mpad.paper.experiments.tables import count, counted, margins, reproduced

ALL = [replace(ONE, seed=seed) for seed in range(5)]
CLIQUE = [replace(one, model="mpad-clique", validation_accuracy=0.95, test_accuracy=0.7) for one in ALL]


def cells(table):
    lines = [line for line in table.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def test_table_2_has_every_row_beside_the_printed_ones():
    table = cells(tables.table_2(summarise([*ALL, *CLIQUE])))
    assert table["cnn, printed"]["Polarity"] == "81.50" and table["wmd, printed"]["IMDB"] == "OOM"
    assert table["MPAD, printed"]["TREC"] == "95.60" and table["MPAD, `authors`"]["TREC"] == "80.00 ± 3.51"
    assert table["MPAD, `authors`"]["Polarity"] == "" and table["TF-IDF + linear SVM"]["TREC"] == ""


def test_the_best_variant_is_chosen_on_validation():
    table = cells(tables.table_2(summarise([*ALL, *CLIQUE])))
    assert table["MPAD-clique, `authors`"]["TREC"].endswith("\\*")  # worse on test
    assert not table["MPAD, `authors`"]["TREC"].endswith("\\*")


def test_a_cell_that_is_run_in_part_says_so_and_is_not_chosen():
    table = cells(tables.table_2(summarise([*ALL, *CLIQUE[:3]])))
    assert "(3 runs)" in table["MPAD-clique, `authors`"]["TREC"]
    assert table["MPAD, `authors`"]["TREC"].endswith("\\*")


BEST = [replace(one, model="mpad-best-5", preset="best", test_accuracy=0.97) for one in ALL]


def test_the_overview_has_the_default_beside_the_paper():
    row = cells(tables.overview(summarise([*ALL, *BEST])))["TREC"]
    assert row["MPAD, `best`, 5 averaged"].startswith("97.00") and row["MPAD, `authors`"].startswith("80.00")
    assert row["printed"] == "95.60" and row["largest printed, any model"] == "95.60" and row["linear stack"] == ""


def test_the_default_is_compared_with_the_largest_printed_number():
    table = cells(tables.table_2(summarise([*ALL, *BEST])))
    assert table["largest printed number"]["IMDB"] == "92.50" and table["largest printed number"]["TREC"] == "95.60"
    assert table["`best`, 5 averaged, above it (standard errors)"]["TREC"].startswith("+1.40 (+")
    certain = [replace(one, dataset="bbcsport", fold=fold, test_accuracy=1.0) for fold, one in enumerate(BEST)]
    table = cells(tables.table_2(summarise(certain)))
    assert table["`best`, 5 averaged, above it (standard errors)"]["BBCSport"] == "+0.28 (no spread)"
    assert "`best`, 5 averaged, above it (standard errors)" not in cells(tables.table_2(summarise(ALL)))


def test_table_3_has_nine_rows_and_the_baseline():
    table = cells(tables.table_3(summarise([replace(ONE, dataset="imdb", model="mpad-4mp")])))
    assert len(table) == 10 and table["MPAD 4MP"]["IMDB, printed"] == "91.30"
    assert table["MPAD 4MP"]["IMDB, `authors`"].startswith("80.00 ±")


def test_details_say_how_far_from_the_printed_number(tmp_path):
    found = summarise([ONE, replace(ONE, dataset="imdb"), replace(ONE, model="tfidf-svm", preset=None, tokenizer=None)])
    text = tables.details(found, [("trec", "mpad")])
    assert "| trec | mpad | authors | 1 | 90.00 | 80.00 ± 3.51 | 0.00 | 95.60 | -15.60 | -8.7 | 0 (now 2) |" in text
    assert "tfidf-svm" in text and "imdb" not in text


def test_tables_say_where_engines_are_old_or_mixed():
    note = tables.engine_note(summarise([replace(one, engine=2) for one in ALL]))
    assert "older one than today's: none. Mixed within a row: none. Mixed within a cell: none." in note
    other = replace(ONE, dataset="imdb", engine=1)
    note = tables.engine_note(summarise([*ALL[1:], replace(ONE, engine=2), other]))
    assert "today's: mpad `authors` 0, 1, 2 (now 2). Mixed within a row: mpad `authors`." in note
    assert "Mixed within a cell: mpad `authors` on trec." in note


def test_one_row_beside_another():
    svm = [replace(ONE, model="tfidf-svm", preset=None, tokenizer=None, test_accuracy=0.99)]
    row = cells(margins(summarise([*BEST, *svm])))["MPAD, `best`, 5 averaged, above TF-IDF + linear SVM"]
    assert list(row.values())[1:] == ["1", "0", "-2.00", "-2.00", "TREC -2.00"]


def test_how_much_of_print_is_reproduced():
    near = replace(ONE, dataset="trec", test_accuracy=0.95)  # 0.6 below print: within a standard error of 500 questions
    rows = cells(reproduced(summarise([near, replace(near, model="mpad-path"), replace(ONE, model="mpad-clique")])))
    assert list(rows["MPAD, `authors`"].values())[1:] == ["40", "3", "1", "2", "1", "0"]
    assert list(rows["baselines"].values())[2:] == ["0", "0", "0", "0", "0"]


def test_table_1_shows_differences_alone(small_data, tmp_path):
    count("trec", str(small_data), tmp_path)
    assert counted(tmp_path)["trec"]["kim"].training == 90
    table = cells(tables.table_1(tmp_path))
    trec = table["TREC"] if "TREC" in table else table["TREC (case kept)"]
    assert trec["training"] == "5,452 (90)" and table["Polarity"]["vocabulary"] == "18,777"
    assert table["Yelp2013"]["duplicates"] == "not here"


def test_everything_in_one_file(tmp_path):
    text = tables.write([ONE], tmp_path).read_text()
    assert "1 runs. Word vectors: some. Devices: cpu. Commits: abc." in text and "## Table 3" in text
    assert "There are no records yet" in tables.write([], tmp_path).read_text()
