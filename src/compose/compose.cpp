// Puts agents and devices together by name: the one place that knows them all.
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "agent/addresses.hpp"
#include "agent/base_directory.hpp"
#include "agent/configuration.hpp"
#include "agent/directory.hpp"
#include "agent/elsewhere.hpp"
#include "agent/heavy_fences.hpp"
#include "agent/host_agent.hpp"
#include "agent/name_service.hpp"
#include "agent/nic_options.hpp"
#include "agent/process.hpp"
#include "agent/shared_directory.hpp"
#include "agent/statistics.hpp"
#include "api/open.hpp"
#include "compose/over_relays.hpp"
#include "compose/protect.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/loopback/loopback_device.hpp"
#include "device/shm/shm_device.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/udp_port.hpp"
#include "device/udp/udp_rails.hpp"
#include "sim/host/remote_wire.hpp"
#include "sim/host/sim_agent.hpp"

namespace via {

namespace {

/// What a NIC's own name begins with.
constexpr std::string_view media[] = {"shm", "loopback", "sim", "udp", "auto"};

void complain(const std::string& text) { agent::log(1, "%s", text.c_str()); }
/// What went well, for who wonders why it went otherwise than usual.
void mention(const std::string& text) { agent::log(2, "%s", text.c_str()); }

agent::OpenError bad_name(const std::string& why) {
    return {Status::invalid_parameter,
            why +
                "; a NIC's own name is shm, shm:NAME, udp:INTERFACE, udp:ADDRESS, auto, "
                "auto:INTERFACE, auto:ADDRESS, loopback, loopback:NAME or sim:HOST, and options "
                "may follow: shm,option=value"};
}

agent::OpenError no_resource(std::string text) { return {Status::error_resource, std::move(text)}; }

/// False and errno: there is no entropy.
template <class Value>
bool fill_random(Value& value) {
    return getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value);
}

/// The own host's names: of the NIC, of the system (also without its domain), localhost.
std::vector<std::string> host_names(std::string_view name) {
    std::vector<std::string> names;
    if (!name.empty()) names.emplace_back(name);
    char own[256] = {};
    if (gethostname(own, sizeof own - 1) == 0 && own[0] != '\0') {
        names.emplace_back(own);
        names.push_back(names.back().substr(0, names.back().find('.')));
    }
    names.emplace_back("localhost");
    return names;
}

/// The other shm NICs of this machine; `directory` holds their folders.
agent::Neighbours shm_neighbours(const std::string& directory) {
    using device::shm::Host;
    using device::shm::System;
    agent::Neighbours neighbours;
    neighbours.find = [directory](std::string_view name) -> std::optional<HostAddress> {
        if (const auto written = agent::parse_shm_name(name)) return written;
        const HostAddress address = agent::address_of_name(name);
        const auto host = device::shm::find_host(System::real(), directory, address);
        return host && host->name == name ? std::optional(address) : std::nullopt;
    };
    neighbours.name = [directory](const HostAddress& address) -> std::string {
        const auto host = device::shm::find_host(System::real(), directory, address);
        if (!host || !host->name.empty()) return host ? host->name : "";
        return address == agent::address_of_name("") ? "shm" : agent::to_text(address);
    };
    neighbours.elsewhere = [directory](const HostAddress& address) -> std::string {
        const std::string host = directory.substr(directory.rfind('/'));
        const std::string folder = device::shm::folder_name(address);
        const auto is_there = [&](const agent::Elsewhere& place) {
            if (place.hidden) return std::ranges::count(place.folders, folder) != 0;
            const auto hosts = device::shm::present_hosts(System::real(), place.base + host);
            return std::ranges::count(hosts, address, &Host::address) != 0;
        };
        std::string places;
        for (const agent::Elsewhere& place : agent::nics_elsewhere(directory))
            if (is_there(place)) places += (places.empty() ? "" : " and in ") + place.text();
        return places;
    };
    neighbours.list = [directory] {
        std::vector<HostAddress> addresses;
        for (const Host& host : device::shm::present_hosts(System::real(), directory))
            addresses.push_back(host.address);
        return addresses;
    };
    return neighbours;
}

constexpr std::string_view udp_folder = "udp-";

/// Of the NICs at an address. Two interfaces may have one link-local address, and whoever is behind
/// one of them does not reach the other: such a folder names the interface, too.
std::string udp_folder_of(const device::udp::Place& place) {
    std::string address = agent::to_text(place.address);
    if (device::udp::is_link_local(place.address))
        address.insert(address.find(']'), "%" + std::to_string(place.index));
    return std::string(udp_folder) + address;
}

std::optional<HostAddress> address_of_udp_folder(std::string name) {
    if (!name.starts_with(udp_folder)) return {};
    name.erase(0, udp_folder.size());
    if (const std::size_t interface = name.find('%'); interface != std::string::npos)
        name.erase(interface, name.find(']', interface) - interface);
    return agent::parse_address(name);
}

/// Those of `wanted` only, if there is one.
std::vector<HostAddress> present_udp_addresses(const std::string& directory,
                                               const HostAddress* wanted = nullptr) {
    std::vector<HostAddress> addresses;
    std::error_code ignored;  // what cannot be seen is not there
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
        const auto address = address_of_udp_folder(entry.path().filename());
        if (!address || (wanted != nullptr && *address != *wanted) ||
            std::find(addresses.begin(), addresses.end(), *address) != addresses.end())
            continue;
        std::error_code gone;
        const std::string folder = std::filesystem::canonical(entry.path(), gone);
        if (!gone && device::udp::somebody_lives(device::udp::System::real(), folder))
            addresses.push_back(*address);
    }
    return addresses;
}

