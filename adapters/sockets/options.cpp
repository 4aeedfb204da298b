#include "options.hpp"

#include <cstdlib>

#include "clock.hpp"

namespace via::sockets {

namespace {

Options read_options() {
    Options told;
    const char* text = secure_getenv("OPENVIA_SOCKETS");
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
        const std::size_t cut = rest.find(' ');
        const std::string word = rest.substr(0, cut);
        rest = cut == std::string::npos ? "" : rest.substr(cut + 1);
        if (word == "off") told.off = true;
        if (word == "no-epoll") told.epoll = false;
        if (word.starts_with("only=")) told.only = word.substr(5);
        if (word.starts_with("not=")) told.without = word.substr(4);
        if (word.starts_with("after="))
            told.after = static_cast<std::uint32_t>(std::strtoul(word.c_str() + 6, nullptr, 10));
        if (word.starts_with("spin="))
            told.spin_ns = std::strtoull(word.c_str() + 5, nullptr, 10) * 1000;
    }
    return told;
}

bool names(const std::string& ports, std::uint16_t port) {
    return ("," + ports + ",").find("," + std::to_string(port) + ",") != std::string::npos;
}

}  // namespace

const Options& options() {
    static const Options* const told = new Options(read_options());
    return *told;
}

std::uint64_t spin_ticks() { return may_spin() ? options().spin_ns * 2 : 0; }
std::uint64_t busy_poll_ticks() { return 4 * spin_ticks(); }

bool wanted(const Ends& ends) {
    const Options& told = options();
    const auto either = [&](const std::string& ports) {
        return names(ports, ends.local.port) || names(ports, ends.remote.port);
    };
    return (told.only.empty() || either(told.only)) && !either(told.without);
}

}  // namespace via::sockets
