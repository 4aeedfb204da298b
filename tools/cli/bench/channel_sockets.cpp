// TCP over loopback as `via sockets` carries it: tcp-socket's loops, whose calls go to
// libvia-sockets.so as those of a program that was started under it.
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "bench/loops.hpp"
#include "bench/sockets_library.hpp"
#include "bench/stream_end.hpp"

namespace via::bench {

namespace {

/// Its functions, which bear the names of the C library's. It stays loaded.
class SocketsLibrary {
public:
    Status load() {
        const std::string file = sockets_library();
        if (file.empty()) return fail("there is no libvia-sockets.so beside this program");
        library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library_ == nullptr) return fail("{}", ::dlerror());
        const bool all = find(calls.read, "read") && find(calls.write, "write") &&
                         find(calls.fcntl, "fcntl") && find(socket, "socket") &&
                         find(connect, "connect") && find(listen, "listen") &&
                         find(accept4, "accept4") && find(close, "close");
        return all ? Status{} : fail("{} does not have what it should", file);
    }

    StreamCalls calls;
    decltype(&::socket) socket = nullptr;
    decltype(&::connect) connect = nullptr;
    decltype(&::listen) listen = nullptr;
    decltype(&::accept4) accept4 = nullptr;
    decltype(&::close) close = nullptr;

private:
    template <class Function>
    bool find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(::dlsym(library_, name));
        return function != nullptr;
    }

    void* library_ = nullptr;
};

class SocketsEndpoint final : public Endpoint {
public:
    explicit SocketsEndpoint(Link& link) : link_(link) {}
    ~SocketsEndpoint() override {
        if (socket_ >= 0) library_.close(socket_);
    }

    // The second side listens, and the first one learns where.
    Status open() override {
        if (auto loaded = library_.load(); !loaded) return loaded;
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int made = library_.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made < 0) return fail_errno("socket");
        auto* const name = reinterpret_cast<sockaddr*>(&address);
        socklen_t length = sizeof address;
        if (!link_.is_first()) {
            if (::bind(made, name, length) < 0) return fail_errno("bind");
            if (library_.listen(made, 1) < 0) return fail_errno("listen");
            if (::getsockname(made, name, &length) < 0) return fail_errno("getsockname");
            link_.mine().port = ntohs(address.sin_port);
        }
        if (!link_.meet()) return fail("{}", called_off);
        if (link_.is_first()) {
            address.sin_port = htons(static_cast<std::uint16_t>(link_.theirs().port));
            if (library_.connect(made, name, length) < 0) return fail_errno("connect");
            socket_ = made;
        } else {
            socket_ = library_.accept4(made, nullptr, nullptr, SOCK_CLOEXEC);
            if (socket_ < 0) return fail_errno("accept");
            library_.close(made);
        }
        const int on = 1;
        if (::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
            return fail_errno("TCP_NODELAY");
        if (auto moved = move_to_memory(); !moved) return moved;
        stream_.emplace(link_, StreamFiles{socket_, socket_, library_.calls});
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(*stream_, link_, question, effort);
    }

private:
    // The ends find each other after a few calls with bytes.
    Status move_to_memory() {
        constexpr int most_turns = 64;
        char byte = 0;
        for (int turn = 0; turn < most_turns; ++turn) {
            if (link_.is_first() && library_.calls.write(socket_, &byte, 1) != 1)
                return fail_errno("write");
            if (library_.calls.read(socket_, &byte, 1) != 1) return fail_errno("read");
            if (!link_.is_first() && library_.calls.write(socket_, &byte, 1) != 1)
                return fail_errno("write");
        }
        const std::string why = why_in_kernel(socket_);
        return why.empty() ? Status{} : fail("libvia-sockets.so leaves it to the kernel: {}", why);
    }

    Link& link_;
    SocketsLibrary library_;
    int socket_ = -1;
    std::optional<StreamEnd> stream_;
};

class SocketsChannel final : public Channel {
public:
    SocketsChannel() : Channel("sockets") {}

    Question adapt(const Question& asked) const override { return without_vis(asked); }
    std::string refuses(const Question&) const override { return {}; }
    Status prepare(std::uint64_t) override { return {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<SocketsEndpoint>(link);
    }
};

}  // namespace

std::unique_ptr<Channel> make_sockets() { return std::make_unique<SocketsChannel>(); }

}  // namespace via::bench
