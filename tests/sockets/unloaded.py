#!/usr/bin/env python3
"""Programs that the library cannot serve: their bytes are right, and `via sockets status` says why.

    unloaded.py VIA
"""
import os
import re
import subprocess
import sys
import tempfile

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
         'ring': (['-DWITH_RING'], 'the program uses io_uring')}


def status(via):
    return subprocess.run([via, 'sockets', 'status'], capture_output=True, text=True,
                          check=True).stdout


def try_one(via, folder, kind, through_shell):
    options, why = KINDS[kind]
    program = os.path.join(folder, kind)
    subprocess.run(['cc', '-O1', '-w', '-o', program, '-x', 'c', '-', *options], input=SOURCE,
                   text=True, check=True)
    command = ['sh', '-c', f'{program}; exit $?'] if through_shell else [program]
    with subprocess.Popen([via, 'sockets', '--', *command], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said = process.stdout.readline()
        told = status(via)
        _, complaint = process.communicate('x')
    assert process.returncode == 0 and said == 'right\n', (kind, process.returncode, complaint)
    line = rf'{kind} [^\n]*\n(  [^\n]*\n)*  [^\n]*kernel  {why}'
    assert re.search(line, told), (kind, told[:2000])
    assert why not in status(via), 'it has ended'


def main():
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for through_shell in (False, True):
                try_one(sys.argv[1], folder, kind, through_shell)


main()
