// Before a program (LD_PRELOAD, `via lab record`): registrations, connections and posts are written
// down, a line each, without any payload. VIA_RECORD names a folder; each process has its own file
// there. What it is read by: tools/cli/laboratory/recording.cpp.
#include <dlfcn.h>
#include <unistd.h>
#include <via/via.h>
#include <vipl.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace via::record {
namespace {

class Recorder {
public:
    explicit Recorder(pid_t pid) : pid_(pid) {
        const char* folder = std::getenv("VIA_RECORD");
        const std::string name =
            std::string(folder != nullptr ? folder : ".") + "/" + std::to_string(pid) + ".record";
        file_ = std::fopen(name.c_str(), "wx");
        if (file_ == nullptr)
            std::fprintf(stderr, "via lab record: cannot write %s\n", name.c_str());
    }
    pid_t pid() const { return pid_; }
    void line(const std::string& text) {
        if (file_ == nullptr) return;
        const std::lock_guard guard(lock_);
        std::fprintf(file_, "%s\n", text.c_str());
    }
    void end() {
        if (file_ != nullptr && std::fflush(file_) != 0)
            std::fprintf(stderr, "via lab record: the recording of process %d is not whole\n",
                         static_cast<int>(pid_));
    }
    /// Of a connection that is to be accepted: the line's end.
    void asked(VIP_CONN_HANDLE connection, std::string names) {
        const std::lock_guard guard(lock_);
        asked_[connection] = std::move(names);
    }
    std::string names_of(VIP_CONN_HANDLE connection) {
        const std::lock_guard guard(lock_);
        const auto found = asked_.find(connection);
        return found == asked_.end() ? std::string() : found->second;
    }
    void listens(VIA_LISTENER_HANDLE listener, std::string name) {
        const std::lock_guard guard(lock_);
        listeners_[listener] = std::move(name);
    }
    std::string name_of(VIA_LISTENER_HANDLE listener) {
        const std::lock_guard guard(lock_);
        return listeners_[listener];
    }

private:
    pid_t pid_;
    std::mutex lock_;
    std::FILE* file_ = nullptr;
    std::map<VIP_CONN_HANDLE, std::string> asked_;
    std::map<VIA_LISTENER_HANDLE, std::string> listeners_;
};

/// Lives for ever: threads of the library call to the end. A child of fork() has its own.
Recorder& recorder() {
    static std::mutex lock;
    static Recorder* all = nullptr;
    const std::lock_guard guard(lock);
    if (all == nullptr || all->pid() != ::getpid()) all = new Recorder(::getpid());
    return *all;
}
[[gnu::destructor]] void write() { recorder().end(); }

/// The library's own function of that name.
template <class Function>
Function* real(Function* /*mine*/, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(function)                                                      \
    ([] {                                                                   \
        static auto* const found = via::record::real(&function, #function); \
        return found;                                                       \
    }())

std::string hex(std::uint64_t value) {
    char text[20];
    std::snprintf(text, sizeof text, " %" PRIx64, value);
    return text;
}
std::string hex(const void* handle) { return hex(reinterpret_cast<std::uintptr_t>(handle)); }

/// All processes of a host have the same clock.
std::string now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    constexpr std::uint64_t second = 1'000'000'000;
    return hex(static_cast<std::uint64_t>(time.tv_sec) * second +
               static_cast<std::uint64_t>(time.tv_nsec));
}

/// A discriminator; hosts may be written in several ways.
std::string name_of(const VIP_NET_ADDRESS* address) {
    if (address == nullptr) return " -";
    std::string text = " ";
    const VIP_UINT8* at = address->HostAddress + address->HostAddressLen;
    for (VIP_UINT16 n = 0; n < address->DiscriminatorLen; ++n) {
        char byte[4];
        std::snprintf(byte, sizeof byte, "%02x", at[n]);
        text += byte;
    }
    return address->DiscriminatorLen == 0 ? " -" : text;
}

/// Before the post: then the descriptor is the library's.
std::string line_of(VIP_VI_HANDLE vi, bool receive, const VIP_DESCRIPTOR& descriptor) {
    const int operation = descriptor.CS.Control & VIP_CONTROL_OP_MASK;
    const bool write = !receive && operation == VIP_CONTROL_OP_RDMAWRITE;
    const bool read = !receive && operation == VIP_CONTROL_OP_RDMAREAD;
    std::string text = receive ? "V" : write ? "W" : read ? "G" : "S";
    text += now() + hex(vi);
    const unsigned first = write || read ? 1 : 0;
    if (first != 0) text += hex(descriptor.DS[0].Remote.Data.AddressBits);
    for (unsigned n = first; n < descriptor.CS.SegCount; ++n) {
        const VIP_DATA_SEGMENT& segment = descriptor.DS[n].Local;
        text += hex(segment.Data.AddressBits) + hex(segment.Length);
    }
    return text;
}

template <class Call>
VIP_RETURN post(VIP_VI_HANDLE vi, bool receive, const VIP_DESCRIPTOR* descriptor, Call call) {
    if (descriptor == nullptr) return call();
    const std::string line = line_of(vi, receive, *descriptor);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}

template <class Call>
VIP_RETURN post_many(VIP_VI_HANDLE vi, bool receive, VIP_DESCRIPTOR* const* descriptors,
                     VIP_UINT32 count, const VIP_UINT32* posted, Call call) {
    if (descriptors == nullptr || posted == nullptr) return call();
    std::vector<std::string> all;
    for (VIP_UINT32 n = 0; n < count; ++n) all.push_back(line_of(vi, receive, *descriptors[n]));
    const VIP_RETURN code = call();
    for (VIP_UINT32 n = 0; n < *posted && n < count; ++n) recorder().line(all[n]);
    return code;
}

template <class Call>
VIP_RETURN request(VIP_VI_HANDLE vi, const VIP_NET_ADDRESS* local, const VIP_NET_ADDRESS* remote,
                   const char* role, Call call) {
    const std::string line =
        std::string("C") + now() + hex(vi) + role + name_of(local) + name_of(remote);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}

template <class Call>
VIP_RETURN take(const std::string& local, VIP_NET_ADDRESS* remote, VIP_CONN_HANDLE* connection,
                Call call) {
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().asked(*connection, name_of(remote) + local);
    return code;
}

template <class Call>
VIP_RETURN accept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi, Call call) {
    const std::string names = recorder().names_of(connection);
    const std::string line = std::string("C") + now() + hex(vi) + " a" + names;
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS && !names.empty()) recorder().line(line);
    return code;
}

