#include "compose/over_relays.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "agent/addresses.hpp"
#include "relay/relayed_port.hpp"
#include "relay/ways.hpp"

namespace via {

std::expected<std::unique_ptr<device::datagram::Port>, std::string> over_relays(
    std::unique_ptr<device::datagram::Port> port, const std::string& file) {
    if (file.empty()) return port;
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error))
        return std::unexpected("ways: " + file + ": " + (error ? error.message() : "is no file"));
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (in) text << in.rdbuf();
    if (!in.is_open() || in.bad()) return std::unexpected("ways: " + file + " cannot be read");
    auto ways = relay::Ways::parse(text.view(), file, agent::parse_address);
    if (!ways) return std::unexpected("ways: " + ways.error());
    return std::make_unique<relay::RelayedPort>(std::move(port), *ways);
}

}  // namespace via
