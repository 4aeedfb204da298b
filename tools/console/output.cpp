#include "console/output.hpp"

#include <cstdio>

namespace via::console {

void complain_line(std::string line) {
    line += '\n';
    std::fputs(line.c_str(), stderr);
}

}  // namespace via::console
