// For this folder's tests only: directories, devices that turn, a peer that may lie.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/shm/message.hpp"
#include "device/shm/shm_device.hpp"

namespace via::device::shm::test {

/// Only ends a test that hangs; nothing is synchronised by it.
constexpr int watchdog_ms = 30000;

inline std::string& temporary_root() {
    static std::string root = "/tmp";
    return root;
}

inline HostAddress test_address(std::uint8_t last = 1) {
    HostAddress address;
    address.bytes = {127, 0, 0, last, 0x26, 0x0D};
    address.length = 6;
    return address;
}

/// Where NICs meet: the folder of test_address() in a directory of its own.
class Directory {
public:
    Directory() : machine(temporary_root() + "/via-shm-test-XXXXXX") {
        if (::mkdtemp(machine.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << machine;
        make(test_address());
    }
    /// The folder of another address beside that one.
    Directory(const Directory& neighbour, const HostAddress& address)
        : machine(neighbour.machine), is_guest_(true) {
        make(address);
    }
    ~Directory() {
        for (const std::string& name : names()) ::unlink((path + "/" + name).c_str());
        ::rmdir(path.c_str());
        if (!is_guest_) ::rmdir(machine.c_str());
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    std::vector<std::string> names() const;
    std::string machine;  ///< holds the folders
    std::string path;

private:
    void make(const HostAddress& address) {
        path = machine + "/" + folder_name(address);
        if (::mkdir(path.c_str(), 0700) != 0) ADD_FAILURE() << "mkdir " << path;
    }
    bool is_guest_ = false;
};

//// The names in `path`, without . and .. ; also counts /proc/self/fd.
std::vector<std::string> list_directory(const std::string& path);
std::size_t count_descriptors();
/// Of channels, and of segments.
std::size_t count_mappings();
std::size_t count_segment_mappings();

/// Memory as a program's agent makes it, mapped.
class TestSegment {
public:
    explicit TestSegment(std::size_t bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    ~TestSegment();
    TestSegment(const TestSegment&) = delete;
    const SharedMemory& memory() const { return memory_; }

private:
    SharedMemory memory_;
};

inline Discriminator discriminator(const std::string& text) {
    Discriminator result;
    std::memcpy(result.bytes.data(), text.data(), text.size());
    result.length = static_cast<std::uint16_t>(text.size());
    return result;
}

inline NetAddress address_of(const std::string& text) {
    return {test_address(), discriminator(text)};
}

/// A device and all that its events and reports said.
class Node {
public:
    explicit Node(const Directory& directory, std::function<void(ShmConfig&)> adjust = {});

    /// One service() at `now` and all events.
    void turn();
    bool has(PathEventKind kind) const { return find(kind) != nullptr; }
    const PathEvent* find(PathEventKind kind) const;
    std::size_t count(PathEventKind kind) const;
    bool reported(const std::string& part) const;
    /// Blocks until the wait handle is readable; false: the watchdog.
    bool wait() const;

    ShmDevice* operator->() const { return device.get(); }
    ShmDevice& operator*() const { return *device; }

    std::unique_ptr<ShmDevice> device;
    std::vector<PathEvent> events;
    std::vector<std::string> reports;
    std::string error;
    Time now = Time{1'000'000'000};
    bool expects_segments = true;  ///< whatever is offered answers a question
};

/// Turns all nodes until `done`; false: the watchdog.
bool turn_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done);

struct Paths {
    PathId from, to;
};
/// `to` listens to `name`, `from` resolves it; both paths.
Paths connect(Node& from, Node& to, const std::string& name = "x");

/// Sends one frame with contents made from `seed`; false: no room.
bool send(ShmDevice& device, PathId path, std::uint32_t header, std::uint32_t payload,
          unsigned seed);
/// The contents that send() makes.
std::vector<std::byte> contents(std::uint32_t length, unsigned seed);
/// Checks a received frame against send()'s.
::testing::AssertionResult holds(const Frame& frame, std::uint32_t header, std::uint32_t payload,
                                 unsigned seed);
/// Sends one frame and receives it at the other node.
void expect_passes(Node& from, PathId out, Node& to, PathId in, std::uint32_t header,
                   std::uint32_t payload, unsigned seed);

/// A peer that speaks the protocol byte by byte, so that it can break it.
class Liar {
public:
    /// Its name is in the directory, as that of a good peer is.
    explicit Liar(const Directory& directory) : directory_(directory.path) {
        settle(make_nic_name(::getpid(), 0xBAD));
    }
    ~Liar();

    /// Connects to the NIC called `name`.
    bool connect(const std::string& name);
    /// Makes an entry `name` in the directory; it stays until that goes.
    void settle(const std::string& name) const {
        ::close(::open((directory_ + "/" + name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    /// What a good peer would create; `change` may damage it before it is sealed.
    struct MemoryOptions {
        int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        std::size_t bytes = 0;  ///< 0: what the layout demands
    };
    int make_memory(const MemoryOptions& options);
    int make_memory() { return make_memory(MemoryOptions{}); }
    /// The mailbox that who comes brings along; bytes 0: as it shall be.
    int make_mailbox(const MemoryOptions& options);
    int make_mailbox() { return make_mailbox(MemoryOptions{}); }
    Hello hello() const;
    bool send_bytes(const void* bytes, std::size_t length, std::vector<int> descriptors = {});
    bool greet(const Hello& greeting, int descriptor) {
        return send_bytes(&greeting, sizeof greeting, {descriptor, make_mailbox()});
    }
    /// Whom we were come to by: one descriptor is enough.
    bool greet_back(const Hello& greeting, int descriptor) {
        return send_bytes(&greeting, sizeof greeting, {descriptor});
    }
    /// Connects and greets as a good peer would; the node answers when it turns.
    bool enter(const std::string& name);
    /// Next message of the node; empty: none yet or end of file.
    std::vector<std::byte> hear();
    bool hung_up() const;
    /// Maps the memory that came with the node's greeting.
    bool take_greeting();

    Layout layout{1024, 1U << 20};
    int socket = -1;
    std::byte* memory = nullptr;  ///< ours, writable
    Slot* mailbox = nullptr;      ///< of both
    const std::byte* node_memory = nullptr;
    int node_memory_fd = -1;

    Control& control() const { return *reinterpret_cast<Control*>(memory); }
    Slot* ring() const { return reinterpret_cast<Slot*>(memory + Layout::ring_offset); }
    const Control& node_control() const { return *reinterpret_cast<const Control*>(node_memory); }

private:
    std::string directory_;
    Layout node_layout_{1024, 1U << 20};
    std::vector<int> descriptors_;
};

/// A forked process that runs `body` and exits 0 if it returns true. One pipe each way, one byte
/// at a time, to go step by step together.
class Child {
public:
    using Body = std::function<bool(Child&)>;
    explicit Child(const Body& body);
    ~Child();

    void tell(char what) const;
    /// 0: the other side is gone or the watchdog.
    char hear() const;
    void signal(int number) const {
        if (pid > 0) ::kill(pid, number);
    }
    /// Waits for its end; true: exit status 0.
    bool join();

    pid_t pid = -1;

private:
    int in_ = -1, out_ = -1;
};

// ---------------------------------------------------------------- definitions

inline std::vector<std::string> Directory::names() const { return list_directory(path); }

/// As if it were made an hour ago.
inline void set_back(const std::string& path) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
}

inline std::vector<std::string> list_directory(const std::string& path) {
    std::vector<std::string> names;
    DIR* listing = ::opendir(path.c_str());
    if (listing == nullptr) return names;
    while (const dirent* entry = ::readdir(listing)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(listing);
    return names;
}

inline std::size_t count_descriptors() { return list_directory("/proc/self/fd").size() - 1; }

inline std::size_t count_mappings_of(const char* name) {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find(name) != std::string::npos) ++count;
    }
    return count;
}
inline std::size_t count_mappings() { return count_mappings_of("via-channel"); }
inline std::size_t count_segment_mappings() { return count_mappings_of("via-segment"); }

inline TestSegment::TestSegment(std::size_t bytes, int seals) {
    memory_.length = bytes;
    memory_.descriptor = ::memfd_create("via-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(::ftruncate(memory_.descriptor, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::fcntl(memory_.descriptor, F_ADD_SEALS, seals), 0);
    memory_.base = static_cast<std::byte*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.descriptor, 0));
}
inline TestSegment::~TestSegment() {
    ::munmap(memory_.base, memory_.length);
    ::close(memory_.descriptor);
}

inline Node::Node(const Directory& directory, std::function<void(ShmConfig&)> adjust) {
    static std::uint64_t key = 0;
    ShmConfig config;
    config.directory = directory.path;
    config.address = test_address();
    config.key = ++key;
    config.report = [this](const std::string& text) { reports.push_back(text); };
    if (adjust) adjust(config);
    auto opened = ShmDevice::open(config);
    if (opened) {
        device = std::move(*opened);
        device->sharing()->expect_offers(
            [this](PathId, std::uint64_t) { return expects_segments; });
    } else {
        error = opened.error();
    }
}

inline void Node::turn() {
    device->service(now);
    PathEvent event;
    while (device->next_event(event)) events.push_back(event);
}

inline const PathEvent* Node::find(PathEventKind kind) const {
    for (const PathEvent& event : events) {
        if (event.kind == kind) return &event;
    }
    return nullptr;
}

inline std::size_t Node::count(PathEventKind kind) const {
    std::size_t count = 0;
    for (const PathEvent& event : events) count += event.kind == kind;
    return count;
}

inline bool Node::reported(const std::string& part) const {
    for (const std::string& text : reports) {
        if (text.find(part) != std::string::npos) return true;
    }
    return false;
}

inline bool Node::wait() const {
    pollfd entry{device->wait_handle(), POLLIN, 0};
    return ::poll(&entry, 1, watchdog_ms) == 1;
}

inline bool turn_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(watchdog_ms);
    while (!done()) {
        for (Node* node : nodes) node->turn();
        if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
}

inline Paths connect(Node& from, Node& to, const std::string& name) {
    EXPECT_EQ(to->listen(discriminator(name)), Status::success);
    const std::size_t ups = to.count(PathEventKind::up);
    const std::size_t resolved = from.count(PathEventKind::resolved);
    from->resolve(address_of(name), 42);
    EXPECT_TRUE(turn_until({&from, &to}, [&] {
        return from.count(PathEventKind::resolved) > resolved && to.count(PathEventKind::up) > ups;
    }));
    Paths paths{};
    for (const PathEvent& event : from.events) {
        if (event.kind == PathEventKind::resolved) paths.from = event.path;
    }
    for (const PathEvent& event : to.events) {
        if (event.kind == PathEventKind::up) paths.to = event.path;
    }
    return paths;
}

inline std::vector<std::byte> contents(std::uint32_t length, unsigned seed) {
    std::vector<std::byte> bytes(length);
    for (std::uint32_t i = 0; i < length; ++i) bytes[i] = std::byte(seed * 131 + i + (i >> 8));
    return bytes;
}

/// Writes contents(length, seed); `to` may be null when that is nothing.
inline void fill(std::byte* to, std::uint32_t length, unsigned seed) {
    std::ranges::copy(contents(length, seed), to);
}

inline bool send(ShmDevice& device, PathId path, std::uint32_t header, std::uint32_t payload,
                 unsigned seed) {
    FrameSlot slot;
    if (!device.reserve(path, header, payload, slot)) return false;
    fill(slot.header, header, seed);
    fill(slot.payload, payload, seed + 1);
    device.transmit(path);
    return true;
}

inline ::testing::AssertionResult holds(const Frame& frame, std::uint32_t header,
                                        std::uint32_t payload, unsigned seed) {
    const bool separate = frame.payload != nullptr;
    const std::uint32_t length = separate ? header : header + payload;
    if (frame.length != length) {
        return ::testing::AssertionFailure() << "length " << frame.length << ", not " << length;
    }
    if (separate && frame.payload_length != payload) {
        return ::testing::AssertionFailure() << "payload of " << frame.payload_length;
    }
    if (!std::ranges::equal(contents(header, seed), std::span(frame.bytes, header))) {
        return ::testing::AssertionFailure() << "header differs";
    }
    const std::byte* at = separate ? frame.payload : frame.bytes + header;
    if (!std::ranges::equal(contents(payload, seed + 1), std::span(at, payload))) {
        return ::testing::AssertionFailure() << "payload differs";
    }
    return ::testing::AssertionSuccess();
}

inline void expect_passes(Node& from, PathId out, Node& to, PathId in, std::uint32_t header,
                          std::uint32_t payload, unsigned seed) {
    ASSERT_TRUE(send(*from, out, header, payload, seed)) << header << "+" << payload;
    Frame frames[4];
    ASSERT_EQ(to->receive(frames), 1U) << header << "+" << payload;
    EXPECT_EQ(frames[0].path, in);
    EXPECT_TRUE(holds(frames[0], header, payload, seed)) << header << "+" << payload;
    to->release();
}

// ---------------------------------------------------------------- the liar

inline Liar::~Liar() {
    if (socket >= 0) ::close(socket);
    for (const int fd : descriptors_) ::close(fd);
    if (memory != nullptr) ::munmap(memory, layout.bytes());
    if (mailbox != nullptr) ::munmap(mailbox, mailbox_bytes);
    if (node_memory != nullptr) {
        ::munmap(const_cast<std::byte*>(node_memory), node_layout_.bytes());
    }
}

inline bool Liar::connect(const std::string& name) {
    socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_ + "/" + name;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    return ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

inline int Liar::make_memory(const MemoryOptions& options) {
    const int fd = ::memfd_create("via-liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    descriptors_.push_back(fd);
    const std::size_t bytes = options.bytes != 0 ? options.bytes : layout.bytes();
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    if (options.bytes == 0) {
        memory = static_cast<std::byte*>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        control().magic.store(channel_magic);
        control().version.store(channel_version);
        control().ring_slots.store(layout.ring_slots);
        control().arena_bytes.store(layout.arena_bytes);
    }
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, options.seals), 0);
    return fd;
}

inline int Liar::make_mailbox(const MemoryOptions& options) {
    const int fd = ::memfd_create("via-liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    descriptors_.push_back(fd);
    const std::size_t bytes = options.bytes != 0 ? options.bytes : mailbox_bytes;
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    if (options.bytes == 0 && mailbox == nullptr) {
        mailbox = static_cast<Slot*>(
            ::mmap(nullptr, mailbox_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    }
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, options.seals), 0);
    return fd;
}

inline Hello Liar::hello() const {
    return make_hello(layout, test_address(), make_nic_name(::getpid(), 0xBAD));
}

inline bool Liar::send_bytes(const void* bytes, std::size_t length, std::vector<int> descriptors) {
    iovec part{const_cast<void*>(bytes), length};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
        cmsghdr* attached = CMSG_FIRSTHDR(&header);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
        std::memcpy(CMSG_DATA(attached), descriptors.data(), sizeof(int) * descriptors.size());
    }
    return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(length);
}

inline bool Liar::enter(const std::string& name) {
    return connect(name) && greet(hello(), make_memory());
}

inline std::vector<std::byte> Liar::hear() {
    std::vector<std::byte> bytes(message_max);
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int));
    const ssize_t length = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    bytes.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    if (length > 0) {
        if (const cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr) {
            std::memcpy(&node_memory_fd, CMSG_DATA(entry), sizeof(int));
            descriptors_.push_back(node_memory_fd);
        }
    }
    return bytes;
}

inline bool Liar::hung_up() const {
    pollfd entry{socket, POLLIN | POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & (POLLHUP | POLLRDHUP)) != 0;
}

inline bool Liar::take_greeting() {
    const std::vector<std::byte> bytes = hear();
    Hello greeting;
    if (bytes.size() != sizeof greeting || node_memory_fd < 0) return false;
    std::memcpy(&greeting, bytes.data(), sizeof greeting);
    node_layout_ = {greeting.ring_slots, greeting.arena_bytes};
    void* at = ::mmap(nullptr, node_layout_.bytes(), PROT_READ, MAP_SHARED, node_memory_fd, 0);
    if (at == MAP_FAILED) return false;
    node_memory = static_cast<const std::byte*>(at);
    return true;
}

// ---------------------------------------------------------------- the child

inline Child::Child(const Body& body) {
    int to_child[2], to_parent[2];
    EXPECT_EQ(::pipe2(to_child, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(to_parent, O_CLOEXEC), 0);
    pid = ::fork();
    const bool child = pid == 0;
    in_ = child ? to_child[0] : to_parent[0];
    out_ = child ? to_parent[1] : to_child[1];
    ::close(child ? to_child[1] : to_child[0]);
    ::close(child ? to_parent[0] : to_parent[1]);
    if (child) ::_exit(body(*this) && !::testing::Test::HasFailure() ? 0 : 1);
}

inline Child::~Child() {
    if (pid > 0) {
        ::kill(pid, SIGKILL);
        join();
    }
    ::close(in_);
    ::close(out_);
}

inline void Child::tell(char what) const { EXPECT_EQ(::write(out_, &what, 1), 1); }

inline char Child::hear() const {
    pollfd entry{in_, POLLIN, 0};
    char what = 0;
    if (::poll(&entry, 1, watchdog_ms) != 1 || ::read(in_, &what, 1) != 1) return 0;
    return what;
}

inline bool Child::join() {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace via::device::shm::test
