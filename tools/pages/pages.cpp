#include "pages.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace via::pages {
namespace {

constexpr VIP_ULONG patience_ms = 60'000;
constexpr unsigned receives = 2;        ///< a peer is at most a barrier's half ahead, twice
constexpr unsigned message = receives;  ///< of its descriptors: to send with
constexpr std::size_t words = page_bytes / sizeof(std::uint32_t);

SharedPages* touched_by_faults = nullptr;

struct Address {
    alignas(VIP_NET_ADDRESS) char bytes[256];
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes); }
};

/// Both ends of a connection have a name of their own.
Address address_of(VIP_NIC_HANDLE nic, const std::string& name) {
    Address address{};
    VIP_NIC_ATTRIBUTES attributes;
    check(VipQueryNic(nic, &attributes), "VipQueryNic");
    VIP_NET_ADDRESS* const net = address.get();
    net->HostAddressLen = attributes.NicAddressLen;
    net->DiscriminatorLen = static_cast<VIP_UINT16>(name.size());
    if (attributes.NicAddressLen + name.size() + sizeof *net > sizeof address.bytes)
        fail("an address is too long");
    std::memcpy(net->HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    std::memcpy(net->HostAddress + attributes.NicAddressLen, name.data(), name.size());
    return address;
}

}  // namespace

void fail(const char* what) {
    std::fprintf(stderr, "via-pages: %s\n", what);
    std::_Exit(1);
}
void check(VIP_RETURN code, const char* what) {
    if (code == VIP_SUCCESS) return;
    std::fprintf(stderr, "via-pages: %s: VIP_RETURN %d\n", what, static_cast<int>(code));
    std::_Exit(1);
}

SharedPages::SharedPages(unsigned process, std::string job, char* memory,
                         std::vector<unsigned> homes, unsigned processes)
    : World(process, processes),
      job_(std::move(job)),
      memory_(memory),
      homes_(std::move(homes)),
      states_(homes_.size(), State::absent),
      twins_(memory, memory + homes_.size() * page_bytes),
      notice_bytes_((homes_.size() + 7) / 8),
      peers_(count) {
    check(VipOpenNic("shm", &nic_), "VipOpenNic");
    const std::size_t slot = 256 + (notice_bytes_ + 63) / 64 * 64;
    const std::size_t size = count * (receives + 1) * slot;
    area_ =
        static_cast<char*>(std::aligned_alloc(page_bytes, (size / page_bytes + 1) * page_bytes));
    if (area_ == nullptr) fail("no memory");
    VIP_MEM_ATTRIBUTES rights{nullptr, VIP_TRUE, VIP_TRUE};
    check(VipRegisterMem(nic_, area_, size, &rights, &own_), "VipRegisterMem");
    check(VipRegisterMem(nic_, memory_, pages() * page_bytes, &rights, &shared_), "VipRegisterMem");
    for (unsigned peer = 0; peer < count; ++peer) {
        peers_[peer].area = peer * (receives + 1) * slot;
        if (peer != me) connect(peer);
    }
    for (std::size_t page = 0; page < pages(); ++page) {
        states_[page] = homes_[page] == me ? State::home : State::absent;
        if (homes_[page] != me) protect(page, PROT_NONE);
    }
    touched_by_faults = this;
    struct sigaction action{};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int number, siginfo_t* info, void*) {
        on_fault(number, info->si_addr);
    };
    ::sigaction(SIGSEGV, &action, nullptr);
}

SharedPages::~SharedPages() {
    ::signal(SIGSEGV, SIG_DFL);
    ::mprotect(memory_, pages() * page_bytes, PROT_READ | PROT_WRITE);
    check(VipCloseNic(nic_), "VipCloseNic");
    std::free(area_);
}

