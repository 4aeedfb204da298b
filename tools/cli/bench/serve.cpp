// The door: listens, hears who comes, and lets one in at a time.
#include "bench/serve.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/clock.hpp"
#include "bench/control.hpp"
#include "bench/serve_client.hpp"

namespace via::bench {

namespace {

constexpr std::int64_t greeting_ns = 5'000'000'000;  // for a whole hello
// Who comes just after the last one has left should not be sent away.
constexpr std::int64_t waiting_ns = 2'000'000'000;
constexpr std::size_t most_visitors = 32;  // that have not said hello yet
constexpr std::size_t hello_bytes = control_header_bytes + sizeof(std::uint32_t);
constexpr std::int64_t second_ns = 1'000'000'000;

// Somebody who has connected and not said who it is.
struct Visitor {
    FileHandle socket;
    std::string name;
    std::int64_t deadline_ns = 0;
    std::array<std::byte, hello_bytes> heard{};
    std::size_t bytes = 0;

    bool is_heard() const { return bytes == heard.size(); }
};

void say_goodbye(const FileHandle& socket, const std::string& why) {
    const auto bytes = refusal(why);
    (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

class Server {
public:
    explicit Server(const ServeOptions& options) : options_(options) {}

    Failure run() {
        if (auto listening = listen(); !listening) return listening.error();
        for (;;) {
            if (auto turned = turn(); !turned) return turned.error();
        }
    }

private:
    Status listen();
    Status bind_to(const Address& address);
    Status turn();
    int turn_ms() const;
    void let_in();
    bool hear(Visitor& visitor);
    void decide(Visitor& visitor);
    void start_serving(Visitor& visitor, const Hello& hello);
    void look_after_serving();
    void complain(const std::string& what);

    const ServeOptions& options_;
    FileHandle listener_;
    std::vector<Visitor> visitors_;
    pid_t serving_ = -1;
    FileHandle serving_ends_;  // readable when that process has ended
    std::string client_;
    std::int64_t since_ns_ = 0;
    std::int64_t complained_ns_ = 0;
    std::uint64_t kept_quiet_ = 0;
};

Status Server::bind_to(const Address& address) {
    listener_ =
        FileHandle(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) return fail_errno("socket");
    const int on = 1;
    const int off = 0;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(listener_.get(), address.get(), address.bytes()) < 0 ||
        ::listen(listener_.get(), 16) < 0) {
        return fail_errno(fmt::format("cannot listen at {} (bind, listen)", address.text()));
    }
    return {};
}

Status Server::listen() {
    const Address& address = options_.address;
    auto bound = bind_to(address);
    // A machine without IPv6.
    if (!bound && address.is_any()) bound = bind_to(address.any_ipv4());
    if (!bound) return bound;
    const auto own = Address::own_of(listener_.get());
    if (!own) return std::unexpected(own.error());
    options_.tell(fmt::format("listening at {}, processor {}; a signal ends it (Ctrl-C)",
                              own->text(), options_.cpu));
    return {};
}

// Sleeps until something happens, and looks at everything that may have.
Status Server::turn() {
    std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}, {serving_ends_.get(), POLLIN, 0}};
    for (const Visitor& visitor : visitors_) {
        const short what = visitor.is_heard() ? 0 : POLLIN;
        polled.push_back({visitor.socket.get(), what, 0});
    }
    const int ready = ::poll(polled.data(), polled.size(), turn_ms());
    if (ready < 0 && errno != EINTR) return fail_errno("poll");
    if (serving_ > 0) look_after_serving();
    for (std::size_t i = 0; i < visitors_.size(); ++i) {
        Visitor& visitor = visitors_[i];
        if (ready > 0 && polled[2 + i].revents != 0 && !hear(visitor)) visitor.socket.reset();
        const bool late = now_ns() > visitor.deadline_ns;
        if (!visitor.socket) continue;
        if (visitor.is_heard() && (serving_ < 0 || late)) {
            decide(visitor);
            visitor.socket.reset();
        } else if (late) {
            complain(visitor.name + " said nothing");
            visitor.socket.reset();
        }
    }
    std::erase_if(visitors_, [](const Visitor& visitor) { return !visitor.socket; });
    if (ready > 0 && polled[0].revents != 0) let_in();
    return {};
}

int Server::turn_ms() const {
    const bool nothing_to_time = visitors_.empty() && (serving_ < 0 || serving_ends_);
    return nothing_to_time ? -1 : 500;
}

void Server::let_in() {
    FileHandle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket && errno != ECONNABORTED) {  // no descriptor left, for instance: later
        constexpr timespec pause{0, 100'000'000};
        ::nanosleep(&pause, nullptr);
    }
    if (!socket) return;
    const auto peer = Address::peer_of(socket.get());
    if (!peer) return;
    if (visitors_.size() == most_visitors) {
        say_goodbye(socket, "too many others are at the door");
        complain(peer->text() + " was sent away, too many others are at the door");
        return;
    }
    Visitor visitor;
    visitor.socket = std::move(socket);
    visitor.name = peer->text();
    visitor.deadline_ns = now_ns() + greeting_ns;
    visitors_.push_back(std::move(visitor));
}

