// `via info`: which devices there are, their limits, and what of this machine decides the paths.
#include <fmt/format.h>
#include <via/via.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "agent/addresses.hpp"
#include "agent/base_directory.hpp"
#include "agent/directory.hpp"
#include "agent/elsewhere.hpp"
#include "agent/machine.hpp"
#include "agent/nic_options.hpp"
#include "base/limits.hpp"
#include "bench/via_names.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "info_names.hpp"
#include "info_peer.hpp"
#include "json.hpp"

namespace via::cli {

namespace {

constexpr const char* schema = "via-info-1";

struct DeviceEntry {
    const char* medium;
    const char* name;  ///< to open it by
    const char* what;
};

constexpr DeviceEntry known_devices[] = {
    {"shm", "shm", "processes of one user on one host"},
    {"loopback", "loopback", "within one process"},
    {"sim", "sim:info", "whole clusters in one process, under virtual time"},
    {"udp", "udp:lo", "hosts over an IP network"},
    {"auto", "auto", "shm on one host, udp between hosts"},
};

struct Limit {
    const char* name;
    std::uint32_t NicLimits::* value;
    const char* what;
};

constexpr Limit limits[] = {
    {"vis_max", &NicLimits::vis_max, "VIs of a NIC"},
    {"completion_queues_max", &NicLimits::completion_queues_max, "completion queues of a NIC"},
    {"completion_queue_entries_max", &NicLimits::completion_queue_entries_max,
     "entries of a completion queue"},
    {"protection_tags_max", &NicLimits::protection_tags_max, "protection tags of a NIC"},
    {"regions_max", &NicLimits::regions_max, "registered memory regions of a NIC"},
    {"windows_max", &NicLimits::windows_max, "memory windows"},
    {"descriptors_per_queue_max", &NicLimits::descriptors_per_queue_max,
     "descriptors posted to a queue and not yet taken"},
    {"segments_per_descriptor_max", &NicLimits::segments_per_descriptor_max,
     "data segments of a descriptor"},
    {"transfer_length_max", &NicLimits::transfer_length_max, "bytes of a message"},
    {"discriminator_length_max", &NicLimits::discriminator_length_max, "bytes of a discriminator"},
    {"connections_waiting_max", &NicLimits::connections_waiting_max,
     "connection requests taken and not yet answered"},
    {"listeners_max", &NicLimits::listeners_max, "listeners of a NIC that stand"},
    {"backlog_max", &NicLimits::backlog_max, "connection requests that wait in such a listener"},
    {"shared_receive_queues_max", &NicLimits::shared_receive_queues_max,
     "shared receive queues of a NIC"},
    {"shared_receives_max", &NicLimits::shared_receives_max,
     "descriptors posted to a shared receive queue"},
    {"reads_in_flight_max", &NicLimits::reads_in_flight_max,
     "RDMA reads under way, of a VI and direction"},
    {"paths_max", &NicLimits::paths_max, "peer NICs"},
    {"turn_frames_max", &NicLimits::turn_frames_max, "frames moved in one turn"},
    {"turn_bytes_max", &NicLimits::turn_bytes_max, "payload bytes moved in one turn"},
};
// A limit added there must be listed here.
static_assert(sizeof(NicLimits) == sizeof limits / sizeof *limits * sizeof(std::uint32_t));

struct Value {
    const char* name;
    std::uint64_t number;
    const char* what;
};

/// What a NIC says of itself through VIPL.
struct Reported {
    std::string name;
    std::string address;
    std::vector<Value> values;
};

/// A device, tried.
struct Tried {
    std::string medium;
    std::string what;
    std::string name;
    std::optional<Reported> reported;
    std::string why_not;
};

std::string address_text(const VIP_NIC_ATTRIBUTES& attributes) {
    const HostAddress address = address_of(attributes);
    return address.length == 0 ? "none" : agent::to_text(address);
}

Reported report_of(const VIP_NIC_ATTRIBUTES& a) {
    Reported reported;
    reported.name.assign(a.Name, strnlen(a.Name, sizeof a.Name));
    reported.address = address_text(a);
    reported.values = {
        {"HardwareVersion", a.HardwareVersion, ""},
        {"ProviderVersion", a.ProviderVersion, ""},
        {"NicAddressLen", a.NicAddressLen, "bytes"},
        {"ThreadSafe", static_cast<std::uint64_t>(a.ThreadSafe), "1: calls by any thread"},
        {"MaxDiscriminatorLen", a.MaxDiscriminatorLen, "bytes"},
        {"MaxRegisterBytes", a.MaxRegisterBytes, "bytes, of all regions"},
        {"MaxRegisterRegions", a.MaxRegisterRegions, ""},
        {"MaxRegisterBlockBytes", a.MaxRegisterBlockBytes, "bytes, of one region"},
        {"MaxVI", a.MaxVI, ""},
        {"MaxDescriptorsPerQueue", a.MaxDescriptorsPerQueue, ""},
        {"MaxSegmentsPerDesc", a.MaxSegmentsPerDesc, ""},
        {"MaxCQ", a.MaxCQ, ""},
        {"MaxCQEntries", a.MaxCQEntries, ""},
        {"MaxTransferSize", a.MaxTransferSize, "bytes of one message"},
        {"NativeMTU", a.NativeMTU, "payload bytes of one frame"},
        {"MaxPtags", a.MaxPtags, ""},
        {"ReliabilityLevelSupport", a.ReliabilityLevelSupport,
         "bits: 1 unreliable, 2 delivery, 4 reception"},
        {"RDMAReadSupport", a.RDMAReadSupport, "the same bits"},
    };
    return reported;
}

Tried try_device(const DeviceEntry& entry) {
    Tried tried{entry.medium, entry.what, entry.name, {}, {}};
    std::string name = entry.name;
    VIP_NIC_HANDLE nic = nullptr;
    char why[1024] = "";
    VIP_RETURN result = ViaOpenNic(name.data(), &nic, why, sizeof why);
    if (result != VIP_SUCCESS) {
        std::string_view reason = why;
        if (const std::size_t end = reason.find("\": "); end != reason.npos)
            reason.remove_prefix(end + 3);  // behind: cannot open NIC "NAME
        tried.why_not = fmt::format("{} ({})", reason, bench::name_of_return(result));
        return tried;
    }
    VIP_NIC_ATTRIBUTES attributes{};
    result = VipQueryNic(nic, &attributes);
    if (result == VIP_SUCCESS) tried.reported = report_of(attributes);
    if (result != VIP_SUCCESS)
        tried.why_not = fmt::format("VipQueryNic: {}", bench::name_of_return(result));
    VipCloseNic(nic);
    return tried;
}

std::string limit_text(std::uint64_t value) {
    return value == agent::ResourceLimit::unlimited ? "no limit" : fmt::format("{}", value);
}

/// A remark on a path that is off, or slower than it could be.
struct Remark {
    const char* name;
    std::string text;
};

std::vector<Remark> remarks_on(const agent::Machine& machine) {
    std::vector<Remark> remarks;
    remarks.push_back(
        {"one-copy",
         "each channel tries it on messages from 64 KB to 1 MB, and keeps whichever is "
         "faster; a message with others behind it goes in frames (docs/diary/2026-11-22.md). "
         "'via stat' counts messages_pulled; NIC option one_copy=never or always"});
    if (std::strcmp(machine.streaming, "none") == 0)
        remarks.push_back({"streaming-stores",
                           "off: none are known for this processor, so large "
                           "messages pass through its caches"});
    if (machine.processors == 1)
        remarks.push_back({"polling",
                           "two processes share one processor here: each polls while "
                           "the other could work; let them wait (VipSendWait, "
                           "VipRecvWait, VipCQWait) instead"});
    for (const agent::Facility& facility : machine.facilities)
        if (!facility.works)
            remarks.push_back({facility.name, fmt::format("{} (the kernel says: {})", facility.cost,
                                                          facility.fault)});
    return remarks;
}

void print_machine(const agent::Machine& machine, const std::string& directory) {
    fmt::print("Machine\n");
    const auto line = [](const char* name, const std::string& value, const char* note) {
        fmt::print("  {:<20}{}{}{}\n", name, value, *note == '\0' ? "" : "; ", note);
    };
    line("kernel", machine.kernel, "");
    line("processors", fmt::format("{} of {} that are online", machine.processors, machine.online),
         "");
    line("streaming stores", machine.streaming, "for large payloads");
    line("open files",
         fmt::format("{} (can be raised to {})", limit_text(machine.files.now),
                     limit_text(machine.files.most)),
         "a peer process on shm takes two");
    line("locked memory",
         fmt::format("{} bytes (can be raised to {})", limit_text(machine.locked.now),
                     limit_text(machine.locked.most)),
         machine.lock_right ? "bounds nothing: the process has CAP_IPC_LOCK"
                            : "bounds registered memory; CAP_IPC_LOCK would lift it");
    line("locked areas", fmt::format("{}", machine.locked_areas_max),
         "registered memory apart from each other, in a process");
    line("runtime directory", directory, "");
    fmt::print("\nKernel facilities\n");
    for (const agent::Facility& facility : machine.facilities)
        fmt::print("  {:<20}{:<5}{}\n", facility.name, facility.works ? "yes" : "no", facility.use);
}

void print_json(const std::vector<Tried>& devices, const agent::Machine& machine,
                const std::string& directory) {
    const auto begin = [](const char* kind) { return JsonLine(schema).text("kind", kind); };
    const auto end = [](const JsonLine& line) { fmt::print("{}", line.line()); };
    const auto resource = [](JsonLine& line, const char* name, const agent::ResourceLimit& limit) {
        limit.now == agent::ResourceLimit::unlimited ? line.null(name)
                                                     : line.number(name, limit.now);
    };
    JsonLine facts = begin("machine").text("kernel", machine.kernel);
    facts.number("processors", machine.processors).number("processors_online", machine.online);
    facts.text("streaming_stores", machine.streaming);
    resource(facts, "open_files", machine.files);
    resource(facts, "locked_bytes", machine.locked);
    facts.boolean("lock_right", machine.lock_right);
    facts.number("locked_areas_max", machine.locked_areas_max);
    end(facts.text("runtime_directory", directory));
    for (const agent::Facility& facility : machine.facilities)
        end(begin("facility")
                .text("name", facility.name)
                .boolean("works", facility.works)
                .text("use", facility.use)
                .text("cost", facility.cost)
                .text("fault", facility.fault));
    for (const Remark& remark : remarks_on(machine))
        end(begin("path").text("name", remark.name).text("text", remark.text));
    for (const Limit& limit : limits)
        end(begin("limit")
                .text("name", limit.name)
                .number("value", NicLimits{}.*limit.value)
                .text("what", limit.what));
    for (const agent::NicOptionText& option : agent::nic_option_texts())
        end(begin("option")
                .text("name", option.name)
                .text("values", option.values)
                .text("otherwise", option.otherwise)
                .text("meaning", option.meaning));
    for (const Tried& device : devices) {
        JsonLine line = begin("device").text("device", device.medium);
        line.text("what", device.what).boolean("ready", device.reported.has_value());
        line.text("why_not", device.why_not);
        if (device.reported) {
            line.text("address", device.reported->address).open("attributes");
            line.text("Name", device.reported->name);
            for (const Value& value : device.reported->values)
                line.number(value.name, value.number);
            line.close();
        }
        end(line);
    }
}

void print_devices(const std::vector<Tried>& devices) {
    fmt::print("Devices\n");
    for (const Tried& device : devices) {
        fmt::print("  {:<12}{:<52}{}\n", device.medium, device.what,
                   device.reported ? "ready" : "absent");
        if (!device.reported) fmt::print("  {:<12}absent because: {}\n", "", device.why_not);
    }
}

void print_attributes(const Tried& device) {
    if (!device.reported) return;
    fmt::print("\nWhat NIC {} reports through VIPL (at most 2^31-1, for old programs)\n",
               device.name);
    fmt::print("  {:<28}{:>14}\n", "Name", device.reported->name);
    fmt::print("  {:<28}{:>14}\n", "LocalNicAddress", device.reported->address);
    for (const Value& value : device.reported->values)
        fmt::print("  {:<28}{:>14}{}{}\n", value.name, value.number,
                   *value.what == '\0' ? "" : "  ", value.what);
}

void print_limits() {
    fmt::print("\nLimits of the library\n");
    for (const Limit& limit : limits)
        fmt::print("  {:<30}{:>12}  {}\n", limit.name, NicLimits{}.*limit.value, limit.what);
}

void print_options() {
    fmt::print("\nOptions of a NIC: NAME,OPTION=VALUE, or for all in OPENVIA_OPTIONS\n");
    for (const agent::NicOptionText& option : agent::nic_option_texts())
        fmt::print("  {:<20}{}; otherwise {}\n  {:<20}{}\n", option.name, option.values,
                   option.otherwise, "", option.meaning);
}

/// Where NICs are that are not met from `directory`, the host's.
std::vector<std::string> other_places(const std::string& directory) {
    std::vector<std::string> places = agent::other_bases(directory.substr(0, directory.rfind('/')));
    for (const agent::Elsewhere& one : agent::nics_elsewhere(directory))
        if (std::ranges::find(places, one.text()) == places.end()) places.push_back(one.text());
    return places;
}

std::vector<std::string_view> known_media() {
    std::vector<std::string_view> media;
    for (const DeviceEntry& entry : known_devices) media.emplace_back(entry.medium);
    return media;
}

int show_way(const InfoOptions& options) {
    WayToPeer way;
    std::string error;
    const std::string nic = options.device.empty() ? "auto" : options.device;
    if (!find_way(nic, options.peer, known_media(), way, error)) {
        console::complain("via info: {}", error);
        return exit_failed;
    }
    options.json ? print_way_json(options.peer, way, schema) : print_way(options.peer, way);
    return way.way.empty() ? exit_failed : exit_good;
}

std::vector<DeviceEntry> chosen_devices(const std::string& name) {
    std::vector<DeviceEntry> chosen;
    for (const DeviceEntry& entry : known_devices) {
        if (name.empty() || name == entry.medium) chosen.push_back(entry);
        // "shm:left" is the same device under another host's name; options may follow.
        if (name != entry.medium && name.substr(0, name.find_first_of(":,")) == entry.medium)
            chosen.push_back(
                {entry.medium, entry.name == nullptr ? nullptr : name.c_str(), entry.what});
    }
    if (chosen.empty()) chosen.push_back({name.c_str(), name.c_str(), "of this name"});
    return chosen;
}

}  // namespace

int run_info(const InfoOptions& options) {
    if (!options.peer.empty()) return show_way(options);
    const agent::Machine machine = agent::look_at_machine();
    const auto directory = agent::host_directory();
    const std::string where = directory ? *directory : "none: " + directory.error();
    std::vector<Tried> devices;
    for (const DeviceEntry& entry : chosen_devices(options.device))
        devices.push_back(try_device(entry));
    const bool failed = !options.device.empty() && !devices.front().reported;
    if (options.json) {
        print_json(devices, machine, where);
        print_names_json(look_at_names(known_media()), schema);
        for (const std::string& other : other_places(where))
            fmt::print("{}",
                       JsonLine(schema).text("kind", "elsewhere").text("place", other).line());
        return failed ? exit_failed : exit_good;
    }
    print_devices(devices);
    if (options.device.empty()) {
        print_attributes(devices.front());
    } else {
        for (const Tried& device : devices) print_attributes(device);
    }
    print_names(look_at_names(known_media()));
    print_options();
    print_limits();
    fmt::print("\n");
    print_machine(machine, where);
    for (const std::string& other : other_places(where))
        fmt::print("  {:<20}NICs of yours in {}: {}\n", "not met from here", other,
                   agent::elsewhere_advice);
    fmt::print("\nPaths that are off, and what that costs\n");
    for (const Remark& remark : remarks_on(machine))
        fmt::print("  {:<20}{}\n", remark.name, remark.text);
    return failed ? exit_failed : exit_good;
}

}  // namespace via::cli
