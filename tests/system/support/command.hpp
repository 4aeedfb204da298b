// A command as somebody types it.
#pragma once

#include <stdio.h>

#include <memory>
#include <string>

#include "support/must.hpp"

namespace system_test {

/// What it prints, both streams, and behind it its exit code.
inline std::string said_by(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        popen((command + " 2>&1; echo $?").c_str(), "r"), pclose);
    require_call(pipe != nullptr, "popen");
    std::string text;
    char part[256];
    while (fgets(part, sizeof part, pipe.get()) != nullptr) text += part;
    return text;
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace system_test