/// The other udp NICs of this host: an address is its own name.
agent::Neighbours udp_neighbours(const std::string& directory) {
    agent::Neighbours neighbours;
    neighbours.name = [directory](const HostAddress& address) {
        return present_udp_addresses(directory, &address).empty() ? "" : agent::to_text(address);
    };
    neighbours.list = [directory] { return present_udp_addresses(directory); };
    return neighbours;
}

/// Those of both.
agent::Neighbours auto_neighbours(const std::string& directory) {
    const agent::Neighbours shm = shm_neighbours(directory);
    const agent::Neighbours udp = udp_neighbours(directory);
    agent::Neighbours neighbours;
    neighbours.find = shm.find;
    neighbours.elsewhere = shm.elsewhere;
    neighbours.name = [shm, udp](const HostAddress& address) {
        const std::string name = udp.name(address);
        return name.empty() ? shm.name(address) : name;
    };
    neighbours.list = [shm, udp] {
        std::vector<HostAddress> addresses = shm.list();
        for (const HostAddress& address : udp.list())
            if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
                addresses.push_back(address);
        return addresses;
    };
    return neighbours;
}

struct Opening {
    std::string full_name;
    std::string_view host;  ///< behind the colon
    agent::NicOptions nic_options;
    std::uint32_t first_generation;
};

using MadeStatistics = std::expected<std::unique_ptr<agent::Statistics>, agent::OpenError>;
using MadeDevice = std::expected<std::unique_ptr<device::Device>, agent::OpenError>;
using Devices = std::vector<std::unique_ptr<device::Device>>;

/// Before the devices that count there. `directory`: the host's.
MadeStatistics make_statistics(const Opening& opening, const std::string& directory) {
    auto statistics = agent::Statistics::open(directory, opening.full_name);
    if (!statistics) return std::unexpected(no_resource(statistics.error()));
    return std::move(*statistics);
}

