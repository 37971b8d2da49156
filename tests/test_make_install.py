"""`make install` and `make uninstall`, with a uv that pretends; `tools/routes.py` goes the whole way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What it installs is a `deepwork` that notes how it was called.
UV = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
for last; do :; done
case "$1 $2" in
"venv --quiet") mkdir -p "$last/bin" && ln -s "$(command -v python3)" "$last/bin/python" ;;
"pip install")
    [ -e "$(dirname "$0")/broken" ] && echo "no network" >&2 && exit 2
    [ -e "$(dirname "$0")/interrupted" ] && echo $$ > "$(dirname "$0")/installer" && kill -INT $PPID && exec sleep 60
    [ -e "$(dirname "$0")/slow" ] && sleep 1
    while [ "$1" != --python ]; do shift; done
    printf '#!/bin/sh\\necho "deepwork $*"\\n' > "$(dirname "$2")/deepwork"
    chmod +x "$(dirname "$2")/deepwork" ;;
esac
"""

# Removes what the command needs, and is interrupted before the command itself would go.
INTERRUPTED_REMOVAL = """\
import pathlib, shutil
def rmtree(folder, **options):
    command = pathlib.Path(folder, "bin/deepwork")
    if command.exists():
        command.write_text("#!/bin/sh\\nexit 1\\n")
    raise KeyboardInterrupt
shutil.rmtree = rmtree
"""


def heed_interruptions():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Machine:
    """An empty home, a uv that pretends, and a copy of the tool beside small sources."""

    def __init__(self, folder):
        self.home, self.programs, self.checkout = (folder / name for name in ("home", "programs", "checkout"))
        for path in (self.home, self.programs, self.checkout / "tools", self.checkout / "src/deepwork"):
            path.mkdir(parents=True)
        self.write_program("uv", UV)
        (self.programs / "python3").symlink_to(sys.executable)
        for name in ("environment.py", "install.py"):
            shutil.copy(ROOT / "tools" / name, self.checkout / "tools")
        (self.checkout / "pyproject.toml").write_text("[project]\n")
        plugin = self.checkout / "plugins/deepwork_sql"
        plugin.mkdir(parents=True)
        (plugin / "pyproject.toml").write_text("[project]\n")
        self.path, self.variables = [self.programs], {}

    def write_program(self, name, text, folder=None):
        file = (folder or self.programs) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def start(self, *arguments):
        path = os.pathsep.join([*map(str, self.path), "/usr/bin", "/bin"])
        environment = {"HOME": str(self.home), "PATH": path, "SHELL": "/bin/zsh", **self.variables}
        command = [sys.executable, self.checkout / "tools/environment.py", *arguments]
        # Where the tests run in the background of a shell, SIGINT is ignored, and so it would be here.
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, env=environment, preexec_fn=heed_interruptions, **pipes)

    def run(self, *arguments, code=0):
        process = self.start(*arguments)
        printed = process.communicate()[0]
        assert process.returncode == code, printed
        return printed

    def calls(self):
        return (self.programs / "calls").read_text().splitlines()

    def files(self):
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))

    @property
    def link(self):
        return self.home / ".local/bin/deepwork"

    @property
    def environment(self):
        return self.home / ".local/share/deepwork/environment"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_the_core_and_all_plugins_go_into_one_environment_by_their_folders(machine):
    printed = machine.run("install")
    install = machine.calls()[-1].split()
    plugin = f"{machine.checkout}/plugins/deepwork_sql"
    assert install[-3:] == [str(machine.checkout), plugin, f"{plugin}[postgresql]"]
    assert f"linked     {machine.link}" in printed
    assert os.path.realpath(machine.link) == os.path.realpath(machine.environment / "bin/deepwork")


