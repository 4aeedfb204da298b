#include "lab/file/text.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace via::lab::file {

std::expected<std::string, std::string> read_text(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    std::string text;
    // Not by iterators: they throw where a folder cannot be read.
    for (char part[4096]; file.read(part, sizeof part) || file.gcount() != 0;)
        text.append(part, static_cast<std::size_t>(file.gcount()));
    if (!file.eof()) return std::unexpected(std::string(std::strerror(errno)));
    return text;
}

}  // namespace via::lab::file
