"""Which files the thin client sends and writes, and how: with the caller's rights, and only what the caller named.

A daemon at the address in SLURMBRIDGE_ADDR is trusted with the command, not with the caller's other files. Loaded when
the first file is asked for. Standard library only.
"""

import posix

ENOENT, EACCES, EISDIR, EINVAL, EFBIG = 2, 13, 21, 22, 27
FOLDER, FORMAT = 0o040000, 0o170000  # of st_mode


def answer(
    kind: bytes, parts: list[bytes], typed: list[bytes], seen: list[bytes], lines: list[bytes], folders: list[bytes]
) -> tuple[int, bytes, bytes]:
    """(errno, path, content) for a question of the daemon: A, I or W. Words read at a prompt join `lines`."""
    if kind == b"W":
        return (*write(parts[0], int(parts[1], 8), parts[2], [*typed, *lines]), b"")
    if kind == b"I":
        errno, data = read_up_to(0, int(parts[0]), parts[1] == b"l")
        lines += data.split() if parts[1] == b"l" else []
        return errno, b"", data
    if not was_named(parts[0], typed, seen):
        return EACCES, b"", b""
    return find(parts[0], int(parts[1]), folders if parts[2] == b"p" else [])


def was_named(name: bytes, typed: list[bytes], seen: list[bytes]) -> bool:
    """Whether a name was typed (alone, or at the end of an option) or stands in a file that was sent already."""
    return bool(name) and (any(word.endswith(name) for word in typed) or any(name in text for text in seen))


def find(name: bytes, limit: int, folders: list[bytes]) -> tuple[int, bytes, bytes]:
    """(errno, absolute path (of a file that may not be read, too), content). A name without ./ or / is also looked for in `folders`."""
    try:
        cwd = posix.getcwdb()
    except OSError:
        cwd = b""
    places = [name if name.startswith(b"/") else cwd + b"/" + name]
    if not name.startswith((b"/", b"./", b"../")):
        places += [folder + b"/" + name for folder in folders if folder]
    errno, closed = ENOENT, b""
    for path in places:
        try:
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOCTTY)
        except OSError as fault:
            if errno == ENOENT:
                errno = fault.errno or EINVAL
                closed = path if errno == EACCES and is_there(path) else b""
            continue
        try:
            if posix.fstat(fd).st_mode & FORMAT == FOLDER:
                errno = EISDIR
                continue
            problem, data = read_up_to(fd, limit, False)
        finally:
            posix.close(fd)
        return problem, path, data
    return errno, closed, b""


def is_there(path: bytes) -> bool:
    """Whether it can be looked at, if not read."""
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def read_up_to(fd: int, limit: int, line: bool) -> tuple[int, bytes]:
    """(errno, content): EFBIG when there is more than `limit`; of a line only the line is taken."""
    parts, size = [], 0
    while size <= limit:
        try:
            part = posix.read(fd, 1 if line else min(1 << 20, limit + 1 - size))
        except BlockingIOError:
            wait_until_readable(fd)
            continue
        except OSError as fault:
            return fault.errno or EINVAL, b""
        if not part:
            break
        parts.append(part)
        size += len(part)
        if line and part == b"\n":
            break
    return (EFBIG, b"") if size > limit else (0, b"".join(parts))


def wait_until_readable(fd: int) -> None:
    """For a descriptor that somebody else set non-blocking."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll()


def may_write(name: bytes, typed: list[bytes]) -> bool:
    """Whether a name is a word that was typed, stands behind its `=`, or is made of one as Slurm makes names."""
    for word in typed:
        if not word:
            continue
        if name in (word, word.partition(b"=")[2].strip(b"'\"")):
            return True
        if b"/" not in word and name in (b"slurm-" + word + b".sh", b"./" + word + b".cfg"):
            return True
        if name[:-20] == word and name[-20:].translate(None, b"0123456789") == b".--T::":
            return True
    return False


def write(name: bytes, mode: int, data: bytes, typed: list[bytes]) -> tuple[int, bytes]:
    """(errno, name): the file made or replaced, as a shell's `>` does."""
    if not may_write(name, typed):
        return EACCES, b""
    try:
        fd = posix.open(name, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC | posix.O_NOCTTY, mode)
        try:
            left = memoryview(data)
            while left:
                left = left[posix.write(fd, left) :]
        finally:
            posix.close(fd)
    except OSError as fault:
        return fault.errno or EINVAL, b""
    return 0, name
