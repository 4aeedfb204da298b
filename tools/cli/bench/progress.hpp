// One line on a terminal's standard error that says what happens now; silent elsewhere.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace via::bench {

class ProgressLine {
public:
    ~ProgressLine() { clear(); }

    void show(const std::string& what) {
        if (!visible_ || what == shown_) return;
        shown_ = what;
        std::fputs(("\r\033[K" + what).c_str(), stderr);
        std::fflush(stderr);
    }
    void clear() {
        if (!visible_ || shown_.empty()) return;
        shown_.clear();
        std::fputs("\r\033[K", stderr);
        std::fflush(stderr);
    }

private:
    bool visible_ = ::isatty(STDERR_FILENO) == 1;
    std::string shown_;
};

}  // namespace via::bench
