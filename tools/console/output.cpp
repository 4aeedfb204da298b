#include "console/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

namespace via::console {

namespace {

int output_errno = 0;  // of the first output that was lost; stdio forgets it

// A file or socket of ours must not become a standard one, which others read and write.
void open_standard_descriptors() {
    int file = 0;
    do file = ::open("/dev/null", O_RDWR);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0) ::close(file);
}

bool output_failed() { return output_errno != 0 || std::ferror(stdout) != 0; }

int run_guarded(std::string_view tool, int failed, const std::function<int()>& body) {
    try {
        return body();
    } catch (const std::system_error& error) {  // also fmt::print()'s, of which run() tells
        if (std::ferror(stdout) == 0) {
            complain("{}: {}", tool, error.what());
        } else if (output_errno == 0) {
            output_errno = error.code().value();
        }
    } catch (const std::exception& error) {
        complain("{}: {}", tool, error.what());
    }
    return failed;
}

}  // namespace

void complain_line(std::string line) {
    line += '\n';
    std::fputs(line.c_str(), stderr);
}

bool flush_output() {
    if (std::fflush(stdout) != 0 && output_errno == 0) output_errno = errno;
    return !output_failed();
}

int run(std::string_view tool, int failed, const std::function<int()>& body) {
    open_standard_descriptors();
    const int code = run_guarded(tool, failed, body);
    if (flush_output()) return code;
    complain("{}: cannot write standard output: {}", tool,
             output_errno == 0 ? "an error before" : std::strerror(output_errno));
    return failed;
}

}  // namespace via::console
