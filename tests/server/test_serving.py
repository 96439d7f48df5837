"""`mpad serve` as a process: real sockets, and a stop that finishes what it began."""

import json
import signal
import socket
import threading
import urllib.error
import urllib.request

import pytest
from tests.server.conftest import running


def post(address, path, body, headers=None):
    request = urllib.request.Request(
        address + path, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_it_serves_several_models_and_stops_at_a_signal(folders):
    with running(folders[0], f"other={folders[1]}", "--quiet") as (address, process):
        assert address.startswith("http://127.0.0.1:")
        assert post(address, "/predict", {"texts": "an apple", "model": "other"})["model"] == "other"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_stop_finishes_what_it_began(folders):
    with running(folders[0], "--quiet") as (address, process):
        post(address, "/explain", {"text": "warm up"})
        found = []
        long = {"text": " ".join(f"word{k} apple" for k in range(1500)), "method": "occlusion"}
        asking = threading.Thread(target=lambda: found.append(post(address, "/explain", long)))
        asking.start()
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGTERM)
        asking.join(60)
        assert found and found[0]["method"] == "occlusion"


def test_the_key_comes_from_a_file_and_lines_go_to_the_log(folders, tmp_path):
    key = tmp_path / "key"
    key.write_text("sesame\n")
    with running(folders[0], "--api-key-file", str(key)) as (address, process):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            post(address, "/predict", {"texts": "a"})
        assert post(address, "/predict", {"texts": "a"}, {"x-api-key": "sesame"})["predictions"]
        lines = [json.loads(process.stderr.readline()) for _ in range(2)]
        assert [line["status"] for line in lines] == [401, 200]


def test_rubbish_on_the_socket_does_not_end_it(folders):
    with running(folders[0], "--quiet") as (address, _):
        host, port = address.removeprefix("http://").split(":")
        for rubbish in (
            b"\0\xff\r\n\r\n",
            b"POST /predict HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
        ):
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(rubbish)
                answer = connection.recv(100)
                assert answer.startswith(b"HTTP/1.1 4") or not answer
        assert post(address, "/predict", {"texts": "a"})["predictions"]


def test_what_cannot_be_served_is_told(tmp_path, folders, capsys):
    from mpad.cli.main import main

    for arguments, said in (
        ([str(tmp_path / "nothing")], "no such folder"),
        ([folders[0], "--api-key-file", str(tmp_path / "none")], "No such file"),
        ([folders[0], "--max-body", "0"], "limit of body"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["mpad", "serve", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == 1 and said in capsys.readouterr().err
