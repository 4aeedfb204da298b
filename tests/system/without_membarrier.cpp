// Runs a command where membarrier is forbidden: without_membarrier COMMAND [ARGUMENT...]
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "support/filter.hpp"

int main(int count, char** arguments) {
    try {
        if (count < 2) return 2;
        system_test::forbid(SYS_membarrier, EPERM);
        execv(arguments[1], arguments + 1);
        std::perror(arguments[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 2;
}