// False: we are done with this one.
bool Server::hear(Visitor& visitor) {
    if (visitor.is_heard()) return false;  // gone while it waited
    const ssize_t got = ::recv(visitor.socket.get(), visitor.heard.data() + visitor.bytes,
                               visitor.heard.size() - visitor.bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;  // who only knocks is not worth a word
    visitor.bytes += static_cast<std::size_t>(got);
    if (visitor.bytes >= control_header_bytes) {
        const auto header = parse_header(std::span(visitor.heard).first(control_header_bytes));
        std::string why;
        if (!header) {
            why = "this is 'via bench serve', and that was no client of it";
        } else if (header->version != control_version) {
            why = fmt::format(
                "speaks version {} of the bench's protocol, you speak {}; use the "
                "same OpenVIA on both machines",
                control_version, header->version);
        } else if (header->kind != Kind::hello ||
                   header->body_bytes != hello_bytes - control_header_bytes) {
            why = "that was no hello";
        }
        if (!why.empty()) {
            say_goodbye(visitor.socket, why);
            complain(fmt::format("{} was refused: {}", visitor.name, why));
            return false;
        }
    }
    if (visitor.is_heard()) visitor.deadline_ns = now_ns() + waiting_ns;
    return true;
}

void Server::decide(Visitor& visitor) {
    const auto hello = parse_hello(std::span(visitor.heard).subspan(control_header_bytes));
    std::string why;
    if (serving_ > 0) {
        why = fmt::format("busy: has been serving {} for {} s; try again later", client_,
                          (now_ns() - since_ns_) / second_ns);
    } else if (!hello || hello->seconds > static_cast<std::uint32_t>(options_.max_seconds)) {
        why = fmt::format(
            "serves a client for at most {} s: ask for less, or let it serve longer "
            "(--max-seconds, on either side)",
            options_.max_seconds);
    }
    if (why.empty()) return start_serving(visitor, *hello);
    say_goodbye(visitor.socket, why);
    complain(fmt::format("{} was refused: {}", visitor.name, why));
}

void Server::start_serving(Visitor& visitor, const Hello& hello) {
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
        say_goodbye(visitor.socket, "cannot start a process");
        complain(fmt::format("fork: {}", std::strerror(errno)));
        return;
    }
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(0);
        FileHandle socket = std::move(visitor.socket);
        listener_.reset();
        visitors_.clear();
        serve_client(std::move(socket), hello, options_);
        std::fflush(nullptr);
        ::_exit(0);
    }
    serving_ = pid;
    serving_ends_ = FileHandle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    client_ = visitor.name;
    since_ns_ = now_ns();
}

// That process ends its own ones when it ends, however that comes.
void Server::look_after_serving() {
    int status = 0;
    if (::waitpid(serving_, &status, WNOHANG) != serving_) return;
    serving_ = -1;
    serving_ends_.reset();
    if (WIFSIGNALED(status)) {
        options_.tell(fmt::format("{}: the process that served it ended by signal {}", client_,
                                  WTERMSIG(status)));
    }
}

// Strangers must not fill somebody's disk: one line a second.
void Server::complain(const std::string& what) {
    if (complained_ns_ != 0 && now_ns() - complained_ns_ < second_ns) {
        ++kept_quiet_;
        return;
    }
    options_.tell(kept_quiet_ == 0 ? what : fmt::format("{} (and {} more)", what, kept_quiet_));
    complained_ns_ = now_ns();
    kept_quiet_ = 0;
}

}  // namespace

Failure serve(const ServeOptions& options) {
    ::signal(SIGPIPE, SIG_IGN);
    return Server(options).run();
}

}  // namespace via::bench
