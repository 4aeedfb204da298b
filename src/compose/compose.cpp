// Puts agents and devices together by name: the one place that knows them all.
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "agent/directory.hpp"
#include "agent/host_agent.hpp"
#include "agent/process.hpp"
#include "agent/statistics.hpp"
#include "api/open.hpp"
#include "device/loopback/loopback_device.hpp"
#include "device/shm/shm_device.hpp"
#include "sim/host/sim_agent.hpp"

namespace via {

namespace {

constexpr std::uint16_t default_port = 9741;
constexpr std::size_t name_length_max = 40;

agent::OpenError bad_name(std::string_view name, const char* why) {
    return {Status::invalid_parameter,
            std::string("there is no NIC \"") + std::string(name) + "\": " + why +
                "; known are shm, shm:NAME, loopback, loopback:NAME and sim:HOST"};
}

agent::OpenError no_resource(std::string text) { return {Status::error_resource, std::move(text)}; }

HostAddress ipv4_address(std::array<std::uint8_t, 4> host) {
    HostAddress address;
    address.length = 6;
    std::copy(host.begin(), host.end(), address.bytes.begin());
    address.bytes[4] = default_port >> 8;
    address.bytes[5] = default_port & 0xFF;
    return address;
}

/// A host's name on this machine to an address of the loopback network: 127.0.0.1 without a name.
HostAddress address_of_name(std::string_view name) {
    if (name.empty()) return ipv4_address({127, 0, 0, 1});
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char letter : name) hash = (hash ^ static_cast<std::uint8_t>(letter)) * 16777619U;
    return ipv4_address({127, static_cast<std::uint8_t>(1 + hash % 254),
                         static_cast<std::uint8_t>(hash >> 8),
                         static_cast<std::uint8_t>(hash >> 16)});
}

/// Letters, digits, dots, dashes: what a host name and a file name both can be.
bool is_plain(std::string_view name) {
    if (name.empty() || name.size() > name_length_max || name.front() == '.' || name.front() == '-')
        return false;
    return name.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
           std::string_view::npos;
}

std::vector<std::string> host_names(std::string_view name) {
    std::vector<std::string> names;
    if (!name.empty()) names.emplace_back(name);
    char own[256] = {};
    if (gethostname(own, sizeof own - 1) == 0 && own[0] != '\0') names.emplace_back(own);
    names.emplace_back("localhost");
    return names;
}

struct Opening {
    std::string full_name;
    std::string_view host;  ///< behind the colon
    std::uint32_t first_generation;
};

agent::OpenResult open_host(const Opening& opening, std::unique_ptr<device::Device> device,
                            const std::string& directory) {
    auto statistics = agent::Statistics::open(directory, opening.full_name);
    if (!statistics) return std::unexpected(no_resource(statistics.error()));
    agent::HostAgentOptions options;
    options.name = opening.full_name;
    options.host_names = host_names(opening.host);
    options.first_generation = opening.first_generation;
    std::vector<std::unique_ptr<device::Device>> devices;
    devices.push_back(std::move(device));
    return agent::HostAgent::open(std::move(options), std::move(devices), std::move(*statistics));
}

agent::OpenResult open_shm(const Opening& opening) {
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    device::shm::ShmConfig config;
    config.address = address_of_name(opening.host);
    config.host = opening.host;
    auto directory = agent::sub_directory(*host, device::shm::folder_name(config.address));
    if (!directory) return std::unexpected(no_resource(directory.error()));
    config.directory = *directory;
    config.paths_max = NicLimits{}.paths_max;
    if (getrandom(&config.key, sizeof config.key, 0) != static_cast<ssize_t>(sizeof config.key))
        return std::unexpected(
            no_resource(std::string("no random key (getrandom): ") + strerror(errno)));
    config.report = [](const std::string& text) { agent::log(1, "%s", text.c_str()); };
    auto device = device::shm::ShmDevice::open(config);
    if (!device) return std::unexpected(no_resource(device.error()));
    return open_host(opening, std::move(*device), *host);
}

agent::OpenResult open_loopback(const Opening& opening) {
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    return open_host(
        opening, std::make_unique<device::loopback::LoopbackDevice>(address_of_name(opening.host)),
        *host);
}

}  // namespace

agent::OpenResult api::open_by_name(std::string_view name, std::uint32_t first_generation) {
    const std::size_t colon = name.find(':');
    const std::string_view medium = name.substr(0, colon);
    Opening opening{std::string(name), {}, first_generation};
    if (colon != std::string_view::npos) {
        opening.host = name.substr(colon + 1);
        if (!is_plain(opening.host))
            return std::unexpected(bad_name(
                name, "the part behind the colon is 1 to 40 letters, digits, '.', '-', '_'"));
    }
    if (medium == "shm") return open_shm(opening);
    if (medium == "loopback") return open_loopback(opening);
    if (medium == "sim" && !opening.host.empty())
        return sim::open_sim(opening.host, first_generation);
    return std::unexpected(bad_name(name, "unknown medium"));
}

}  // namespace via
