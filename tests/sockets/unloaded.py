#!/usr/bin/env python3
"""Programs that the library cannot serve: their bytes are right, and `via sockets status` says why.

    unloaded.py VIA [rights]

rights: those that get rights which their user does not have, which takes the administrator.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = r'''
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef IN_GO /* as its linker marks a program */
__asm__(".section .note.go.buildid,\"a\",@note\n"
        ".long 4, 4, 4\n.asciz \"Go\\0\"\n.long 0\n.previous");
#endif
#ifdef WITH_RING
static void extra(void) { close((int)syscall(SYS_io_uring_setup, 1, (char[256]){0})); }
#else
static void extra(void) {}
#endif
int main(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &length) ||
        connect(one, (struct sockaddr *)&at, length))
        return 2;
    int other = accept(listener, NULL, NULL);
    for (int turn = 0; turn < 100; ++turn) {
        char sent[64], got[64];
        memset(sent, turn, sizeof sent);
        if (turn == 50) extra();
        if (write(one, sent, 64) != 64 || recv(other, got, 64, MSG_WAITALL) != 64 ||
            memcmp(sent, got, 64))
            return 3;
        if (write(other, sent, 64) != 64 || recv(one, got, 64, MSG_WAITALL) != 64 ||
            memcmp(sent, got, 64))
            return 4;
    }
    puts("right");
    fflush(stdout);
    return getchar() == 'x' ? 0 : 5;
}
'''

KINDS = {'static': (['-static'], 'it is linked statically'),
         'go': (['-DIN_GO'], 'it is written in Go'),
         'static-go': (['-DIN_GO', '-static'], 'it is linked statically'),
         'ring': (['-DWITH_RING'], 'the program uses io_uring')}
NOBODY = 65534
# By mode; owned by somebody else.
RIGHTS = {'set-user': (0o4755, 'it is set-user-ID'), 'set-group': (0o2755, 'it is set-group-ID')}
# How it is started: each takes another of the C library's functions.
STARTERS = {'itself': lambda program: [program],
            'execve': lambda program: ['sh', '-c', f'{program}; exit $?'],
            'execvp': lambda program: ['env', program],
            'fexecve': lambda program: [sys.executable, '-c', f'''
import os
os.execve(os.open({program!r}, os.O_RDONLY), [{program!r}], os.environ)'''],
            'posix_spawnp': lambda program: [sys.executable, '-c', f'''
import os
path, name = os.path.split({program!r})
os.environ['PATH'] = path
child = os.posix_spawnp(name, [name], os.environ)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))''']}


def status(via):
    return subprocess.run([via, 'sockets', 'status'], capture_output=True, text=True,
                          check=True).stdout


def build(folder, kind, options=()):
    # Other runs of this test have programs of the same kinds.
    program = os.path.join(folder, f'{kind}-{os.getpid()}')
    subprocess.run(['cc', '-O1', '-w', '-o', program, '-x', 'c', '-', *options], input=SOURCE,
                   text=True, check=True)
    return program


def try_one(via, program, why, starter):
    kind = os.path.basename(program)
    with subprocess.Popen([via, 'sockets', '--', *STARTERS[starter](program)], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        said = process.stdout.readline()
        line = rf'{kind} [^\n]*\n(  [^\n]*\n)*  [^\n]*kernel  {why}'
        told = status(via)
        until = time.monotonic() + 30
        # Who spawns knows the number of the program, and so says it, when that may be under way.
        while starter == 'posix_spawnp' and not re.search(line, told) and time.monotonic() < until:
            told = status(via)
        _, complaint = process.communicate('x')
    assert process.returncode == 0 and said == 'right\n', (kind, process.returncode, complaint)
    assert re.search(line, told), (kind, starter, told[:2000])
    assert kind not in status(via), 'it has ended'


def main():
    via, *words = sys.argv[1:]
    if words == ['rights'] and os.geteuid() != 0:
        print('takes the administrator, who gives a program to another user')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        if words == ['rights']:
            for kind, (mode, why) in RIGHTS.items():
                program = build(folder, kind)
                os.chown(program, NOBODY, NOBODY)
                os.chmod(program, mode)
                for starter in STARTERS:
                    try_one(via, program, why, starter)
            return
        for kind, (options, why) in KINDS.items():
            program = build(folder, kind, options)
            for starter in STARTERS:
                try_one(via, program, why, starter)


main()
