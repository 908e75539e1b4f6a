"""Where the files of this wheel lie: libfabric.so.1, its headers and its programs.

They are no part of the Python package: pip puts them into lib, include and bin of the environment, where Intel MPI and
MPICH of PyPI look for libfabric.so.1 by themselves.
"""

import pathlib
from importlib import metadata

__version__ = metadata.version("libfabric")


def library():
    """The path of libfabric.so.1."""
    for file in metadata.files("libfabric") or ():
        if file.name == "libfabric.so.1":
            return pathlib.Path(file.locate()).resolve()
    raise FileNotFoundError("the files of the package libfabric do not say where libfabric.so.1 is: install it with pip")


def libdir():
    """The folder of libfabric.so.1, for LD_LIBRARY_PATH."""
    return library().parent


def includedir():
    """The folder that has rdma/fabric.h in it."""
    return libdir().parent / "include"


def bindir():
    """The folder of fi_info, fi_pingpong and fi_strerror."""
    return libdir().parent / "bin"


def cflags():
    """What a compiler must be told."""
    return f"-I{includedir()}"


def libs():
    """What a linker must be told, for programs that find the library without LD_LIBRARY_PATH."""
    return f"-L{libdir()} -lfabric -Wl,-rpath,{libdir()}"
