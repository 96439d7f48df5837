"""`mpad serve` as a process: real sockets, and a stop that finishes what it began."""

import json
import signal
import socket
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn
from tests.server.conftest import running, until

from mpad.server.protocol import LimitedConfig, listen
from mpad.server.settings import Limits


def post(address, path, body, headers=None):
    request = urllib.request.Request(
        address + path, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)


def test_it_serves_several_models_and_stops_at_a_signal(folders):
    with running(folders[0], f"other={folders[1]}", "--quiet") as (address, process):
        assert address.startswith("http://127.0.0.1:")
        assert post(address, "/predict", {"texts": "an apple", "model": "other"})["model"] == "other"
        process.send_signal(signal.SIGTERM)
        assert process.wait(1200) in (0, -signal.SIGTERM)


def test_a_stop_finishes_what_it_began(folders):
    with running(folders[0], "--quiet") as (address, process):
        post(address, "/explain", {"text": "warm up"})
        found = []
        long = {"text": " ".join(f"word{k} apple" for k in range(1500)), "method": "occlusion"}
        asking = threading.Thread(target=lambda: found.append(post(address, "/explain", long)))
        asking.start()
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGTERM)
        asking.join(1200)
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


def connect(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=200)


HALF = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"POST /predict HT", HALF])
def test_a_request_that_does_not_come_is_given_up(folders, sent):
    with running(folders[0], "--quiet", "--request-timeout", "1") as (address, _), connect(address) as connection:
        connection.sendall(sent)
        answer = connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 408 ") and b"not there within 1 seconds" in answer
        assert connection.recv(1000) == b""
        assert post(address, "/predict", {"texts": "a"})["predictions"]


async def send_much(scope, receive, send):
    """Answer with more than the buffers of a socket hold, in one piece."""
    size = 30 << 20
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    await send({"type": "http.response.body", "body": bytes(size)})


def test_a_response_that_nobody_reads_is_given_up():
    (listening,) = listen("127.0.0.1", 0)
    config = LimitedConfig(send_much, Limits(seconds=1), log_level="error", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        assert until(lambda: server.started)
        with socket.create_connection(listening.getsockname()) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert until(lambda: server.server_state.connections)
            assert until(lambda: not server.server_state.connections)
    finally:
        server.should_exit = True
        thread.join(1200)


def test_a_half_sent_request_does_not_hold_up_a_stop(folders):
    options = "--request-timeout", "3600", "--stop-within", "3600"
    with running(folders[0], "--quiet", *options) as (address, process), connect(address) as connection:
        connection.sendall(HALF)
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(1200) in (0, -signal.SIGTERM)


def test_a_stop_ends_within_its_time_whatever_runs(folders):
    with running(folders[0], "--quiet", "--stop-within", "1") as (address, process):
        post(address, "/explain", {"text": "warm up"})
        long = {"text": " ".join(f"word{k} apple" for k in range(4000)), "method": "occlusion"}

        def ask():
            with pytest.raises((urllib.error.HTTPError, OSError)):
                post(address, "/explain", long)

        asking = threading.Thread(target=ask)
        asking.start()
        threading.Event().wait(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(1200) in (0, -signal.SIGTERM)
        asking.join(1200)


def test_only_so_many_connections(folders):
    with running(folders[0], "--quiet", "--max-connections", "3") as (address, _):
        held = [connect(address) for _ in range(3)]
        threading.Event().wait(0.2)
        with connect(address) as one_more:
            assert one_more.recv(100).startswith(b"HTTP/1.1 503 ")
        for connection in held:
            connection.close()
        threading.Event().wait(0.2)
        assert post(address, "/predict", {"texts": "a"})["predictions"]


def test_a_client_that_leaves_is_one_line_in_the_log(folders):
    with running(folders[0]) as (address, process):
        with connect(address) as connection:
            connection.sendall(HALF)
            threading.Event().wait(0.2)
        line = json.loads(process.stderr.readline())
        assert line["status"] == 499
        assert post(address, "/predict", {"texts": "a"})["predictions"]
        assert json.loads(process.stderr.readline())["status"] == 200


def test_it_is_asked_for_by_its_own_name(folders):
    with running(folders[0], "--quiet", "--allow-host", "my-machine") as (address, _):
        for name in ("localhost", "127.0.0.1:80", "[::1]:80", "my-machine:99"):
            assert post(address, "/predict", {"texts": "a"}, {"host": name})["predictions"]
        others = "evil.example localhost.evil.example [::2] [::1].evil.com [::1]evil localhost:80@evil.com"
        for name in (*others.split(), "localhost:", ""):
            with pytest.raises(urllib.error.HTTPError, match="421"):
                post(address, "/predict", {"texts": "a"}, {"host": name})


def test_a_port_that_is_taken_is_told_in_our_words(folders, capsys):
    from mpad.cli.main import main

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.MonkeyPatch.context() as patch:
        port = str(taken.getsockname()[1])
        patch.setattr("sys.argv", ["mpad", "serve", folders[0], "--port", port])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        f"mpad: port {port} of 127.0.0.1 cannot be listened on: another program uses it; choose another by --port\n"
    )


def test_headers_have_an_end(folders):
    with running(folders[0], "--quiet") as (address, _):
        for head in (b"x: " + b"a" * 200_000, b"x: y\r\n" * 50_000 + b"\r\n"):
            with connect(address) as connection:
                connection.sendall(b"GET /info HTTP/1.1\r\nhost: localhost\r\n" + head)
                assert connection.recv(100).startswith(b"HTTP/1.1 431 ")
        assert post(address, "/predict", {"texts": "a"})["predictions"]


def test_a_flood_of_requests_that_nobody_reads(folders):
    def megabytes(process):
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) // 1024

    with running(folders[0], "--quiet") as (address, process):
        before = megabytes(process)
        with connect(address) as connection, pytest.raises(OSError):  # it is cut off
            for _ in range(100):
                connection.sendall(b"GET /info HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3_000)
            threading.Event().wait(1)
            connection.sendall(b"x")
            threading.Event().wait(0.2)
            connection.sendall(b"x")
        assert post(address, "/predict", {"texts": "a"})["predictions"]
        assert megabytes(process) < before + 60


def test_a_few_requests_may_wait(folders):
    with running(folders[0], "--quiet") as (address, _), connect(address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 5)
        answers = b""
        while answers.count(b"HTTP/1.1 200") < 5:
            answers += connection.recv(10_000)


def test_two_names_at_once_are_none(folders):
    with running(folders[0], "--quiet") as (address, _), connect(address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: evil.example\r\nhost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_torch_is_loaded_by_the_first_explanations_at_once_and_by_nothing_before(folders):
    with running(folders[0], "--quiet") as (address, process):
        post(address, "/predict", {"texts": "an apple"})
        assert "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text()
        asked = [("/explain", {"text": "an apple"}), ("/what-if", {"text": "an apple"})] * 3
        with ThreadPoolExecutor(len(asked)) as pool:
            answers = list(pool.map(lambda one: post(address, *one), asked))
        assert all("model" in answer for answer in answers)
        assert "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()
