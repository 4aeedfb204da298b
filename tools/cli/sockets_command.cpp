// `via sockets`: an unmodified program, with libvia-sockets.so before its libraries.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bench/sockets_library.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "mpi/command.hpp"
#include "notes.hpp"
#include "ring.hpp"

namespace via::cli {

namespace {

using Words = std::vector<std::string>;

constexpr const char* sockets_help =
    R"(Usage: via sockets [OPTIONS] [--] PROGRAM [ARGUMENT...]
       via sockets status

Runs a program, as it is, whose TCP connections to other programs under 'via sockets' on this host
go through memory that both share. Everything else goes to the kernel, unchanged.

  via sockets -- redis-server      and, elsewhere, via sockets -- redis-cli
  via sockets status               programs, their connections, and why one is the kernel's

Options:
  --only PORTS                     connections to or from these ports alone: 80,443
  --not PORTS                      all but those
  --show                           print the environment to set by hand, for systemd or containers
  -h,--help                        print this and exit

OPENVIA_SOCKETS, words with spaces between: off, only=PORTS, not=PORTS, after=CALLS (with bytes,
before the peer is looked for; 4), no-epoll (sockets in epoll sets are the kernel's),
spin=MICROSECONDS (before a call sleeps; 20). What cannot be helped is told: programs linked
statically, and set-user-ID ones. docs/guide/sockets.md tells more.
)";

int fail_sockets(const std::string& why) {
    console::complain("via sockets: {}", why);
    return exit_failed;
}

int misuse(const std::string& why) {
    console::complain("via sockets: {}. 'via help sockets' tells more", why);
    return exit_usage;
}

bool is_port_list(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789,") == std::string::npos;
}

std::string program_in_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    const char* path = std::getenv("PATH");
    for (const std::string& folder : mpi::folders_of(path == nullptr ? "/usr/bin:/bin" : path)) {
        std::string file = std::string(folder).append("/").append(name);
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

std::string readable(const sockets::Address& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (std::equal(mapped.begin(), mapped.end(), address.host.begin())) {
        inet_ntop(AF_INET, address.host.data() + 12, text.data(), text.size());
        return fmt::format("{}:{}", text.data(), address.port);
    }
    inet_ntop(AF_INET6, address.host.data(), text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), address.port);
}

/// A socket can be bound to what is an address of this host, and to nothing else. Of another
/// network namespace than this command's it cannot be told.
bool is_on_another_host(const sockets::Address& address, std::uint64_t network) {
    const int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return false;
    const int off = 0;
    std::uint64_t own = 0;
    socklen_t length = sizeof own;
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    std::memcpy(&name.sin6_addr, address.host.data(), sizeof name.sin6_addr);
    const bool other = getsockopt(probe, SOL_SOCKET, SO_NETNS_COOKIE, &own, &length) == 0 &&
                       own == network &&
                       setsockopt(probe, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
                       bind(probe, reinterpret_cast<const sockaddr*>(&name), sizeof name) < 0 &&
                       errno == EADDRNOTAVAIL;
    close(probe);
    return other;
}

std::string why_kernel(const sockets::Stream& stream) {
    const auto reason = static_cast<sockets::Reason>(stream.reason.load());
    if (reason == sockets::Reason::peer_absent &&
        is_on_another_host(stream.ends.remote, stream.ends.network))
        return "the peer is on another host";
    return sockets::text_of(reason);
}

void show_stream(const sockets::Stream& stream) {
    std::string how = why_kernel(stream);
    const std::uint64_t offset = stream.pipe.load();
    const sockets::HeldArena arena =
        offset == 0 ? nullptr : sockets::Arena::open(stream.pipe_arena.load());
    std::string through = "kernel";
    if (arena != nullptr) {
        const sockets::Pipe& pipe = *arena->at<sockets::Pipe>(offset);
        if (pipe.state() == sockets::before) how = "the peer has not taken its next step";
        if (pipe.state() == sockets::stored) {
            through = "memory";
            how = fmt::format("{} bytes sent, {} received", pipe.send[stream.side & 1].bytes.load(),
                              pipe.send[1 - (stream.side & 1)].bytes.load());
        }
    }
    fmt::print("  {} {} {}  {}  {}\n", readable(stream.ends.local),
               stream.side == 0 ? "to" : "from", readable(stream.ends.remote), through, how);
}

int show_status() {
    int programs = 0;
    for (const sockets::HeldArena& arena : sockets::Arena::all()) {
        const sockets::ArenaHead& head = arena->head();
        std::string processes;
        for (const auto& user : head.users)
            if (const std::uint32_t process = user.process.load(); process != 0)
                processes += fmt::format(" {}", process);
        fmt::print("{}{}\n",
                   std::string_view(head.program, strnlen(head.program, sizeof head.program)),
                   processes);
        int left = 1 << 16;  // a program that lies may have closed a chain to a circle
        for (const std::uint64_t first : head.buckets)
            for (std::uint64_t at = first; at != 0 && left-- > 0;
                 at = arena->at<sockets::Stream>(at)->next)
                show_stream(*arena->at<sockets::Stream>(at));
        ++programs;
    }
    for (const sockets::Note& note : sockets::notes()) {
        fmt::print("{} {}\n  kernel  {}\n", note.program, note.process, note.why);
        ++programs;
    }
    if (programs == 0)
        fmt::print(
            "No program under 'via sockets' has had a connection for more than a few "
            "calls.\n");
    return exit_good;
}

int start(const std::string& library, const std::string& options, const Words& command) {
    const std::string file = program_in_path(command[0]);
    if (file.empty()) return fail_sockets(fmt::format("there is no {} in PATH", command[0]));
    if (const std::string why = sockets::why_not_loaded(file); !why.empty()) {
        console::complain("via sockets: {} runs over the kernel's sockets: {}", command[0], why);
        sockets::leave_note({static_cast<std::uint32_t>(getpid()), command[0], why});
    }
    const char* const others = std::getenv("LD_PRELOAD");
    const std::string all = others == nullptr || *others == '\0' ? library : library + ":" + others;
    setenv("LD_PRELOAD", all.c_str(), 1);
    if (!options.empty()) setenv("OPENVIA_SOCKETS", options.c_str(), 1);
    std::vector<char*> pointers;
    for (const std::string& word : command) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    execv(file.c_str(), pointers.data());
    return fail_sockets(fmt::format("{}: {}", file, std::strerror(errno)));
}

}  // namespace

int run_sockets(const Words& given) {
    bool show = false;
    std::string options;
    std::size_t at = 0;
    for (; at < given.size() && given[at].starts_with("-"); ++at) {
        const std::string& word = given[at];
        if (word == "--help" || word == "-h") {
            fmt::print("{}", sockets_help);
            return exit_good;
        }
        if (word == "--") {
            ++at;
            break;
        }
        if (word == "--show") {
            show = true;
        } else if (word == "--only" || word == "--not") {
            if (!options.empty()) return misuse("--only and --not do not go together");
            ++at;
            if (at == given.size() || !is_port_list(given[at]))
                return misuse(word + " takes ports, as 80,443");
            options = word.substr(2) + "=" + given[at];
        } else {
            return misuse("there is no option " + word);
        }
    }
    const Words command(given.begin() + static_cast<std::ptrdiff_t>(at), given.end());
    if (!show && command.size() == 1 && command[0] == "status" && at == 0) return show_status();
    if (!show && command.empty()) return misuse("a program is missing");
    const std::string library = bench::sockets_library();
    if (library.empty()) return fail_sockets("there is no libvia-sockets.so beside this program");
    if (!show) return start(library, options, command);
    fmt::print("LD_PRELOAD={}\n", library);
    if (!options.empty()) fmt::print("OPENVIA_SOCKETS={}\n", options);
    return exit_good;
}

}  // namespace via::cli
