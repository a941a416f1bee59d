"""Starts a browser on Windows whose debugging pipe is the standard input and output of this process.

A browser there does not read from descriptors 3 and 4, but from handles that it inherits, by their numbers.
"""

import sys

assert sys.platform == "win32"  # noqa: S101  # for type checkers

import msvcrt
import os
import subprocess

from pytest_device.platforms.windows import end_with_this_process


def main() -> int:
    """Run the browser of ``sys.argv`` until it exits; return its exit status."""
    pipes = [msvcrt.get_osfhandle(number) for number in (0, 1)]
    for handle in pipes:
        os.set_handle_inheritable(handle, True)

    numbers = ",".join(map(str, pipes))
    process = subprocess.Popen(  # noqa: S603  # the service's own choice
        [*sys.argv[1:], f"--remote-debugging-io-pipes={numbers}"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": pipes}),
    )

    end_with_this_process(process)
    return process.wait()
