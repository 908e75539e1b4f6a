"""How each side of a comparison is measured once: our library and the reference by fabric_bench, bare sockets and the floors
by it too, UCX by its ucx_perftest. All answer with cells: (work, size, median, best, unit, line before, after, why not)."""
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

from rows import in_bytes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SUPPORT = HERE.parent / "support"
WORK = ROOT / "target" / "bench"


def build():
    """Compiles fabric_bench against the headers of this tree, if a source is newer."""
    program, sources = WORK / "fabric_bench", sorted(HERE.glob("*.[ch]"))
    sources += [SUPPORT / name for name in ("ends.c", "ends.h", "die.h")]
    if not program.exists() or any(s.stat().st_mtime > program.stat().st_mtime for s in sources):
        WORK.mkdir(parents=True, exist_ok=True)
        cc = os.environ.get("CC", "cc").split()
        flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", f"-I{ROOT}/include", f"-I{SUPPORT}"]
        units = [str(s) for s in sources if s.suffix == ".c"]
        subprocess.run([*cc, *flags, "-o", str(program), *units, "-ldl", "-lpthread"], check=True)
    return program


def fetched(name):
    """The folder of something that abi-tests/real fetches; None, and said why, if it cannot be had."""
    done = subprocess.run([HERE.parent / "real", name], stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


class Left:
    """The C library's files in /dev/shm: those of processes that died while something ran are removed after it."""

    def __enter__(self):
        self.before = self.names()

    def __exit__(self, *_):
        for name in self.names() - self.before:
            if self.is_dead(name.split(":")[0]):
                Path("/dev/shm", name).unlink(missing_ok=True)

    @staticmethod
    def is_dead(pid):
        try:
            os.readlink(f"/proc/{pid}/exe")
        except FileNotFoundError:  # also of one that nobody has waited for yet
            return True
        except OSError:
            pass
        return False

    @staticmethod
    def names():
        return {name for name in os.listdir("/dev/shm") if re.fullmatch(r"\d+:\d+:\d+", name)}


# The kernel stops what runs before all others for 50 ms of each second (sched_rt_runtime_us). A median does not see that,
# but a mean does.
ALONE, NEARLY_ALONE = ["chrt", "--rr", "1"], ["nice", "-n", "-20"]


def command_of(settings, command, alone=ALONE):
    return [*(alone if settings.alone else []), *map(str, command)]


def run(settings, command, env, alone=ALONE):
    """Output and why it ended badly, which it also does when it takes too long."""
    with Left():
        process = subprocess.Popen(command_of(settings, command, alone), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        try:
            out, err = process.communicate(timeout=settings.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            return out, f"did not end in {settings.limit} s"
    if process.returncode == 0:
        return out, None
    said = [line for line in err.splitlines() if line.strip()]
    return out, (said[-1] if said else f"ended with {process.returncode}") if process.returncode != 3 else "has no such provider"


class Fabric:
    """fabric_bench on a libfabric.so.1, or on "socket" or "floor"."""

    def __init__(self, program, library, provider, settings):
        self.program, self.library, self.provider, self.settings = program, library, provider, settings
        # Nothing of the caller's settings, and no plug-ins, may reach the library.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("FI_")} | {"FI_PROVIDER_PATH": "/none"}

    def measure(self, work, sizes=()):
        s = self.settings
        # Memory is touched before it is used, which takes its time.
        largest = max(sizes, default=s.largest) if in_bytes(work) else 4096
        command = [self.program, "-p", self.provider, "-m", max(largest, 4096), "-r", s.repetitions, "-t", s.seconds, "-w", work]
        if work.startswith("threads-"):
            command.append("-s")
        out, why = run(s, [*command, self.library], self.env)
        cells = []
        for line in out.splitlines():
            work, size, median, rest = line.split(" ", 3)
            if median == "-":
                cells.append((work, int(size), None, None, None, None, None, rest))
            else:
                best, unit, *lines = rest.split()
                before, after = (None if t == "-" else float(t) for t in lines)
                cells.append((work, int(size), float(median), float(best), unit, before, after, ""))
        return cells, why


def line_now(program, settings):
    """What a cache line takes now, in ns."""
    out, why = run(settings, [program, "-r", "5", "-t", "0.0005", "-w", "floor-line", "floor"], os.environ)
    return float(out.split()[3]) if not why else None


class Ucx:
    """ucx_perftest of Debian's ucx-utils, over posix and cma, or tcp. Its memory is such as processes can share."""

    TESTS = {  # our work: its test, options, unit
        "latency": ("tag_lat", "", "ns"),
        "rate": ("tag_bw", "", "M/s"),
        "rate-steady": ("tag_bw", "", "M/s"),
        "bandwidth": ("tag_bw", "", "GB/s"),
        "bandwidth-steady": ("tag_bw", "", "GB/s"),
        "put-latency-shared": ("ucp_put_lat", "", "ns"),
        "rma-read-shared": ("ucp_get", "-O 1", "ns"),
        "rma-read-rate-shared": ("ucp_get", "", "M/s"),
        "rma-read-bandwidth-shared": ("ucp_get", "", "GB/s"),
        "rma-write-rate-shared": ("ucp_put_bw", "", "M/s"),
        "rma-inject-rate-shared": ("ucp_put_bw", "", "M/s"),
        "rma-write-bandwidth-shared": ("ucp_put_bw", "", "GB/s"),
        "fetch-add-shared": ("ucp_fadd", "-O 1", "ns"),
        "fetch-add-rate-shared": ("ucp_fadd", "", "M/s"),
        "compare-swap-shared": ("ucp_cswap", "-O 1", "ns"),
        "atomic-add-rate-shared": ("ucp_add", "", "M/s"),
    }
    TIMES = 3  # each test, of which the median and the best count

    def __init__(self, program, folder, provider, settings):
        self.floor, self.settings = program, settings
        self.perftest = folder / "usr/bin/ucx_perftest"
        libraries = next(folder.glob("usr/lib/*/libucp.so.0")).parent
        tls = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"} if "tcp" in provider else {"UCX_TLS": "posix,cma"}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("UCX_")} | tls | {
            "LD_LIBRARY_PATH": str(libraries), "UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_LOG_LEVEL": "error"}
        self.bytes_a_second = 2e9 if "tcp" in provider else 8e9
        self.least = 8e-6 if "tcp" in provider else 3e-7
        self.cpus = sorted(os.sched_getaffinity(0))[:2]

    def measure(self, work, sizes):
        if work not in self.TESTS:
            return [], None
        test, options, unit = self.TESTS[work]
        batch = WORK / "ucx.batch"
        with open(batch, "w", encoding="utf-8") as file:
            for size in sizes:
                count = max(5, int(2 * self.settings.seconds / (self.least + size / self.bytes_a_second)))
                for _ in range(self.TIMES):
                    file.write(f"{size} -t {test} {options} -s {size} -n {count} -w {max(2, count // 5)}\n")
        before = line_now(self.floor, self.settings)
        out, why = self.run(batch)
        after = line_now(self.floor, self.settings)
        seconds = {}
        for line in out.splitlines():
            found = re.match(r"(\d+),\s*\d+,[\d.]+,[\d.]+,([\d.]+),", line)
            if found and float(found[2]):
                seconds.setdefault(int(found[1]), []).append(float(found[2]) * 1e-6)
        cells = []
        for size, took in seconds.items():
            took.sort()
            cells.append((work, size, *(self.figure(t, size, unit) for t in (took[len(took) // 2], took[0])), unit,
                          before, after, ""))
        return cells, why

    @staticmethod
    def figure(seconds, size, unit):
        return seconds * 1e9 if unit == "ns" else 1e-6 / seconds if unit == "M/s" else size * 1e-9 / seconds

    def run(self, batch):
        port = free_port()
        one, two = ([self.perftest, "-c", cpu, "-p", port, "-b", batch, "-f", "-v"] for cpu in self.cpus)
        server = subprocess.Popen(command_of(self.settings, two), env=self.env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            give_up = time.monotonic() + self.settings.limit
            while not listens(port) and server.poll() is None and time.monotonic() < give_up:
                time.sleep(0.01)
            return run(self.settings, [one[0], "127.0.0.1", *one[1:]], self.env)
        finally:
            try:
                server.wait(timeout=2)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def free_port():
    for port in range(21000 + os.getpid() % 5000, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                continue
    raise OSError("no port is free")


def listens(port):
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


class Imb:
    """Benchmarks of Intel's IMB, which tell means, with one of two MPIs on a libfabric.so.1. A work is "imb-NAME-MPI"."""

    JOBS = {  # title: program, column of the figure, unit, to what it is multiplied
        "PingPong": ("IMB-MPI1", 2, "ns", 1e3),
        "PingPing": ("IMB-MPI1", 2, "ns", 1e3),
        "Uniband": ("IMB-MPI1", 2, "GB/s", 1e-3),
        "Allreduce": ("IMB-MPI1", 4, "ns", 1e3),
        "Unidir_put": ("IMB-RMA", 2, "ns", 1e3),
        "Unidir_get": ("IMB-RMA", 2, "ns", 1e3),
    }

    def __init__(self, program, library, provider, settings):
        self.floor, self.settings = program, settings
        clear = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "I_MPI", "MPIR_"))}
        self.env = clear | {"CLIENTS_LIBRARY": str(Path(library).resolve().parent), "FI_PROVIDER": provider}

    @classmethod
    def works(cls):
        return [f"imb-{name}-{mpi}" for mpi in ("intel", "mpich") for name in cls.JOBS]

    def prepare(self, works):
        """Fetches the MPIs of these works, which may take longer than a benchmark is given."""
        for mpi in sorted({work.rsplit("-", 1)[1] for work in works if work in self.works()}):
            subprocess.run([HERE / "imb", mpi], env=self.env, stdout=subprocess.DEVNULL, check=False)

    def measure(self, work, _sizes=()):
        _, title, mpi = work.split("-")
        program, column, unit, factor = self.JOBS[title]
        before = line_now(self.floor, self.settings)
        out, why = run(self.settings, [HERE / "imb", mpi, program, title], self.env, NEARLY_ALONE)
        after = line_now(self.floor, self.settings)
        cells = []
        # IMB-RMA measures twice: each operation for itself comes first.
        for line in out.splitlines():
            columns = line.split()
            if re.search(r"MODE: AGGREGATE", line):
                break
            if len(columns) > column and all(re.fullmatch(r"[\d.]+", c) for c in columns) and float(columns[column]):
                value = float(columns[column]) * factor
                cells.append((work, int(columns[0]), value, value, unit, before, after, ""))
        return cells, why
