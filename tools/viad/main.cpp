// viad: keeps NICs open, and with them the hosts' ports, so that the processes of a host are found
// whichever of them come and go. It carries no message of theirs: connections never touch it.
#include <signal.h>
#include <via/via.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "console/command_line.hpp"
#include "console/output.hpp"

namespace {

struct OpenNic {
    std::string name;
    VIP_NIC_HANDLE handle = nullptr;
};

/// It answers for its host; nobody has anything to say to viad itself, or memory of it to fill.
std::string without_paths(const std::string& name) { return name + ",paths=0"; }

void close_all(const std::vector<OpenNic>& nics) {
    for (const OpenNic& nic : nics) VipCloseNic(nic.handle);
}

int run(int argc, char** argv) {
    CLI::App app{"Keeps NICs open, so that a host is found while its programs come and go"};
    app.name("viad");
    app.set_version_flag("--version", "OpenVIA " VIA_VERSION, "Print the version and exit");
    std::vector<std::string> names;
    app.add_option("nics", names, "Names of NICs, for instance udp:eth0")->required();
    app.footer(
        "Runs until SIGTERM or SIGINT. A host's port that another process has is taken over when\n"
        "that process ends.\n\n"
        "Exit codes: 0 ended by a signal; 1 a NIC cannot be opened; 2 wrong command line.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return via::console::answer(app, error, 2);
    }
    // Blocked before the library starts threads, so that only sigwait() below takes them.
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, nullptr);

    std::vector<OpenNic> nics;
    for (const std::string& name : names) {
        OpenNic nic{name, nullptr};
        char why[1024] = "";
        if (ViaOpenNic(without_paths(name).c_str(), &nic.handle, why, sizeof why) != VIP_SUCCESS) {
            via::console::complain("viad: {}", why);
            close_all(nics);
            return 1;
        }
        nics.push_back(nic);
        fmt::print("viad: {} is open\n", name);
    }
    via::console::flush_output();
    int taken = 0;
    while (sigwait(&ends, &taken) != 0) {
    }
    fmt::print("viad: ended by signal {}\n", taken);
    close_all(nics);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return via::console::run("viad", 1, [&] { return run(argc, argv); });
}