template <class Call>
VIP_RETURN registered(const void* address, std::uint64_t length, const char* kind, Call call) {
    const std::string line = kind + now() + hex(address) + hex(length);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) recorder().line(line);
    return code;
}

}  // namespace
}  // namespace via::record

namespace record = via::record;

#define SEEN extern "C" __attribute__((visibility("default"))) VIP_RETURN

SEEN VipRegisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_ULONG length,
                    VIP_MEM_ATTRIBUTES* attributes, VIP_MEM_HANDLE* handle) {
    return record::registered(address, length, "R", [&] {
        return REAL(VipRegisterMem)(nic, address, length, attributes, handle);
    });
}
SEEN VipDeregisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_MEM_HANDLE handle) {
    return record::registered(address, 0, "U",
                              [&] { return REAL(VipDeregisterMem)(nic, address, handle); });
}

SEEN VipConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes) {
    return record::request(vi, local, remote, " q", [&] {
        return REAL(VipConnectRequest)(vi, local, remote, timeout, attributes);
    });
}
SEEN ViaConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes, const void* data,
                       VIP_UINT32 length) {
    return record::request(vi, local, remote, " q", [&] {
        return REAL(ViaConnectRequest)(vi, local, remote, timeout, attributes, data, length);
    });
}
SEEN VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout) {
    return record::request(vi, local, remote, " p",
                           [&] { return REAL(VipConnectPeerRequest)(vi, local, remote, timeout); });
}
SEEN ViaConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout, const void* data, VIP_UINT32 length) {
    return record::request(vi, local, remote, " p", [&] {
        return REAL(ViaConnectPeerRequest)(vi, local, remote, timeout, data, length);
    });
}
SEEN VipConnectWait(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                    VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* attributes,
                    VIP_CONN_HANDLE* connection) {
    return record::take(record::name_of(local), remote, connection, [&] {
        return REAL(VipConnectWait)(nic, local, timeout, remote, attributes, connection);
    });
}
SEEN ViaConnectWait(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                    VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* attributes,
                    VIP_CONN_HANDLE* connection, VIP_PVOID data, VIP_UINT32* length) {
    return record::take(record::name_of(local), remote, connection, [&] {
        return REAL(ViaConnectWait)(nic, local, timeout, remote, attributes, connection, data,
                                    length);
    });
}
SEEN ViaCreateListener(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG backlog,
                       VIA_LISTENER_HANDLE* listener) {
    const VIP_RETURN code = REAL(ViaCreateListener)(nic, local, backlog, listener);
    if (code == VIP_SUCCESS) record::recorder().listens(*listener, record::name_of(local));
    return code;
}
SEEN ViaListenerWait(VIA_LISTENER_HANDLE listener, VIP_ULONG timeout, VIP_NET_ADDRESS* remote,
                     VIP_VI_ATTRIBUTES* attributes, VIP_CONN_HANDLE* connection, VIP_PVOID data,
                     VIP_UINT32* length) {
    return record::take(record::recorder().name_of(listener), remote, connection, [&] {
        return REAL(ViaListenerWait)(listener, timeout, remote, attributes, connection, data,
                                     length);
    });
}
SEEN VipConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi) {
    return record::accept(connection, vi, [&] { return REAL(VipConnectAccept)(connection, vi); });
}
SEEN ViaConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi, const void* data,
                      VIP_UINT32 length) {
    return record::accept(connection, vi,
                          [&] { return REAL(ViaConnectAccept)(connection, vi, data, length); });
}

SEEN VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return record::post(vi, false, descriptor,
                        [&] { return REAL(VipPostSend)(vi, descriptor, handle); });
}
SEEN VipPostRecv(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return record::post(vi, true, descriptor,
                        [&] { return REAL(VipPostRecv)(vi, descriptor, handle); });
}
SEEN ViaPostSendMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return record::post_many(vi, false, descriptors, count, posted, [&] {
        return REAL(ViaPostSendMany)(vi, descriptors, handles, count, posted);
    });
}
SEEN ViaPostRecvMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return record::post_many(vi, true, descriptors, count, posted, [&] {
        return REAL(ViaPostRecvMany)(vi, descriptors, handles, count, posted);
    });
}