agent::OpenResult open_host(const Opening& opening, MadeStatistics statistics, Devices devices,
                            const std::string& directory, agent::Neighbours neighbours,
                            agent::Link link = {}) {
    if (!statistics) return std::unexpected(statistics.error());
    agent::HostAgentOptions options;
    options.name = opening.full_name;
    const auto hosts = agent::read_sources("OPENVIA_HOSTS", "hosts", complain);
    options.names = std::make_shared<const agent::NameService>(
        devices.front()->address(), host_names(opening.host), agent::HostTable(hosts, complain),
        std::move(neighbours), std::move(link));
    options.nic_options = opening.nic_options;
    options.first_generation = opening.first_generation;
    options.directory_again = [] { return agent::host_directory(); };
    options.held = agent::hold_directory(directory.substr(0, directory.rfind('/')));
    if (!fill_random(options.secret))
        return std::unexpected(
            no_resource(std::string("no random number (getrandom): ") + strerror(errno)));
    return agent::HostAgent::open(std::move(options), std::move(devices), std::move(*statistics));
}

/// `directory`: the host's.
MadeDevice make_shm(const Opening& opening, const std::string& directory,
                    const HostAddress& address, std::string_view host) {
    device::shm::ShmConfig config;
    config.address = address;
    config.host = host;
    auto folder = agent::sub_directory(directory, device::shm::folder_name(config.address));
    if (!folder) return std::unexpected(no_resource(folder.error()));
    config.directory = *folder;
    config.directory_again = [name = device::shm::folder_name(address)] {
        const auto again = agent::host_directory();
        return again ? agent::sub_directory(*again, name) : again;
    };
    config.paths_max = NicLimits{}.paths_max;
    if (!fill_random(config.key))
        return std::unexpected(
            no_resource(std::string("no random key (getrandom): ") + strerror(errno)));
    config.report = complain;
    switch (opening.nic_options.one_copy) {
        case agent::OneCopy::measured:
            config.one_copy = device::shm::OneCopy::measured;
            break;
        case agent::OneCopy::always:
            config.one_copy = device::shm::OneCopy::always;
            break;
        case agent::OneCopy::never:
            config.one_copy = device::shm::OneCopy::never;
    }
    auto device = device::shm::ShmDevice::open(config);
    if (!device) return std::unexpected(no_resource(device.error()));
    return std::move(*device);
}

agent::OpenResult open_shm(const Opening& opening) {
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    auto device = make_shm(opening, *host, agent::address_of_name(opening.host), opening.host);
    if (!device) return std::unexpected(device.error());
    Devices devices;
    devices.push_back(std::move(*device));
    return open_host(opening, make_statistics(opening, *host), std::move(devices), *host,
                     shm_neighbours(*host));
}

agent::OpenResult open_loopback(const Opening& opening) {
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    Devices devices;
    devices.push_back(
        std::make_unique<device::loopback::LoopbackDevice>(agent::address_of_name(opening.host)));
    return open_host(opening, make_statistics(opening, *host), std::move(devices), *host, {});
}

/// Where NICs at an address meet by now.
std::expected<device::udp::UdpConfig::Meeting, std::string> meeting_again(const std::string& name) {
    const auto host = agent::host_directory();
    if (!host) return std::unexpected(host.error());
    const auto made = agent::shared_directory(*host, name);
    if (!made) return std::unexpected(made.error());
    return device::udp::UdpConfig::Meeting{made->path, made->shared};
}

using Places = std::vector<device::udp::Place>;

/// What all ports of a NIC have in common; the rest is as UdpConfig has it.
device::udp::UdpConfig config_of(const device::udp::Place& place, std::uint64_t instance,
                                 bool own_frames, Counters& counters) {
    device::udp::UdpConfig config;
    config.place = place;
    config.instance = instance;
    config.own_frames = own_frames;
    config.counters = &counters;
    config.report = complain;
    config.mention = mention;
    return config;
}

/// The directory may go with the last NIC of this user at the address while we come: then once
/// more.
std::expected<std::unique_ptr<device::udp::UdpPort>, std::string> open_port(
    const std::string& directory, const device::udp::Place& place, std::uint64_t instance,
    bool own_frames, Counters& counters) {
    constexpr int tries_max = 8;
    const std::string name = udp_folder_of(place);
    for (int tries = 1;; ++tries) {
        const auto folder = agent::shared_directory(directory, name);
        if (!folder) return std::unexpected(folder.error());
        auto config = config_of(place, instance, own_frames, counters);
        config.directory = folder->path;
        config.shared = folder->shared;
        config.directory_again = [name] { return meeting_again(name); };
        auto port = device::udp::UdpPort::open(config);
        if (port || tries == tries_max || std::filesystem::exists(folder->path)) return port;
    }
}

