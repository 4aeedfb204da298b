#include "hostile_attacker.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "support/wait.hpp"

namespace system_test {

namespace {

constexpr unsigned char address_of_victim[] = {127, 0, 0, 1, 9741 >> 8, 9741 & 0xFF};

via::HostAddress host_address() {
    via::HostAddress address;
    address.length = sizeof address_of_victim;
    std::memcpy(address.bytes.data(), address_of_victim, sizeof address_of_victim);
    return address;
}

bool readable(int socket, int timeout_ms) {
    pollfd entry{socket, POLLIN, 0};
    return poll(&entry, 1, timeout_ms) == 1;
}

}  // namespace

Attacker::Attacker(const std::string& meeting_place, pid_t victim) : directory_(meeting_place) {
    const std::string prefix = "nic-" + std::to_string(victim) + "-";
    for (const auto& entry : std::filesystem::directory_iterator(meeting_place))
        if (entry.path().filename().string().starts_with(prefix)) victim_ = entry.path().filename();
    require(!victim_.empty(), "the victim has a NIC in " + meeting_place);
    // Its name is where a good peer's would be; else the greeting alone would betray it.
    name_ = directory_ + "/" + shm::make_nic_name(getpid(), 0xBAD);
    close(open(name_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

Attacker::~Attacker() {
    if (socket_ >= 0) close(socket_);
    if (victim_memory_ >= 0) close(victim_memory_);
    for (const int descriptor : kept_) close(descriptor);
    if (memory_ != nullptr) munmap(memory_, memory_bytes_);
    if (theirs_ != nullptr) munmap(const_cast<std::byte*>(theirs_), theirs_bytes_);
}

// The socket
// ----------------------------------------------------------------------------------------

bool Attacker::dial() {
    if (socket_ >= 0) close(socket_);
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    require_call(socket_ >= 0, "socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/" + victim_;
    require(path.size() < sizeof address.sun_path, "the path fits a socket address");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

int Attacker::keep(int descriptor) {
    require_call(descriptor >= 0, "a descriptor for the attack");
    kept_.push_back(descriptor);
    return descriptor;
}

int Attacker::make_memory(const Offer& offer) {
    const int file =
        keep(memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING | offer.memfd_flags));
    const std::size_t bytes = offer.bytes != 0 ? offer.bytes : layout.bytes();
    require_call(ftruncate(file, static_cast<off_t>(bytes)) == 0, "ftruncate");
    if (bytes >= sizeof(shm::Control)) {
        if (memory_ != nullptr) munmap(memory_, memory_bytes_);
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        require_call(at != MAP_FAILED, "mmap");
        memory_ = static_cast<std::byte*>(at);
        memory_bytes_ = bytes;
        if (offer.header) {
            control().magic.store(shm::channel_magic);
            control().version.store(shm::channel_version);
            control().ring_slots.store(layout.ring_slots);
            control().arena_bytes.store(layout.arena_bytes);
        }
    }
    if (offer.seals != 0) require_call(fcntl(file, F_ADD_SEALS, offer.seals) == 0, "F_ADD_SEALS");
    return file;
}

int Attacker::make_mailbox(const Offer& offer) {
    const int file = keep(memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const std::size_t bytes = offer.bytes != 0 ? offer.bytes : shm::mailbox_bytes;
    require_call(ftruncate(file, static_cast<off_t>(bytes)) == 0, "ftruncate");
    if (offer.seals != 0) require_call(fcntl(file, F_ADD_SEALS, offer.seals) == 0, "F_ADD_SEALS");
    return file;
}

shm::Hello Attacker::hello() const {
    return shm::make_hello(layout, host_address(), shm::make_nic_name(getpid(), 0xBAD));
}

bool Attacker::say(const void* bytes, std::size_t length, const std::vector<int>& descriptors) {
    iovec part{const_cast<void*>(bytes), length};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 32)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
        cmsghdr* attached = CMSG_FIRSTHDR(&message);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
        std::memcpy(CMSG_DATA(attached), descriptors.data(), sizeof(int) * descriptors.size());
    }
    return sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(length);
}

std::vector<std::byte> Attacker::hear() {
    require(readable(socket_, watchdog_ms), "the victim says something or hangs up");
    std::vector<std::byte> bytes(shm::message_max);
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t length = 0;
    // Who closes without having read all leaves one such error before what it said.
    do length = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == ECONNRESET);
    bytes.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    const cmsghdr* attached = length > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (attached != nullptr) {
        if (victim_memory_ >= 0) close(victim_memory_);
        std::memcpy(&victim_memory_, CMSG_DATA(attached), sizeof(int));
    }
    return bytes;
}

std::string Attacker::hear_the_end() {
    std::string text;
    for (std::vector<std::byte> bytes = hear(); !bytes.empty(); bytes = hear()) {
        shm::Farewell farewell;
        if (bytes.size() != sizeof farewell) continue;
        std::memcpy(&farewell, bytes.data(), sizeof farewell);
        text.assign(farewell.text,
                    std::min<std::size_t>(farewell.text_length, sizeof farewell.text));
    }
    return text;
}

bool Attacker::hung_up() const {
    pollfd entry{socket_, POLLRDHUP, 0};
    return poll(&entry, 1, 0) == 1;
}

void Attacker::enter(Where where) {
    require(dial(), "the victim's socket can be reached", where);
    require(greet(hello(), {make_memory(), make_mailbox()}), "the greeting is sent", where);
    const std::vector<std::byte> answer = hear();
    shm::Hello greeting;
    require(answer.size() == sizeof greeting && victim_memory_ >= 0, "the victim greets back",
            where);
    std::memcpy(&greeting, answer.data(), sizeof greeting);
    const shm::Layout theirs{greeting.ring_slots, greeting.arena_bytes};
    theirs_bytes_ = theirs.bytes();
    void* at = mmap(nullptr, theirs_bytes_, PROT_READ, MAP_SHARED, victim_memory_, 0);
    require_call(at != MAP_FAILED, "mmap of the victim's memory", where);
    theirs_ = static_cast<const std::byte*>(at);
    const auto& head = *reinterpret_cast<const shm::Control*>(theirs_);
    shadow_.reset(new std::uint64_t[layout.ring_slots]);
    writer_.attach(ring(), layout.ring_slots, arena(), layout.arena_bytes, shadow_.get(),
                   &head.head);
    reader_.attach(reinterpret_cast<const shm::Slot*>(theirs_ + shm::Layout::ring_offset),
                   theirs.ring_slots, theirs_ + theirs.arena_offset(), theirs.arena_bytes,
                   &control().head);
}

// The channel
// ---------------------------------------------------------------------------------------

void Attacker::write_slot(std::uint32_t lengths, const void* bytes, std::size_t length) {
    until("there is room for a slot", [&] {
        writer_.refresh();
        return writer_.published() - writer_.peer_head() < layout.ring_slots;
    });
    const std::uint32_t position = writer_.published();
    shm::Slot& at = ring()[position % layout.ring_slots];
    std::memcpy(reinterpret_cast<std::byte*>(&at.words[1]), bytes, length);
    at.words[0].store(std::uint64_t{lengths} << 32 | (position + 1));
}

bool Attacker::try_send(const wire::Header& header, const void* payload, std::size_t length) {
    via::device::FrameSlot slot;
    const auto header_length = wire::header_length(header.flags);
    writer_.refresh();
    if (!writer_.reserve(header_length, static_cast<std::uint32_t>(length), slot)) return false;
    wire::emit(header, slot.header);
    if (length != 0) std::memcpy(slot.payload, payload, length);
    return writer_.transmit();
}

bool Attacker::send(const wire::Header& header, const void* payload, std::size_t length) {
    bool sent = false;
    until("the victim makes room or hangs up", [&] {
        sent = try_send(header, payload, length);
        return sent || hung_up();
    });
    return sent;
}

void Attacker::wake() const {
    const char byte = 0;
    // A full socket wakes as well; who is gone needs nothing.
    static_cast<void>(!::send(socket_, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool Attacker::send_raw(const void* bytes, std::uint32_t length) {
    via::device::FrameSlot slot;
    until("the victim makes room or hangs up", [&] {
        writer_.refresh();
        return writer_.reserve(length, 0, slot) || hung_up();
    });
    if (slot.header == nullptr) return false;
    if (length != 0) std::memcpy(slot.header, bytes, length);
    return writer_.transmit();
}

// VIs
// -----------------------------------------------------------------------------------------------

bool Attacker::request_vi(VIP_RELIABILITY_LEVEL level, std::uint32_t length, std::uint32_t own,
                          const std::string& door) {
    wire::ConnectMessage message{};
    message.vi = own;
    message.transfer_length_max = length;
    message.reliability = level;
    message.rdma_write_enabled = 1;
    message.rdma_read_enabled = level != VIP_SERVICE_UNRELIABLE;
    message.remote_length = static_cast<std::uint16_t>(door.size());
    std::memcpy(message.remote_discriminator, door.data(), door.size());
    wire::Header header;
    header.kind = wire::FrameKind::request;
    return send(header, &message, sizeof message);
}

std::uint32_t Attacker::connect_vi(VIP_RELIABILITY_LEVEL level, std::uint32_t length,
                                   std::uint32_t own, Where where) {
    std::optional<Received> answer;
    until(
        "the victim listens and accepts",
        [&] {
            require(request_vi(level, length, own, "evil"), "the request is sent", where);
            wake();
            until(
                "the victim answers",
                [&] {
                    answer = receive();
                    return answer && (answer->header.kind == wire::FrameKind::accept ||
                                      answer->header.kind == wire::FrameKind::refuse);
                },
                where);
            return answer->header.kind == wire::FrameKind::accept;
        },
        where);
    wire::ConnectMessage message;
    require(answer->payload.size() == sizeof message, "the acceptance is whole", where);
    std::memcpy(&message, answer->payload.data(), sizeof message);
    return message.vi;
}

std::optional<Attacker::Received> Attacker::receive() {
    via::device::Frame frame;
    if (reader_.take(frame) != shm::RingReader::Take::frame) return {};
    Received received;
    require(wire::parse(frame.bytes, frame.length, received.header) == wire::ParseError::none,
            "the victim sends proper frames");
    const std::size_t header_length = wire::header_length(received.header.flags);
    const std::byte* payload =
        frame.payload == nullptr ? frame.bytes + header_length : frame.payload;
    const std::size_t length =
        frame.payload == nullptr ? frame.length - header_length : frame.payload_length;
    received.payload.assign(payload, payload + length);
    reader_.release();
    reader_.announce();
    return received;
}

Attacker::Received Attacker::wait_frame(wire::FrameKind kind, Where where) {
    std::optional<Received> received;
    until(
        "the victim sends such a frame",
        [&] {
            received = receive();
            require(received || !hung_up(), "the victim stays on the line", where);
            return received && received->header.kind == kind;
        },
        where);
    return *received;
}

}  // namespace system_test
