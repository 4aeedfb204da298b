// What a peer says on the channel's socket: greetings, descriptors with them, and whatever else.
// The messages' own checks first, then a device that hears them from a real socket.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "device/shm/hello.hpp"
#include "device/shm/shm_device.hpp"
#include "input.hpp"

using namespace via;
using namespace via::device;
using namespace via::device::shm;

namespace {

HostAddress host_address() {
    HostAddress address;
    address.length = 6;
    address.bytes = {127, 0, 0, 1, 38, 13};
    return address;
}

void check_messages(std::span<const std::byte> bytes) {
    const auto hello = check_hello(bytes);
    if (hello) {
        fuzz::require((Layout{hello->ring_slots, hello->arena_bytes}.valid()),
                      "the sizes are valid");
        fuzz::require(hello->name_length <= nic_name_max, "the name fits");
    } else {
        for (const char c : hello.error().text)
            fuzz::require(c >= ' ' && c <= '~', "reasons can be printed");
    }
    if (const auto text = check_farewell(bytes)) {
        fuzz::require(text->size() <= Farewell::text_max, "the text fits");
        for (const char c : *text) fuzz::require(c >= ' ' && c <= '~', "goodbyes can be printed");
    }
    int pid = -1;
    parse_nic_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, pid);
}

/// The device, open for the whole run.
class Station {
public:
    Station() {
        fuzz::require(mkdtemp(directory_.data()) != nullptr, "there is a directory");
        ShmConfig config;
        config.directory = directory_;
        config.address = host_address();
        config.key = 1;
        config.ring_slots = 64;
        config.arena_bytes = 1U << 16;
        config.handshake_timeout = milliseconds(1);
        config.report = [](const std::string& text) {
            for (const char c : text) fuzz::require(c >= ' ' && c <= '~', "reports can be printed");
        };
        auto opened = ShmDevice::open(config);
        fuzz::require(opened.has_value(), "the device opens");
        device_ = std::move(*opened);
        device_->sharing()->expect_offers([](PathId, std::uint64_t) { return true; });
        // The name that most greetings give is there, as that of a good peer is.
        peer_ = directory_ + "/" + make_nic_name(getpid(), 2);
        close(open(peer_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        address_.sun_family = AF_UNIX;
        const std::string path = directory_ + "/" + device_->name();
        std::memcpy(address_.sun_path, path.data(), path.size());
    }
    ~Station() {
        device_.reset();
        unlink(peer_.c_str());
        rmdir(directory_.c_str());
    }

    void hear(fuzz::Input& input) {
        // Each time anew: between inputs libFuzzer may start a program that tells symbols' names.
        const int free_before = free_descriptor();
        socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        fuzz::require(
            connect(socket_, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0,
            "the device can be reached");
        for (int steps = 0; !input.empty() && steps < 20; ++steps) {
            say_something(input);
            turn();
        }
        close(socket_);
        for (const int descriptor : ours_) close(descriptor);
        ours_.clear();
        for (int turns = 0; turns < 5; ++turns) turn();
        fuzz::require(paths_ == 0, "no path outlives its peer");
        fuzz::require(free_descriptor() == free_before, "no descriptor is kept");
    }

private:
    static int free_descriptor() {
        const int free_now = dup(0);
        close(free_now);
        return free_now;
    }

    int make_memory(std::uint8_t kind) {
        const Layout layout{64, 1U << 16};
        const int file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ours_.push_back(file);
        fuzz::require(ftruncate(file, static_cast<off_t>(layout.bytes() + (kind == 1))) == 0,
                      "memory can be made");
        if (kind != 2) {
            struct {
                std::uint64_t magic = channel_magic;
                std::uint32_t version = channel_version, features = 0;
                std::uint32_t ring_slots = 64, arena_bytes = 1U << 16;
            } header;
            fuzz::require(pwrite(file, &header, sizeof header, 0) == sizeof header,
                          "a header can be written");
        }
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | (kind == 3 ? 0 : F_SEAL_SEAL));
        return file;
    }

    void say_something(fuzz::Input& input) {
        std::byte bytes[512] = {};
        std::size_t length = 0;
        const std::uint8_t what = input.byte();
        if (what % 4 == 0) {
            const auto given = input.bytes(input.half() % sizeof bytes);
            std::memcpy(bytes, given.data(), given.size());
            length = given.size();
        } else if (what % 4 == 3) {
            length = 1;
        } else {
            const Hello hello =
                make_hello({64, 1U << 16}, host_address(), make_nic_name(getpid(), 2));
            const Farewell goodbye =
                what % 8 < 4 ? make_goodbye("bye") : make_refusal(Refusal::user, "no");
            const SegmentOffer offer = make_segment_offer(
                input.byte() % 2 != 0 ? Layout{64, 1U << 16}.bytes() : 7, 1, input.byte() % 2 != 0);
            const void* said = &goodbye;
            length = sizeof goodbye;
            if (what % 4 == 1) {
                said = &hello;
                length = sizeof hello;
            } else if (what % 16 == 14) {
                said = &offer;
                length = sizeof offer;
            }
            std::memcpy(bytes, said, length);
            for (unsigned changes = input.byte() % 4; changes != 0; --changes)
                bytes[input.byte() % length] = static_cast<std::byte>(input.byte());
        }
        std::vector<int> attached;
        const std::uint8_t kinds = input.byte();
        if (kinds < 200) attached.push_back(make_memory(kinds % 8));
        if (kinds % 16 == 1) attached.push_back(make_memory(0));
        if (kinds % 16 == 2) attached.push_back(socket_);
        send(bytes, length, attached);
    }

    void send(const std::byte* bytes, std::size_t length, const std::vector<int>& attached) const {
        iovec part{const_cast<std::byte*>(bytes), length};
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (!attached.empty()) {
            message.msg_control = control;
            message.msg_controllen = CMSG_SPACE(sizeof(int) * attached.size());
            cmsghdr* entry = CMSG_FIRSTHDR(&message);
            entry->cmsg_level = SOL_SOCKET;
            entry->cmsg_type = SCM_RIGHTS;
            entry->cmsg_len = CMSG_LEN(sizeof(int) * attached.size());
            std::memcpy(CMSG_DATA(entry), attached.data(), sizeof(int) * attached.size());
        }
        sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    void turn() {
        now_ = now_ + milliseconds(1);
        device_->service(now_);
        PathEvent event;
        while (device_->next_event(event)) {
            if (event.kind == PathEventKind::up) ++paths_;
            if (event.kind == PathEventKind::down) --paths_;
        }
        Frame frames[8];
        device_->receive(frames);
        device_->release();
        atomic_fence(memory_order_seq_cst);
        device_->notify();
    }

    std::string directory_ = "/tmp/via-fuzz-XXXXXX";
    std::string peer_;
    std::unique_ptr<ShmDevice> device_;
    sockaddr_un address_{};
    Time now_{1'000'000};
    int socket_ = -1;
    int paths_ = 0;
    std::vector<int> ours_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    check_messages(std::as_bytes(std::span(data, size)));
    static Station station;
    fuzz::Input input(data, size);
    station.hear(input);
    return 0;
}
