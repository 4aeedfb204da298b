// How long 8 bytes take there and back, by polling. In two terminals, in any order:
//     ping_cpp serve
//     ping_cpp ask
// A second argument names the NIC; without it, it is shm. ping.c is the same in C.
#include <cstdio>
#include <cstdlib>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

constexpr int rounds = 1000;
constexpr std::size_t length = 8;

// The value, or the end of the program with what failed, why and what to do.
template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "ping_cpp: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

struct End {
    explicit End(const char* name)
        : nic(must(via::Nic::open(name))),
          memory(must(via::MemoryRegion::allocate(nic, 4096))),
          vi(must(via::Vi::create(nic, {.max_transfer_bytes = length}))) {
        send.send(memory.segment(1024, length));
        receive.receive(memory.segment(2048, length));
        must(vi.post_receive(receive));  // before anybody can send
    }

    void one_way() {
        must(vi.post_send(send));
        while (!must(vi.send_done())) {
        }
    }
    void other_way(bool again) {
        while (!must(vi.receive_done())) {
        }
        if (again) must(vi.post_receive(receive));
    }

    via::Nic nic;
    via::MemoryRegion memory;
    via::Vi vi;
    via::Descriptor send = memory.descriptor(0);
    via::Descriptor receive = memory.descriptor(64);
};

void serve(End& end) {
    must(via::Listener(end.nic, "ping").accept(end.vi, 10s));
    for (int n = 1; n <= rounds; ++n) {
        end.other_way(n < rounds);
        end.one_way();
    }
}

void ask(End& end) {
    const auto there = must(end.nic.find_host("localhost")).with("ping");
    must(end.vi.connect(there, {.wait_for_listener = true}));
    const auto begin = std::chrono::steady_clock::now();
    for (int n = 1; n <= rounds; ++n) {
        end.one_way();
        end.other_way(n < rounds);
    }
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    std::printf("%d round trips, %.2f us each\n", rounds, taken.count() / rounds);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc > 1 ? argv[1] : "";
    if (argc > 3 || (role != "serve" && role != "ask")) {
        std::fputs("usage: ping_cpp serve|ask [NIC]\n", stderr);
        return 2;
    }
    End end(argc > 2 ? argv[2] : "shm");
    role == "serve" ? serve(end) : ask(end);
}
