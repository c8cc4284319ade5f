"""shortlist.torch without PyTorch says what to install; shortlist itself never loads PyTorch."""

import subprocess
import sys


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_without_torch_the_message_names_the_extra():
    done = run("import sys; sys.modules['torch'] = None; import shortlist.torch")
    assert done.returncode != 0
    assert "ImportError: shortlist.torch needs PyTorch" in done.stderr
    assert "pip install 'shortlist[torch]'" in done.stderr


def test_shortlist_does_not_load_torch():
    done = run("import sys, shortlist; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0
