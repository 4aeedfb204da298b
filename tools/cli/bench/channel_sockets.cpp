// TCP as `via sockets` carries it: tcp-socket's loops, whose calls go to libvia-sockets.so as those
// of a program that was started under it.
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
    SocketsEndpoint(Link& link, const Places& places) : link_(link), places_(places) {}
    ~SocketsEndpoint() override {
        if (socket_ >= 0) library_.close(socket_);
    }

    // The second side listens, and the first one learns where.
    Status open() override {
        if (auto loaded = library_.load(); !loaded) return loaded;
        auto made = places_.make_socket(link_.own(), SOCK_STREAM, library_.socket);
        if (!made) return std::unexpected(made.error());
        const Address& listening = places_.address(1);
        if (!link_.is_first()) {
            if (::bind(made->get(), listening.get(), listening.bytes()) < 0)
                return fail_errno("bind to " + listening.machine_text());
            if (library_.listen(made->get(), 1) < 0) return fail_errno("listen");
            const auto own = Address::own_of(made->get());
            if (!own) return std::unexpected(own.error());
            link_.mine().port = own->port();
        }
        if (!link_.meet()) return fail("{}", called_off);
        if (link_.is_first()) {
            const Address there =
                listening.with_port(static_cast<std::uint16_t>(link_.theirs().port));
            if (library_.connect(made->get(), there.get(), there.bytes()) < 0)
                return fail_errno("connect to " + there.text());
            socket_ = made->release();
        } else {
            socket_ = library_.accept4(made->get(), nullptr, nullptr, SOCK_CLOEXEC);
            if (socket_ < 0) return fail_errno("accept");
        }
        const int on = 1;
        if (::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
            return fail_errno("TCP_NODELAY");
        if (auto met = let_ends_meet(); !met) return met;
        stream_.emplace(link_, StreamFiles{socket_, socket_, library_.calls});
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(*stream_, link_, question, effort);
    }

private:
    // The ends find each other after a few calls with bytes, and on one host memory for more.
    Status let_ends_meet() {
        constexpr int most_turns = 64;
        char byte = 0;
        for (int turn = 0; turn < most_turns; ++turn) {
            if (link_.is_first() && library_.calls.write(socket_, &byte, 1) != 1)
                return fail_errno("write");
            if (library_.calls.read(socket_, &byte, 1) != 1) return fail_errno("read");
            if (!link_.is_first() && library_.calls.write(socket_, &byte, 1) != 1)
                return fail_errno("write");
        }
        if (places_.apart()) return {};
        const std::string why = why_in_kernel(socket_);
        return why.empty() ? Status{} : fail("libvia-sockets.so leaves it to the kernel: {}", why);
    }

    Link& link_;
    const Places& places_;
    SocketsLibrary library_;
    int socket_ = -1;
    std::optional<StreamEnd> stream_;
};

class SocketsChannel final : public Channel {
public:
    explicit SocketsChannel(const Places& places) : Channel("sockets"), places_(places) {}

    Question adapt(const Question& asked) const override { return without_vis(asked); }
    std::string refuses(const Question&) const override { return {}; }
    Status prepare(std::uint64_t) override { return {}; }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<SocketsEndpoint>(link, places_);
    }

private:
    Places places_;
};

}  // namespace

std::unique_ptr<Channel> make_sockets(const Places& places) {
    return std::make_unique<SocketsChannel>(places);
}

}  // namespace via::bench
