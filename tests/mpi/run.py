#!/usr/bin/env python3
"""Runs an MPI program over a libfabric provider, on this host or on two that a cable joins (network
namespaces, which need the administrator), and looks that nothing is left behind.

  run.py --mpirun 'build/release/bin/via mpirun' -n 4 [--hosts] PROGRAM [ARG...]

Ends with the program's result; 1: it failed, hung or left something; 77: skipped, standard output
says why. --killed: the program kills one of its ranks, and the job must end by itself, with MPI's
own message, soon. --mca NAME=VALUE: a parameter of Open MPI more. --witness FILE: libvia-witness.so
goes before every rank, and what they saw is compared (tests/witness).
"""

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "witness"))
from compare import compare  # noqa: E402

SKIPPED = 77
KILLED_SECONDS_MAX = 15  # from the death of a rank to the end of mpirun
MARK = "VIA_MPI_RUN"     # in the environment of every process of the job


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--provider", default="tcp;ofi_rxm")
    parser.add_argument("--provider-path", help="where the provider's file is")
    parser.add_argument("--device", help="FI_VIA_DEVICE of all ranks")
    parser.add_argument("--hosts", action="store_true", help="half of the ranks on another host")
    parser.add_argument("--killed", action="store_true", help="a rank dies; the job must end")
    parser.add_argument("--witness", metavar="FILE", help="libvia-witness.so, before every rank")
    parser.add_argument("--mca", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--timeout", type=float, default=120, help="seconds")
    parser.add_argument("--mpirun", default="mpirun.openmpi", help="or: 'via mpirun'")
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def launcher(command):
    """The words of the command that starts the ranks; None if there is no such program."""
    words = shlex.split(command)
    return words if shutil.which(words[0]) else None


def quiet(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


class Hosts:
    """Two network namespaces, `mpt<pid>a` and `...b`, and a cable, an interface via0 in each."""

    def __init__(self, provider):
        self.names = [f"mpt{os.getpid()}{letter}" for letter in "ab"]
        self.more = range(44, 47) if provider.startswith("tcp") else []

    def __enter__(self):
        first, second = self.names
        made = all(quiet("ip", "netns", "add", name) and
                   quiet("ip", "-n", name, "link", "set", "lo", "up") for name in self.names)
        made = made and quiet("ip", "link", "add", "via0", "netns", first, "type", "veth",
                              "peer", "name", "via0", "netns", second)
        for last, name in enumerate(self.names, 1):
            made = made and quiet("ip", "-n", name, "address", "add", f"10.97.43.{last}/24",
                                  "dev", "via0")
            # An IPv6 address would come a second later, and ranks would choose differently.
            made = made and quiet("ip", "-n", name, "link", "set", "via0", "addrgenmode", "none")
            made = made and quiet("ip", "-n", name, "link", "set", "via0", "up")
            made = made and all(self.add_interface(name, last, network) for network in self.more)
        if not made:
            self.__exit__()
            print("skipped: no network namespaces here (they need the administrator, and ip)")
            sys.exit(SKIPPED)
        return self

    @staticmethod
    def add_interface(name, last, network):
        """Open MPI deals out a provider's interfaces to the ranks, and those of tcp end with the
        loopback interface: so there are more, whose addresses are reached over the cable."""
        interface = f"more{network}"
        return (quiet("ip", "-n", name, "link", "add", interface, "type", "bridge") and
                quiet("ip", "-n", name, "link", "set", interface, "addrgenmode", "none", "up") and
                quiet("ip", "-n", name, "address", "add", f"10.97.{network}.{last}/32",
                      "dev", interface) and
                quiet("ip", "-n", name, "route", "add", f"10.97.{network}.0/24", "dev", "via0"))

    def __exit__(self, *_):
        for name in self.names:
            quiet("ip", "netns", "delete", name)

    @staticmethod
    def inside(name):
        """Words before a command that is to run on that host."""
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c",
                'hostname "$0" && exec "$@"', name]

    def agent(self, folder):
        """A program in place of ssh: starts Open MPI's daemon on the other host."""
        path = os.path.join(folder, "agent")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nhost=$1\nshift\nexec ip netns exec \"$host\" unshare --uts "
                       "--mount sh -c 'hostname \"$0\" && mount -t tmpfs none /dev/shm && "
                       "exec sh -c \"$*\"' \"$host\" \"$@\"\n")
        os.chmod(path, 0o755)
        return path


def command_line(options, folder, hosts):
    line = launcher(options.mpirun)
    parameters = {"osc": "^ucx", "orte_base_help_aggregate": "0"}
    if line[-1] != "mpirun":
        line += ["--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        parameters |= {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": options.provider}
    if hosts:
        half = (options.n + 1) // 2
        # Each daemon would bind its first rank to the first processor, which they share.
        line += ["--bind-to", "none", "-H", ",".join(f"{name}:{half}" for name in hosts.names)]
        parameters["plm_rsh_agent"] = hosts.agent(folder)
        # Nor does it know that the other host's ranks need them, too: it would only spin.
        parameters["mpi_yield_when_idle"] = str(int(options.n > (os.cpu_count() or 1)))
        line = hosts.inside(hosts.names[0]) + line
    parameters |= dict(one.split("=", 1) for one in options.mca)
    for name, value in parameters.items():
        line += ["--mca", name, value]
    for name in (MARK, "XDG_RUNTIME_DIR", "FI_PROVIDER_PATH", "FI_VIA_DEVICE", "VIA_MPI_SECONDS",
                 "VIA_MPI_SEED"):
        if name in os.environ:
            line += ["-x", name]
    line += ["-np", str(options.n)]
    if options.witness:  # not before mpirun's own processes
        line += ["env", f"LD_PRELOAD={os.path.abspath(options.witness)}",
                 f"VIA_WITNESS={witness_folder(folder)}"]
    return in_own_memory(line + options.command)


