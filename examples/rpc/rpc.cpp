// Requests and answers, several under way at once. In two terminals, in any order:
//     rpc serve
//     rpc ask NUMBER...        asks for the square of each
// Credits hold back requests while the server has no receive posted for them; the number of a
// request travels as immediate data and comes back with its answer.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t depth = 4;  // receives that each side has posted
const via::ViOptions as_agreed{.max_transfer_bytes = sizeof(double), .credits = true};

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "rpc: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double number_in(const via::Completion& message) {
    double number = 0;
    std::memcpy(&number, message.bytes().data(), sizeof number);
    return number;
}

void post_number(via::Vi& vi, via::Buffer buffer, double number, std::uint32_t id) {
    std::memcpy(buffer.bytes().data(), &number, sizeof number);
    must(vi.post_send(buffer.descriptor().send(buffer.segment(sizeof number)).immediate(id)));
    buffer.release();  // the NIC's until the send is done
}

void serve(via::Nic& nic, via::BufferPool& pool) {
    auto vi = must(via::Vi::create(nic, as_agreed));
    for (std::uint32_t n = 0; n < depth; ++n) must(vi.post_receive(pool.take()));
    must(via::Listener(nic, "rpc").accept(vi, 10s));
    for (;;) {
        const auto request = vi.receive_wait(10s);
        if (!request && request.error().flushed()) return;  // the client has gone
        const double number = number_in(must(request));
        const std::uint32_t id = request->immediate().value_or(0);
        // First the receive, then the answer: the client may ask again at once.
        must(vi.post_receive(pool.reclaim(*request)));
        post_number(vi, pool.take(), number * number, id);
        const auto sent = vi.send_wait(10s);
        if (!sent) return;  // it did not wait for its answer
        pool.reclaim(*sent).give_back();
    }
}

double number_of(const char* text) {
    char* end = nullptr;
    const double number = std::strtod(text, &end);
    if (end != text && *end == '\0') return number;
    std::fprintf(stderr, "rpc: no number: %s\n", text);
    std::exit(2);
}

void ask(via::Nic& nic, via::BufferPool& pool, std::span<char* const> texts) {
    std::vector<double> numbers;
    for (const char* const text : texts) numbers.push_back(number_of(text));
    auto vi = must(via::Vi::create(nic, as_agreed));
    for (std::uint32_t n = 0; n < depth; ++n) must(vi.post_receive(pool.take()));
    must(vi.connect(must(nic.find_host("localhost")).with("rpc"), {.wait_for_listener = true}));
    std::map<std::uint32_t, double> asked;
    std::uint32_t next = 0;
    while (next < numbers.size() || !asked.empty()) {
        while (next < numbers.size() && asked.size() < depth) {
            post_number(vi, pool.take(), numbers[next], next);
            asked.emplace(next, numbers[next]);
            ++next;
        }
        const auto answer = must(vi.receive_wait(10s));
        const auto request = asked.extract(answer.immediate().value_or(~0U));
        if (request) std::printf("%g -> %g\n", request.mapped(), number_in(answer));
        must(vi.post_receive(pool.reclaim(answer)));
        pool.reclaim(must(vi.send_wait(10s))).give_back();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    if (!(role == "serve" && argc == 2) && !(role == "ask" && argc > 2)) {
        std::fputs("usage: rpc serve\n       rpc ask NUMBER...\n", stderr);
        return 2;
    }
    via::Nic nic = must(via::Nic::open("shm"));
    must(nic.on_error([](const via::AsyncError&) {}));  // a client that leaves is no news
    auto pool = must(via::BufferPool::create(nic, {.buffers = 3 * depth, .size = sizeof(double)}));
    role == "serve" ? serve(nic, pool)
                    : ask(nic, pool, std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
}
