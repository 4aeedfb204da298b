// Before a program (LD_PRELOAD): every post and every descriptor given back passes here and is
// written to the ledger. VIA_WITNESS names the folder of the ledgers; each process writes its own
// at its end.
#include <dlfcn.h>
#include <unistd.h>
#include <via/via.h>
#include <vipl.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ledger.hpp"

namespace via::witness {

namespace {

/// Lives for ever: threads of the library call to the end. A child of fork() has its own.
Ledger& ledger() {
    static auto* const all = [] {
        const char* folder = std::getenv("VIA_WITNESS");
        auto* made = new Ledger(std::string(folder != nullptr ? folder : ".") + "/" +
                                std::to_string(::getpid()) + ".ledger");
        return made;
    }();
    return *all;
}
[[gnu::destructor]] void write() { ledger().write(); }

/// The library's own function of that name.
template <class Function>
Function* real(Function* /*mine*/, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define REAL(function)                                                       \
    ([] {                                                                    \
        static auto* const found = via::witness::real(&function, #function); \
        return found;                                                        \
    }())

/// Holds the VI's lock over the call: another thread may be given back what this one posts.
template <class Call>
VIP_RETURN post(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR* descriptor, Call call) {
    Ledger::Vi* const vi = ledger().find(handle);
    if (vi == nullptr || descriptor == nullptr) return call();
    const std::lock_guard guard(vi->lock);
    const Ledger::Intent intent = Ledger::intent(*descriptor, receive);
    const VIP_RETURN code = call();
    if (code == VIP_SUCCESS) ledger().posted(*vi, receive, descriptor, intent);
    return code;
}

template <class Call>
VIP_RETURN post_many(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR* const* descriptors,
                     VIP_UINT32 count, const VIP_UINT32* posted, Call call) {
    Ledger::Vi* const vi = ledger().find(handle);
    if (vi == nullptr || descriptors == nullptr || posted == nullptr) return call();
    const std::lock_guard guard(vi->lock);
    std::vector<Ledger::Intent> intents;
    for (VIP_UINT32 n = 0; n < count; ++n)
        intents.push_back(Ledger::intent(*descriptors[n], receive));
    const VIP_RETURN code = call();
    for (VIP_UINT32 n = 0; n < *posted; ++n)
        ledger().posted(*vi, receive, descriptors[n], intents[n]);
    return code;
}

bool gives_back(VIP_RETURN code) { return code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR; }

template <class Call>
VIP_RETURN done(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR** descriptor, Call call) {
    Ledger::Vi* const vi = ledger().find(handle);
    if (vi == nullptr) return call();
    const std::lock_guard guard(vi->lock);
    const VIP_RETURN code = call();
    if (gives_back(code) && *descriptor != nullptr) ledger().given_back(*vi, receive, *descriptor);
    return code;
}

/// Sleeps without the lock: of two threads that wait for one queue the order is not seen.
template <class Call>
VIP_RETURN wait(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR** descriptor, Call call) {
    Ledger::Vi* const vi = ledger().find(handle);
    const VIP_RETURN code = call();
    if (vi == nullptr || !gives_back(code) || *descriptor == nullptr) return code;
    const std::lock_guard guard(vi->lock);
    ledger().given_back(*vi, receive, *descriptor);
    return code;
}

template <class Call>
VIP_RETURN done_many(VIP_VI_HANDLE handle, bool receive, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_UINT32* taken, Call call) {
    Ledger::Vi* const vi = ledger().find(handle);
    if (vi == nullptr) return call();
    const std::lock_guard guard(vi->lock);
    const VIP_RETURN code = call();
    if (!gives_back(code)) return code;
    for (VIP_UINT32 n = 0; n < *taken; ++n) ledger().given_back(*vi, receive, descriptors[n]);
    return code;
}

template <class Call>
VIP_RETURN connect(VIP_VI_HANDLE handle, Call call) {
    if (Ledger::Vi* const vi = ledger().find(handle)) ledger().connecting(*vi);
    return call();
}

}  // namespace

}  // namespace via::witness

namespace witness = via::witness;

#define SEEN extern "C" __attribute__((visibility("default"))) VIP_RETURN

SEEN VipCreateVi(VIP_NIC_HANDLE nic, VIP_VI_ATTRIBUTES* attributes, VIP_CQ_HANDLE send_queue,
                 VIP_CQ_HANDLE receive_queue, VIP_VI_HANDLE* vi) {
    const VIP_RETURN code = REAL(VipCreateVi)(nic, attributes, send_queue, receive_queue, vi);
    if (code == VIP_SUCCESS) witness::ledger().made(*vi, attributes->ReliabilityLevel);
    return code;
}
SEEN VipDestroyVi(VIP_VI_HANDLE vi) {
    const VIP_RETURN code = REAL(VipDestroyVi)(vi);
    if (code == VIP_SUCCESS) witness::ledger().destroyed(vi);
    return code;
}

SEEN VipConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes) {
    return witness::connect(
        vi, [&] { return REAL(VipConnectRequest)(vi, local, remote, timeout, attributes); });
}
SEEN VipConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi) {
    return witness::connect(vi, [&] { return REAL(VipConnectAccept)(connection, vi); });
}
SEEN VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout) {
    return witness::connect(
        vi, [&] { return REAL(VipConnectPeerRequest)(vi, local, remote, timeout); });
}
SEEN ViaConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes, const void* data,
                       VIP_UINT32 length) {
    return witness::connect(vi, [&] {
        return REAL(ViaConnectRequest)(vi, local, remote, timeout, attributes, data, length);
    });
}
SEEN ViaConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout, const void* data, VIP_UINT32 length) {
    return witness::connect(
        vi, [&] { return REAL(ViaConnectPeerRequest)(vi, local, remote, timeout, data, length); });
}
SEEN ViaConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi, const void* data,
                      VIP_UINT32 length) {
    return witness::connect(vi,
                            [&] { return REAL(ViaConnectAccept)(connection, vi, data, length); });
}

