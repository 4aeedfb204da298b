// Memory that two processes share: one exports it, the other attaches to it, stores to it, and
// writes to it by RDMA without the exporter's processor. In two terminals, in any order:
//     shared_segment export
//     shared_segment import
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <via/via.hpp>

using namespace std::chrono_literals;

namespace {

struct Board {
    std::array<std::uint32_t, 100> numbers;
    std::uint32_t stored;  // 1, when the numbers are there
    std::array<char, 60> text;
    std::uint32_t written;  // 1, when the text is there
    std::uint32_t revoked;  // by the exporter
};

template <class T>
T must(via::Expected<T> result) {
    if (!result) {
        std::fprintf(stderr, "shared_segment: %s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// What one side stores with release the other sees with acquire, and all that was stored before.
void tell(std::uint32_t& word) { std::atomic_ref(word).store(1, std::memory_order_release); }
void wait_for(std::uint32_t& word) {
    while (std::atomic_ref(word).load(std::memory_order_acquire) == 0) std::this_thread::yield();
}

Board& board_in(std::span<std::byte> bytes) { return *reinterpret_cast<Board*>(bytes.data()); }

const via::ViOptions rights{.rdma_write = true, .rdma_read = true};

void export_it(via::Nic& nic) {
    auto segment = must(
        via::SharedSegment::create(nic, sizeof(Board), {.rdma_write = true, .rdma_read = true}));
    auto vi = must(via::Vi::create(nic, rights));
    const via::RemoteSegment where = segment.remote();
    auto request = must(via::Listener(nic, "board").wait(10s));
    must(request.accept(vi, std::as_bytes(std::span(&where, 1))));

    Board& board = board_in(segment.bytes());
    wait_for(board.stored);
    std::uint32_t sum = 0;
    for (const std::uint32_t number : board.numbers) sum += number;
    std::printf("stored: %u\n", sum);
    wait_for(board.written);
    std::printf("written by RDMA: %s\n", board.text.data());
    must(segment.revoke());  // from now on the peer's RDMA is refused; its mapping stays
    std::puts("revoked");
    tell(board.revoked);
}

void import_it(via::Nic& nic) {
    auto region = must(via::MemoryRegion::allocate(nic, 4096));
    auto vi = must(via::Vi::create(nic, rights));
    must(vi.connect(must(nic.find_host("localhost")).with("board"), {.wait_for_listener = true}));
    via::RemoteSegment where;
    must(vi.private_data(via::bytes_of(where)));
    auto imported = must(via::ImportedSegment::attach(nic, vi, where, via::Attached::writable));

    Board& board = board_in(imported.bytes());
    for (std::uint32_t n = 0; n < board.numbers.size(); ++n) board.numbers[n] = n;
    tell(board.stored);

    struct {
        std::array<char, 60> text{"it is there"};
        std::uint32_t written = 1;  // last: what lies before it is there first (VIPL 4.24)
    } message;
    std::memcpy(region.bytes().data() + 64, &message, sizeof message);
    must(vi.post_send(region.descriptor(0).rdma_write(where.from(offsetof(Board, text)),
                                                      region.segment(64, sizeof message))));
    must(vi.send_wait(10s));  // a copy by this processor alone
    wait_for(board.revoked);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view role = argc == 2 ? argv[1] : "";
    if (role != "export" && role != "import") {
        std::fputs("usage: shared_segment export\n       shared_segment import\n", stderr);
        return 2;
    }
    via::Nic nic = must(via::Nic::open("shm"));
    must(nic.on_error([](const via::AsyncError&) {}));  // who leaves first is no news
    role == "export" ? export_it(nic) : import_it(nic);
}