/// The lower one is asked. The first message says where the shared pages are known.
void SharedPages::connect(unsigned peer) {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
    attributes.MaxTransferSize = page_bytes > notice_bytes_ ? page_bytes : notice_bytes_;
    attributes.EnableRdmaRead = attributes.EnableRdmaWrite = VIP_TRUE;
    VIP_VI_ATTRIBUTES theirs{};
    check(VipCreateVi(nic_, &attributes, nullptr, nullptr, &peers_[peer].vi), "VipCreateVi");
    post_receives(peer);
    const unsigned low = me < peer ? me : peer, high = me < peer ? peer : me;
    const std::string name = job_ + "." + std::to_string(low) + "." + std::to_string(high);
    Address asked = address_of(nic_, name + "a"), asker = address_of(nic_, name + "q");
    if (me == low) {
        Address from{};
        VIP_CONN_HANDLE connection = nullptr;
        check(VipConnectWait(nic_, asked.get(), patience_ms, from.get(), &theirs, &connection),
              "VipConnectWait");
        check(VipConnectAccept(connection, peers_[peer].vi), "VipConnectAccept");
    } else {
        VIP_RETURN code = VIP_NO_MATCH;
        while (code == VIP_NO_MATCH) {  // nobody listens yet
            code =
                VipConnectRequest(peers_[peer].vi, asker.get(), asked.get(), patience_ms, &theirs);
            ::poll(nullptr, 0, 10);
        }
        check(code, "VipConnectRequest");
    }
    std::memcpy(text(peer, message), &shared_, sizeof shared_);
    post(peer, VIP_CONTROL_OP_SENDRECV, text(peer, message), own_, sizeof shared_);
    VIP_DESCRIPTOR* heard = nullptr;
    check(VipRecvWait(peers_[peer].vi, patience_ms, &heard), "VipRecvWait");
    std::memcpy(&peers_[peer].memory, heard->DS[0].Local.Data.Address, sizeof shared_);
    check(VipPostRecv(peers_[peer].vi, heard, own_), "VipPostRecv");
}

VIP_DESCRIPTOR* SharedPages::descriptor(unsigned peer, unsigned which) {
    const std::size_t slot = 256 + (notice_bytes_ + 63) / 64 * 64;
    return reinterpret_cast<VIP_DESCRIPTOR*>(area_ + peers_[peer].area + which * slot);
}
char* SharedPages::text(unsigned peer, unsigned which) {
    return reinterpret_cast<char*>(descriptor(peer, which)) + 256;
}

void SharedPages::post_receives(unsigned peer) {
    for (unsigned n = 0; n < receives; ++n) {
        VIP_DESCRIPTOR* const one = descriptor(peer, n);
        std::memset(one, 0, sizeof *one);
        one->CS.SegCount = 1;
        one->CS.Control = VIP_CONTROL_OP_SENDRECV;
        one->CS.Length = static_cast<VIP_UINT32>(notice_bytes_ > 8 ? notice_bytes_ : 8);
        one->DS[0].Local.Data.Address = text(peer, n);
        one->DS[0].Local.Handle = own_;
        one->DS[0].Local.Length = one->CS.Length;
        check(VipPostRecv(peers_[peer].vi, one, own_), "VipPostRecv");
    }
}

/// One at a time, until it is done; of RDMA, `local` lies in the shared pages on both sides.
void SharedPages::post(unsigned peer, unsigned operation, char* local, VIP_MEM_HANDLE handle,
                       std::size_t length) {
    VIP_DESCRIPTOR* one = descriptor(peer, message);
    std::memset(one, 0, sizeof *one);
    const bool rdma = operation != VIP_CONTROL_OP_SENDRECV;
    one->CS.Control = static_cast<VIP_UINT16>(operation);
    one->CS.SegCount = rdma ? 2 : 1;
    one->CS.Length = static_cast<VIP_UINT32>(length);
    if (rdma) {
        one->DS[0].Remote.Data.Address = local;
        one->DS[0].Remote.Handle = peers_[peer].memory;
    }
    VIP_DATA_SEGMENT& data = one->DS[rdma ? 1 : 0].Local;
    data.Data.Address = local;
    data.Handle = handle;
    data.Length = one->CS.Length;
    check(VipPostSend(peers_[peer].vi, one, own_), "VipPostSend");
    VIP_RETURN code = VIP_NOT_DONE;
    while (code == VIP_NOT_DONE) code = VipSendDone(peers_[peer].vi, &one);
    check(code, rdma ? "RDMA" : "VipSendDone");
}

void SharedPages::protect(std::size_t page, int rights) const {
    if (::mprotect(at(page), page_bytes, rights) != 0) fail("mprotect");
}