/// At all these places; at the first one others look for it.
std::expected<std::unique_ptr<device::datagram::Port>, std::string> open_ports(
    const std::string& directory, const Places& places, std::uint64_t instance, bool own_frames,
    Counters& counters) {
    auto first = open_port(directory, places.front(), instance, own_frames, counters);
    if (!first || places.size() == 1) return first;
    std::vector<std::unique_ptr<device::datagram::Port>> ports;
    ports.push_back(std::move(*first));
    for (const device::udp::Place& place : std::span(places).subspan(1)) {
        auto config = config_of(place, instance, own_frames, counters);
        config.only_data = true;
        auto port = device::udp::UdpPort::open(config);
        if (!port) return std::unexpected(port.error());
        ports.push_back(std::move(*port));
    }
    return device::udp::UdpRails::open(device::udp::System::real(), std::move(ports));
}

MadeDevice make_udp(const Opening& opening, const std::string& directory, const Places& places,
                    Counters& counters) {
    device::datagram::DatagramOptions options;
    options.silence = milliseconds(opening.nic_options.silence);
    options.paths_max = opening.nic_options.paths;
    bool random = fill_random(options.cookie_key) && fill_random(options.identifier_key);
    while (random && options.instance == 0) random = fill_random(options.instance);
    if (!random)
        return std::unexpected(
            no_resource(std::string("no random keys (getrandom): ") + strerror(errno)));
    const bool own_frames = opening.nic_options.own_frames == agent::OwnFrames::prefer;
    auto port = open_ports(directory, places, options.instance, own_frames, counters);
    if (!port) return std::unexpected(no_resource(port.error()));
    auto relayed = over_relays(std::move(*port), opening.nic_options.ways);
    if (!relayed) return std::unexpected(no_resource(relayed.error()));
    if (options.paths_max == 0)  // it only answers for its host, in the open
        return std::make_unique<device::datagram::DatagramDevice>(std::move(*relayed), options);
    auto guarded = protect(std::move(*relayed), options, opening.nic_options.secure);
    if (!guarded) return std::unexpected(no_resource(guarded.error()));
    return std::make_unique<device::datagram::DatagramDevice>(std::move(*guarded), options);
}

std::expected<device::udp::Place, agent::OpenError> find_place(std::string_view text) {
    auto place = device::udp::find_place(device::udp::System::real(), text, agent::default_port);
    if (!place) return std::unexpected(agent::OpenError{Status::invalid_parameter, place.error()});
    return *place;
}

/// Of one interface or address, or of several with a plus sign between.
std::expected<Places, agent::OpenError> find_places(std::string_view text) {
    Places places;
    for (bool more = true; more;) {
        const std::size_t end = text.find('+');
        auto place = find_place(text.substr(0, end));
        if (!place) return std::unexpected(place.error());
        places.push_back(std::move(*place));
        more = end != std::string_view::npos;
        if (more) text.remove_prefix(end + 1);
    }
    const std::string wrong = device::udp::what_is_wrong_with_rails(places);
    if (!wrong.empty()) return std::unexpected(agent::OpenError{Status::invalid_parameter, wrong});
    return places;
}

agent::OpenResult open_udp(const Opening& opening) {
    auto places = find_places(opening.host);
    if (!places) return std::unexpected(places.error());
    const device::udp::Place& place = places->front();
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    auto statistics = make_statistics(opening, *host);
    if (!statistics) return std::unexpected(statistics.error());
    auto device = make_udp(opening, *host, *places, (*statistics)->counters());
    if (!device) return std::unexpected(device.error());
    Opening plain = opening;
    plain.host = {};  // a place, not a name of the host
    Devices devices;
    devices.push_back(std::move(*device));
    return open_host(plain, std::move(statistics), std::move(devices), *host, udp_neighbours(*host),
                     {place.interface, place.index});
}

