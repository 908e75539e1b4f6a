"""python -m libfabric --libdir: tells on one line where something of this wheel lies."""

import argparse

import libfabric

QUESTIONS = ("library", "libdir", "includedir", "bindir", "cflags", "libs")


def main():
    parser = argparse.ArgumentParser(prog="python -m libfabric", description=__doc__.split(": ")[1])
    parser.add_argument("--version", action="version", version=libfabric.__version__)
    for question in QUESTIONS:
        text = getattr(libfabric, question).__doc__
        parser.add_argument(f"--{question}", dest="asked", action="append_const", const=question, help=text)
    asked = parser.parse_args().asked
    if not asked:
        parser.error("what? One or more of " + ", ".join(f"--{question}" for question in QUESTIONS))
    print(*(getattr(libfabric, question)() for question in asked))


main()