// Faults ------------------------------------------------------------------------------------------

void SharedPages::on_fault(int number, void* address) {
    SharedPages& all = *touched_by_faults;
    const auto offset = static_cast<std::size_t>(static_cast<char*>(address) - all.memory_);
    if (offset / page_bytes >= all.pages()) {
        ::signal(number, SIG_DFL);  // somebody's mistake: it happens again, and ends us
        return;
    }
    all.touch(offset / page_bytes);
}

/// The first touch brings the page, to be read; one of what is there wants to write.
void SharedPages::touch(std::size_t page) {
    if (states_[page] == State::absent) {
        fetch(page);
        protect(page, PROT_READ);
        states_[page] = State::clean;
    } else {
        std::memcpy(&twins_[page * page_bytes], at(page), page_bytes);
        protect(page, PROT_READ | PROT_WRITE);
        states_[page] = State::changed;
    }
}

void SharedPages::fetch(std::size_t page) {
    protect(page, PROT_READ | PROT_WRITE);
    post(homes_[page], VIP_CONTROL_OP_RDMAREAD, at(page), shared_, page_bytes);
}

// Barriers ----------------------------------------------------------------------------------------

/// Runs of words that differ from what the page was, to its home.
void SharedPages::send_changes(std::size_t page) {
    std::uint32_t was[words], is[words];
    std::memcpy(was, &twins_[page * page_bytes], page_bytes);
    std::memcpy(is, at(page), page_bytes);
    for (std::size_t begin = 0; begin < words; ++begin) {
        if (was[begin] == is[begin]) continue;
        std::size_t end = begin;
        while (end < words && was[end] != is[end]) ++end;
        post(homes_[page], VIP_CONTROL_OP_RDMAWRITE, at(page) + begin * sizeof(std::uint32_t),
             shared_, (end - begin) * sizeof(std::uint32_t));
        begin = end;
    }
}

void SharedPages::tell_all(const std::vector<std::uint8_t>& notice) {
    for (unsigned step = 1; step < count; ++step) {
        const unsigned peer = (me + step) % count;
        std::memcpy(text(peer, message), notice.data(), notice.size());
        post(peer, VIP_CONTROL_OP_SENDRECV, text(peer, message), own_, notice.size());
    }
}

void SharedPages::hear_all(std::vector<std::uint8_t>& changed) {
    for (unsigned peer = 0; peer < count; ++peer) {
        if (peer == me) continue;
        VIP_DESCRIPTOR* heard = nullptr;
        check(VipRecvWait(peers_[peer].vi, patience_ms, &heard), "VipRecvWait");
        const auto* notice = static_cast<std::uint8_t*>(heard->DS[0].Local.Data.Address);
        const std::size_t length = heard->CS.Length;
        for (std::size_t n = 0; n < length && n < changed.size(); ++n) changed[n] |= notice[n];
        heard->CS.Length = heard->DS[0].Local.Length;
        check(VipPostRecv(peers_[peer].vi, heard, own_), "VipPostRecv");
    }
}

/// First all changes go home, and all hear which pages they are in; then all know that all have.
void SharedPages::barrier() {
    std::vector<std::uint8_t> mine(notice_bytes_), others(notice_bytes_), nothing(1);
    for (std::size_t page = 0; page < pages(); ++page) {
        const bool home = states_[page] == State::home;
        if (!home && states_[page] != State::changed) continue;
        char* const twin = &twins_[page * page_bytes];
        if (std::memcmp(twin, at(page), page_bytes) != 0) {
            mine[page / 8] |= static_cast<std::uint8_t>(1U << page % 8);
            if (!home) send_changes(page);
            std::memcpy(twin, at(page), page_bytes);
        }
        if (home) continue;
        protect(page, PROT_READ);
        states_[page] = State::clean;
    }
    tell_all(mine);
    hear_all(others);
    for (std::size_t page = 0; page < pages(); ++page) {
        if (states_[page] != State::clean || (others[page / 8] >> page % 8 & 1) == 0) continue;
        protect(page, PROT_NONE);
        states_[page] = State::absent;
    }
    tell_all(nothing);
    std::vector<std::uint8_t> ignored(1);
    hear_all(ignored);
}

}  // namespace via::pages