def test_an_old_python3_gives_way_to_one_that_uv_has(machine):
    machine.write_program("uv", '#!/bin/sh\n[ "$1 $2" = "python find" ] && echo /of/uv/python3.13\n')
    (machine.programs / "python3").unlink()
    machine.write_program("python3", "#!/bin/sh\nexit 1\n")
    environment = {"PATH": os.pathsep.join([str(machine.programs), "/usr/bin", "/bin"])}
    process = subprocess.run(["make", "-n", "install"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert "/of/uv/python3.13 tools/environment.py install" in process.stdout


def test_the_user_is_told_what_is_missing_on_path_and_of_completion(machine):
    printed = machine.run("install")
    assert f"Note: {machine.link.parent} is not on your PATH." in printed
    assert "deepwork completion zsh >> ~/.zshrc" in printed
    machine.path.insert(0, machine.link.parent)
    assert "PATH" not in machine.run("install")


def test_another_deepwork_that_stands_before_ours_is_named_and_stays(machine):
    foreign = machine.write_program("deepwork", "#!/bin/sh\necho 0.9\n")
    machine.path = [machine.programs, machine.link.parent]
    printed = machine.run("install")
    assert f"`deepwork` is {foreign}, which stands before {machine.link.parent}" in printed
    assert foreign.read_text() == "#!/bin/sh\necho 0.9\n"


def test_another_deepwork_in_place_of_the_link_is_refused_before_anything_is_made(machine):
    foreign = machine.write_program("deepwork", "#!/bin/sh\n", machine.link.parent)
    before = machine.files()
    assert f"{foreign} is another program" in machine.run("install", code=1)
    assert machine.files() == before


def test_a_second_run_changes_nothing(machine):
    machine.run("install")
    before = {name: (machine.home / name).lstat().st_mtime_ns for name in machine.files()}
    assert "unchanged" in machine.run("install")
    assert {name: (machine.home / name).lstat().st_mtime_ns for name in machine.files()} == before
    assert len(machine.calls()) == 2  # venv and pip of the first run


def test_changed_sources_are_installed_over_the_older_ones(machine):
    machine.run("install")
    (machine.checkout / "src/deepwork/new.py").write_text("")
    assert "installed" in machine.run("install")
    assert "--reinstall-package=deepwork " in f"{machine.calls()[-1]} "
    assert [call.split()[0] for call in machine.calls()] == ["venv", "pip", "pip"]


def test_a_failed_installation_says_so_and_the_next_one_mends_it(machine):
    (machine.programs / "broken").touch()
    printed = machine.run("install", code=1)
    assert "no network" in printed
    assert "failed" in printed
    assert not machine.link.exists()
    (machine.programs / "broken").unlink()
    machine.run("install")
    assert machine.link.exists()


def test_uninstall_takes_deepwork_out_of_clients_first_and_leaves_nothing(machine):
    machine.run("install")
    printed = machine.run("uninstall", "--data")
    assert "deepwork uninstall --data" in printed
    assert machine.files() == [".local", ".local/bin", ".local/share"]
    assert machine.run("uninstall") == ""


def test_data_that_a_finished_uninstall_has_left_are_named(machine):
    machine.run("install")
    machine.run("uninstall")
    data = machine.home / ".local/state/deepwork"
    data.mkdir(parents=True)
    assert f"remove your data with: rm -r {data}" in machine.run("uninstall", "--data")
    assert data.exists()


def test_uninstall_keeps_the_environment_while_clients_still_start_it(machine):
    machine.run("install")
    machine.write_program("deepwork", "#!/bin/sh\nexit 1\n", machine.environment / "bin")
    assert "the environment stays" in machine.run("uninstall", code=1)
    assert machine.link.exists()


def test_uninstall_leaves_another_program_alone(machine):
    foreign = machine.write_program("deepwork", "#!/bin/sh\n", machine.link.parent)
    machine.run("uninstall")
    assert foreign.exists()


def test_a_folder_for_the_link_that_cannot_be_made_is_named_before_anything_is_installed(machine):
    machine.home.joinpath(".local").write_text("")
    assert machine.run("install", code=1) == f"Error: {machine.link.parent}: Not a directory\n"
    assert not (machine.programs / "calls").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_for_the_link_that_cannot_be_written_is_named_before_anything_is_installed(machine):
    machine.link.parent.mkdir(parents=True, mode=0o555)
    assert f"{machine.link.parent}, where the link to deepwork belongs, cannot be" in machine.run("install", code=1)
    assert not (machine.programs / "calls").exists()


def test_an_interrupted_upgrade_counts_for_nothing_and_the_next_one_installs(machine):
    machine.run("install")
    source = machine.checkout / "src/deepwork/new.py"
    source.write_text("")
    (machine.programs / "interrupted").touch()
    printed = machine.run("install", code=130)
    assert "Traceback" not in printed
    assert "Interrupted. `make install` again goes on." in printed
    with pytest.raises(ProcessLookupError):
        os.kill(int((machine.programs / "installer").read_text()), 0)
    (machine.programs / "interrupted").unlink()
    source.unlink()  # back at the older sources; the newer ones may have replaced some
    assert "installed  " in machine.run("install")


def test_an_environment_without_pip_gets_one_where_uv_is_gone(machine):
    """uv has made it, or `python -m venv` was interrupted."""
    machine.run("install")
    (machine.programs / "uv").unlink()
    python = machine.environment / "bin/python"
    python.unlink()
    asked = machine.environment / "asked"
    machine.write_program("python", f'#!/bin/sh\necho "$@" >> {asked}\n[ "$2" != pip ]\n', machine.environment / "bin")
    (machine.checkout / "src/deepwork/new.py").write_text("")
    assert "-m pip install" in machine.run("install", code=1)
    assert asked.read_text().splitlines()[1:3] == ["-m pip --version", "-m ensurepip"]


def test_an_uninstall_that_was_interrupted_is_finished_by_the_next_one(machine):
    """Not refused because what is left of the command does not start any more."""
    machine.run("install")
    interrupting = machine.write_program("sitecustomize.py", INTERRUPTED_REMOVAL, machine.home.parent / "python")
    machine.variables["PYTHONPATH"] = str(interrupting.parent)
    assert "Interrupted. `make uninstall` again goes on." in machine.run("uninstall", code=130)
    assert (machine.environment / "bin").exists()
    machine.variables.clear()
    machine.run("uninstall")
    assert machine.files() == [".local", ".local/bin", ".local/share"]


def test_two_at_once_install_once(machine):
    (machine.programs / "slow").touch()
    first, second = (machine.start("install") for _ in range(2))
    printed = first.communicate()[0] + second.communicate()[0]
    assert (first.returncode, second.returncode) == (0, 0), printed
    assert (printed.count("installed  "), printed.count("unchanged  "), printed.count("linked  ")) == (1, 1, 1)
    assert [call.split()[0] for call in machine.calls()] == ["venv", "pip"]


def test_the_next_step_names_the_command_by_its_place_where_another_stands_before_it(machine):
    assert f"Next, in the folder of your project: {machine.link} init" in machine.run("install")
    machine.path.insert(0, machine.link.parent)
    assert "Next, in the folder of your project: deepwork init" in machine.run("install")
