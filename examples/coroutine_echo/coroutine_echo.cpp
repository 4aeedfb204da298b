// A server that is written as if it had one client, and a client for it.
//     coroutine_echo serve CLIENTS    sends back what comes, ends after so many clients
//     coroutine_echo ask TEXT...      says each text, prints each answer
// Each connection is a coroutine; one thread runs all of them, and sleeps when there is nothing.
#include <cstdio>
#include <cstdlib>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t text_bytes = 64;
constexpr via::ViOptions as_agreed{.max_transfer_bytes = text_bytes};

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "coroutine_echo: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// One connection, from its first message to the end of the client.
via::Detached echo(via::Reactor& reactor, via::BufferPool pool, via::Vi connected, int& left) {
    {
        via::AsyncVi vi(reactor, std::move(connected));
        for (;;) {
            const auto message = co_await vi.receive();
            if (!message) break;  // flushed: the client has gone
            const via::Buffer buffer = pool.reclaim(*message);
            must(vi.vi().post_receive(pool.take()));  // for the next one, before it can come
            const auto answer = buffer.segment(message->length());
            if (!co_await vi.send(buffer.descriptor().send(answer))) break;
        }
    }
    --left;
}

// Whoever comes is served beside the others.
via::Detached accept(via::Nic& nic, via::AsyncListener& listener, via::Reactor& reactor,
                     int clients, int& left) {
    via::ViOptions options = as_agreed;
    options.sends = options.receives = &reactor.queue();
    for (int n = 0; n < clients; ++n) {
        auto request = must(co_await listener.accept());
        auto pool = must(via::BufferPool::create(nic, {.buffers = 2, .size = text_bytes}));
        auto vi = must(via::Vi::create(nic, options));
        must(vi.post_receive(pool.take()));
        must(request.accept(vi));
        echo(reactor, std::move(pool), std::move(vi), left);
    }
}

void serve(via::Nic& nic, int clients) {
    auto queue = must(via::CompletionQueue::create(nic));
    via::Reactor reactor(queue);
    via::AsyncListener listener(reactor, via::Listener(nic, "echo"));
    int left = clients;
    accept(nic, listener, reactor, clients, left);
    while (left > 0) must(reactor.wait());
}

void ask(via::Nic& nic, std::span<char* const> texts) {
    auto pool = must(via::BufferPool::create(nic, {.buffers = 2, .size = text_bytes}));
    auto vi = must(via::Vi::create(nic, as_agreed));
    must(vi.connect(must(nic.find_host("localhost")).with("echo"), {.wait_for_listener = true}));
    for (const std::string_view text : texts) {
        must(vi.post_receive(pool.take()));
        via::Buffer buffer = pool.take();
        const std::size_t length = text.copy(reinterpret_cast<char*>(buffer.bytes().data()), 64);
        must(vi.post_send(std::move(buffer), length));
        const auto answer = must(vi.receive_wait(10s));
        std::printf("%.*s\n", static_cast<int>(answer.length()),
                    reinterpret_cast<const char*>(answer.bytes().data()));
        pool.reclaim(answer).give_back();
        pool.reclaim(must(vi.send_wait(10s))).give_back();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    const int clients = role == "serve" && argc == 3 ? std::atoi(argv[2]) : 0;
    if (clients < 1 && !(role == "ask" && argc > 2)) {
        std::fputs("usage: coroutine_echo serve CLIENTS\n       coroutine_echo ask TEXT...\n",
                   stderr);
        return 2;
    }
    via::Nic nic = must(via::Nic::open("shm"));
    must(nic.on_error([](const via::AsyncError&) {}));  // a client that leaves is no news
    role == "serve" ? serve(nic, clients)
                    : ask(nic, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
}