/// One NIC over both: processes of this host that opened it too are reached by shared memory,
/// whoever has another address, or opened only the network, over the network.
agent::OpenResult open_auto(const Opening& opening) {
    const std::string network = opening.host.empty() ? agent::configured_network(media, complain)
                                                     : std::string(opening.host);
    if (network.empty()) return open_shm(opening);
    auto places = find_places(network);
    if (!places) return std::unexpected(places.error());
    const HostAddress& address = places->front().address;
    if (address.length != 6)
        return std::unexpected(
            bad_name("auto wants an IPv4 address: shared memory knows no other"));
    auto host = agent::host_directory();
    if (!host) return std::unexpected(no_resource(host.error()));
    auto shm = make_shm(opening, *host, address, {});
    if (!shm) return std::unexpected(shm.error());
    auto statistics = make_statistics(opening, *host);
    if (!statistics) return std::unexpected(statistics.error());
    auto udp = make_udp(opening, *host, *places, (*statistics)->counters());
    if (!udp) return std::unexpected(udp.error());
    Opening plain = opening;
    plain.host = {};
    Devices devices;
    devices.push_back(std::move(*shm));
    devices.push_back(std::move(*udp));
    return open_host(plain, std::move(statistics), std::move(devices), *host,
                     auto_neighbours(*host));
}

bool is_own_name(std::string_view name) {
    return std::find(std::begin(media), std::end(media), agent::medium_of(name)) != std::end(media);
}

/// Opens a NIC by its own name.
agent::OpenResult open_nic(std::string_view full_name, std::uint32_t first_generation) {
    const agent::NicName parts = agent::split_nic_name(full_name);
    const std::string_view name = parts.name;
    const std::size_t colon = name.find(':');
    const std::string_view medium = name.substr(0, colon);
    auto options = agent::nic_options(parts);
    if (!options)
        return std::unexpected(agent::OpenError{Status::invalid_parameter, options.error()});
    Opening opening{std::string(name), {}, *options, first_generation};
    if (colon != std::string_view::npos) opening.host = name.substr(colon + 1);
    // Without them full fences do, and `via info` says why.
    if (medium != "sim") static_cast<void>(agent::offer_heavy_fences());
    if (medium == "udp") return open_udp(opening);
    // Not `auto` alone: whoever wrote the colon, or left a variable empty behind it, meant a place.
    if (name == "auto:")
        return std::unexpected(bad_name("there is no place behind the colon of auto:"));
    if (medium == "auto") return open_auto(opening);
    if (colon != std::string_view::npos) {
        if (!agent::is_plain(opening.host))
            return std::unexpected(bad_name(
                "the part behind the colon is 1 to 40 letters, digits, '.', '-', '_', and begins "
                "with neither '.' nor '-'"));
    }
    if (medium == "shm") return open_shm(opening);
    if (medium == "loopback") return open_loopback(opening);
    if (!opening.host.empty()) return sim::open_sim(opening.host, first_generation, *options);
    return std::unexpected(bad_name("sim needs the name of a host"));
}

}  // namespace

agent::OpenResult api::open_by_name(std::string_view name, std::uint32_t first_generation) {
    if (const char* socket = secure_getenv(sim::remote::variable)) {
        const auto options = agent::nic_options(agent::split_nic_name(name));
        if (!options)
            return std::unexpected(agent::OpenError{Status::invalid_parameter, options.error()});
        return sim::open_remote(socket, first_generation, *options);
    }
    if (is_own_name(name)) return open_nic(name, first_generation);
    const auto sources = agent::read_sources("OPENVIA_NICS", "nics.conf", complain);
    const agent::NicTarget found = agent::find_nic(name, sources, media, complain);
    if (found.target.empty())
        return std::unexpected(bad_name("no NIC has this name; looked for it in " + found.where));
    auto opened = open_nic(found.target, first_generation);
    if (opened) return opened;
    opened.error().text = "it stands for " + agent::shown(found.target) + " (says " + found.where +
                          "): " + opened.error().text;
    return opened;
}

}  // namespace via