def witness_folder(folder):
    return os.path.join(folder, "witness")


def check_witness(folder):
    faults, summary = compare(witness_folder(folder))
    print(summary)
    return faults


def in_own_memory(line):
    """With a /dev/shm of its own, so that what is left in it is ours; needs the administrator."""
    if not quiet("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"):
        return line
    return ["unshare", "--mount", "sh", "-c",
            'mount -t tmpfs none /dev/shm && "$@"; result=$?\n'
            'for one in $(ls -A /dev/shm); do echo "run.py: left in /dev/shm: $one"; done\n'
            'exit $result', "sh"] + line


def processes_left(mark):
    """Those that carry our mark, by their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(line, options):
    """Result, output and seconds from the word "killed" to the end."""
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as job:
        os.set_blocking(job.stdout.fileno(), False)
        output, deadline, killed_at = b"", time.monotonic() + options.timeout, None
        try:
            while job.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
                output += job.stdout.read() or b""
                if killed_at is None and b"killed\n" in output:
                    killed_at = time.monotonic()
        finally:  # who is told to end does not leave the job behind, nor wait for it
            hung, ended_at = job.poll() is None, time.monotonic()
            if hung:
                end(processes_left(os.environ[MARK]))
                end([job.pid])
        job.wait()
        output += job.stdout.read() or b""
    if hung:
        output += f"\nrun.py: not done after {options.timeout:g} s\n".encode()
    result = 1 if hung else job.returncode
    return result, output.decode(errors="replace"), ended_at - (killed_at or ended_at)


def wait_for_end(mark):
    """Until all processes of the job are gone, which mpirun kills and does not wait for; 5 s."""
    until = time.monotonic() + 5
    while processes_left(mark) and time.monotonic() < until:
        time.sleep(0.05)


def names_left(runtime):
    """Files and sockets in the runtime directory. Directories stay, and so do the links to those
    that users of one udp address share."""
    found = [os.path.join(path, name) for path, _, names in os.walk(runtime) for name in names]
    return [path for path in found
            if not (os.path.islink(path) and os.path.basename(path).startswith("udp-"))]


def left_behind(mark, output, runtime):
    """What is left after all had some time to go."""
    wait_for_end(mark)
    found = [f"process {pid}" for pid in processes_left(mark)]
    end(processes_left(mark))
    found += re.findall("^run.py: left in (/dev/shm: .*)$", output, re.M)
    return found + names_left(runtime)


def check_death(result, output, seconds):
    faults = []
    if result == 0:
        faults.append("the job ended well though a rank was killed")
    # Who is first says why the job ends: mpirun, or a rank that lost its peer. Open MPI 4.1 now and
    # then loses such words between its own processes, and says that instead.
    words = ("exited on signal 9", "MPI_ERRORS_ARE_FATAL", "orte/util/show_help.c")
    if not any(word in output for word in words):
        faults.append("neither mpirun nor MPI says that a rank was killed")
    if "Signal: Segmentation fault" in output:
        faults.append("one of the others crashed")
    if seconds > KILLED_SECONDS_MAX:
        faults.append(f"the job ended {seconds:.1f} s after the death")
    if not faults:
        print(f"the job ended {seconds:.2f} s after the death")
    return faults


def tidied_up(options, folder, hosts, mark, runtime):
    """The dead cannot tidy up, who comes next does, when they are really dead: mpirun does not wait
    for whom it kills, and whoever inherits them may take a second to notice."""
    options.command[-1] = "probes"
    for _ in range(4):
        wait_for_end(mark)
        time.sleep(1)
        result, output, _ = run(command_line(options, folder, hosts), options)
        sys.stdout.write(output)
        if result != 0 or not names_left(runtime):
            break
    return result, output


def play(options, folder, hosts):
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    os.mkdir(witness_folder(folder))
    os.environ |= {MARK: mark, "XDG_RUNTIME_DIR": runtime}
    if options.provider_path:
        os.environ["FI_PROVIDER_PATH"] = os.path.abspath(options.provider_path)
    if options.device:
        os.environ["FI_VIA_DEVICE"] = options.device
    result, output, seconds = run(command_line(options, folder, hosts), options)
    sys.stdout.write(output)
    faults = check_death(result, output, seconds) if options.killed else []
    if options.killed:
        result, output = tidied_up(options, folder, hosts, mark, runtime)
    if options.witness and result == 0:
        faults += check_witness(folder)
    faults += [f"left behind: {one}" for one in left_behind(mark, output, runtime)]
    for fault in faults:
        print(f"run.py: {fault}")
    return 1 if faults else result


def main():
    options = arguments()
    if options.command[:1] == ["--"]:
        options.command.pop(0)
    if not launcher(options.mpirun):
        print(f"skipped: there is no {options.mpirun}")
        sys.exit(SKIPPED)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="via-mpi-") as folder:
        if not options.hosts:
            sys.exit(play(options, folder, None))
        with Hosts(options.provider) as hosts:
            sys.exit(play(options, folder, hosts))


if __name__ == "__main__":
    main()