SEEN VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return witness::post(vi, false, descriptor,
                         [&] { return REAL(VipPostSend)(vi, descriptor, handle); });
}
SEEN VipPostRecv(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return witness::post(vi, true, descriptor,
                         [&] { return REAL(VipPostRecv)(vi, descriptor, handle); });
}
SEEN ViaPostSendMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return witness::post_many(vi, false, descriptors, count, posted, [&] {
        return REAL(ViaPostSendMany)(vi, descriptors, handles, count, posted);
    });
}
SEEN ViaPostRecvMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return witness::post_many(vi, true, descriptors, count, posted, [&] {
        return REAL(ViaPostRecvMany)(vi, descriptors, handles, count, posted);
    });
}

SEEN VipSendDone(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
    return witness::done(vi, false, descriptor, [&] { return REAL(VipSendDone)(vi, descriptor); });
}
SEEN VipRecvDone(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
    return witness::done(vi, true, descriptor, [&] { return REAL(VipRecvDone)(vi, descriptor); });
}
SEEN VipSendWait(VIP_VI_HANDLE vi, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor) {
    return witness::wait(vi, false, descriptor,
                         [&] { return REAL(VipSendWait)(vi, timeout, descriptor); });
}
SEEN VipRecvWait(VIP_VI_HANDLE vi, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor) {
    return witness::wait(vi, true, descriptor,
                         [&] { return REAL(VipRecvWait)(vi, timeout, descriptor); });
}
SEEN ViaSendDoneMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptors, VIP_UINT32 room,
                     VIP_UINT32* taken) {
    return witness::done_many(vi, false, descriptors, taken,
                              [&] { return REAL(ViaSendDoneMany)(vi, descriptors, room, taken); });
}
SEEN ViaRecvDoneMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptors, VIP_UINT32 room,
                     VIP_UINT32* taken) {
    return witness::done_many(vi, true, descriptors, taken,
                              [&] { return REAL(ViaRecvDoneMany)(vi, descriptors, room, taken); });
}
