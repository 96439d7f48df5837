"""On a real standalone Spark cluster on loopback: a master, two workers, an executor killed in the middle."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from mpad import inference
from mpad.errors import InputError
from mpad.scale import Predictor

pytestmark = [pytest.mark.scale, pytest.mark.filterwarnings("ignore")]
pyspark = pytest.importorskip("pyspark", reason="needs pyspark: pip install 'pyspark>=4' 'pandas<3'")
if shutil.which("java") is None:
    pytest.skip("needs Java: apt-get install openjdk-17-jre-headless", allow_module_level=True)

HOME = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    work, port = tmp_path_factory.mktemp("spark"), free_port()
    source = str(Path(sys.modules["mpad"].__file__).parents[1])
    environment = {**os.environ, "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "SPARK_NO_DAEMONIZE": "1"}
    master = f"spark://127.0.0.1:{port}"
    deploy = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy"]

    def start(name, *arguments):
        log = (work / f"{len(started)}.log").open("w")
        command = [deploy[0], f"{deploy[1]}.{name}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=work))
        log.close()

    started: list[subprocess.Popen] = []
    try:
        start("master.Master", "--port", str(port))
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        for k in range(2):
            start("worker.Worker", "-c", "1", "-m", "1G", "-d", str(work / f"worker{k}"), master)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executorEnv.PYTHONPATH": source,
            "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
            "spark.log.level": "OFF",
        }
        builder = pyspark.sql.SparkSession.builder.master(master).appName("mpad")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(1200)


@pytest.fixture
def frame(spark, fruit_corpus):
    texts = fruit_corpus[0]
    rows = [(k, texts[k % len(texts)], 2**60 + k if k % 2 else None) for k in range(3000)]
    return spark.createDataFrame(rows, "id bigint, text string, big bigint").repartition(6)


def test_score_adds_columns_and_leaves_the_others_as_they_are(model, frame, fruit_corpus):
    from mpad.scale.spark import score

    answered = score(frame, model, proba=True)
    assert answered.columns == ["id", "text", "big", "label", "probability", "p(fruit)", "p(tool)"]
    rows = sorted(answered.collect())
    assert [(row.id, row.text, row.big) for row in rows] == sorted(map(tuple, frame.collect()), key=lambda row: row[0])
    texts = [row.text for row in rows]
    assert [row.label for row in rows] == inference.load(model).predict(texts).tolist()
    assert np.allclose([row.probability for row in rows], inference.load(model).predict_proba(texts).max(1))
    with pytest.raises(InputError, match="no column 'body' in this DataFrame .there are: id, text, big"):
        score(frame, model, text="body")


def test_a_udf_gives_a_struct(model, many, frame):
    from mpad.scale.spark import predict_udf, score

    rows = frame.withColumn("answer", predict_udf(model, top=2)("text")).select("text", "answer.*").collect()
    assert len(rows) == 3000 and rows[0].asDict().keys() == {
        "text", "label", "class 1", "probability 1", "class 2", "probability 2"
    }  # fmt: skip
    assert [row.label for row in rows] == inference.load(model).predict([row.text for row in rows]).tolist()
    tagged = score(frame, many).select("text", "label").collect()
    answers = inference.load(many)
    assert [row.label for row in tagged] == answers.labels.to_names(answers.predict([row.text for row in tagged]))


def test_a_predictor_goes_into_map_in_pandas_as_it_is(model, frame):
    predict = Predictor(model)
    columns = "text string, label string, probability double"
    answered = frame.select("text").mapInPandas(lambda batches: map(predict, batches), columns)
    rows = answered.collect()
    assert [row.label for row in rows] == inference.load(model).predict([row.text for row in rows]).tolist()


def executors(port: int) -> list[int]:
    """The processes of the executors of the driver with that port."""
    result = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if "CoarseGrainedExecutorBackend" in line and f":{port} " in line:
                result.append(int(file.parts[2]))
    return result


def test_a_killed_executor_costs_nothing(model, spark, fruit_corpus, tmp_path):
    from mpad.scale.spark import score

    texts = fruit_corpus[0]
    parts, each = 12, 8_000
    rows = spark.range(parts * each, numPartitions=parts)
    words = pyspark.sql.functions.array([pyspark.sql.functions.lit(text) for text in texts])
    place = (pyspark.sql.functions.col("id") % len(texts)).cast("int")
    frame = rows.withColumn("text", pyspark.sql.functions.get(words, place))
    context, failed = spark.sparkContext, []
    thread = threading.Thread(target=lambda: score(frame, model).write.parquet(str(tmp_path / "out")))
    thread.start()
    tracker, victim = context.statusTracker(), None
    while thread.is_alive() and victim is None:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and info.numTasks == parts and 1 <= info.numCompletedTasks <= parts - 3:
                victim = executors(int(context.getConf().get("spark.driver.port")))[0]
                os.kill(victim, signal.SIGKILL)
                failed.append(info.numCompletedTasks)
                break
        time.sleep(0.02)
    thread.join(180)
    assert failed, "the job ended before an executor could be killed"
    answered = spark.read.parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [row.id for row in answered] == list(range(parts * each))
    labels = inference.load(model).predict(texts).tolist()
    assert all(row.text == texts[row.id % 120] and row.label == labels[row.id % 120] for row in answered)
