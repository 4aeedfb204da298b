#include "support/vipl.hpp"

#include <sys/mman.h>

#include <chrono>
#include <cstring>

namespace system_test {

// Addresses and errors
// ------------------------------------------------------------------------------

Address::Address(const VIP_NIC_ATTRIBUTES& nic, const std::string& discriminator) {
    VIP_NET_ADDRESS& address = room_.address;
    address.HostAddressLen = nic.NicAddressLen;
    address.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    unsigned char* bytes = room_.bytes + offsetof(VIP_NET_ADDRESS, HostAddress);
    std::memcpy(bytes, nic.LocalNicAddress, nic.NicAddressLen);
    std::memcpy(bytes + nic.NicAddressLen, discriminator.data(), discriminator.size());
}

Address Address::with(const std::string& discriminator) const {
    Address other = *this;
    VIP_NET_ADDRESS& address = other.room_.address;
    address.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    std::memcpy(other.room_.bytes + offsetof(VIP_NET_ADDRESS, HostAddress) + address.HostAddressLen,
                discriminator.data(), discriminator.size());
    return other;
}

Nic::Nic(const char* name) {
    OK(VipOpenNic(name, &handle_));
    OK(VipQueryNic(handle_, &attributes_));
    OK(VipErrorCallback(handle_, this, note));
}

Nic::~Nic() {
    if (handle_ != nullptr) VipCloseNic(handle_);
}

void Nic::close(Where where) {
    must(VipCloseNic(handle_), "VipCloseNic", where);
    handle_ = nullptr;
}

Address Nic::address(const std::string& discriminator) const {
    return {attributes_, discriminator};
}

void Nic::turn_to(std::string host, Where where) {
    must(VipNSInit(handle_, nullptr), "VipNSInit", where);
    must(VipNSGetHostByName(handle_, host.data(), remote_host_.get(), 0), "VipNSGetHostByName",
         where);
    must(VipNSShutdown(handle_), "VipNSShutdown", where);
}

Address Nic::remote(const std::string& discriminator) const {
    return remote_host_.empty() ? address(discriminator) : remote_host_.with(discriminator);
}

VIP_RETURN Nic::wait_request(const std::string& discriminator, VIP_ULONG timeout_ms,
                             VIP_CONN_HANDLE* connection) const {
    Address local = address(discriminator);
    Address remote;
    VIP_VI_ATTRIBUTES theirs{};
    return VipConnectWait(handle_, local.get(), timeout_ms, remote.get(), &theirs, connection);
}

void Nic::note(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    Nic& self = *static_cast<Nic*>(context);
    std::lock_guard guard(self.mutex_);
    self.errors_.push_back(*error);
    self.changed_.notify_all();
}

std::size_t Nic::errors(VIP_VI_HANDLE vi, VIP_ERROR_CODE code) const {
    std::lock_guard guard(mutex_);
    std::size_t count = 0;
    for (const VIP_ERROR_DESCRIPTOR& error : errors_)
        count += error.ViHandle == vi && error.ErrorCode == code;
    return count;
}

std::size_t Nic::errors() const {
    std::lock_guard guard(mutex_);
    return errors_.size();
}

std::string Nic::error_text() const {
    std::lock_guard guard(mutex_);
    std::string text;
    for (const VIP_ERROR_DESCRIPTOR& error : errors_)
        text += std::string(text.empty() ? "" : ", ") + name_of(error.ErrorCode);
    return text.empty() ? "(none)" : text;
}

void Nic::forget_errors() {
    std::lock_guard guard(mutex_);
    errors_.clear();
}

void Nic::wait_error(VIP_VI_HANDLE vi, VIP_ERROR_CODE code, Where where) {
    std::unique_lock guard(mutex_);
    const auto told = [&] {
        for (const VIP_ERROR_DESCRIPTOR& error : errors_)
            if (error.ViHandle == vi && error.ErrorCode == code) return true;
        return false;
    };
    if (!changed_.wait_for(guard, std::chrono::milliseconds(watchdog_ms), told))
        fail(std::string("the error handler was not told of ") + name_of(code), where);
}

// Memory
// --------------------------------------------------------------------------------------------

Memory::Memory(Nic& nic, std::size_t bytes, bool remote, VIP_PROTECTION_HANDLE tag)
    : nic_(nic), bytes_((bytes + 4095) / 4096 * 4096) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require_call(at != MAP_FAILED, "mmap");
    data_ = static_cast<std::byte*>(at);
    VIP_MEM_ATTRIBUTES attributes{};
    attributes.Ptag = tag;
    attributes.EnableRdmaWrite = attributes.EnableRdmaRead = remote ? VIP_TRUE : VIP_FALSE;
    OK(VipRegisterMem(nic.handle(), data_, bytes_, &attributes, &handle_));
}

Memory::~Memory() {
    if (handle_ != 0 && nic_.handle() != nullptr) VipDeregisterMem(nic_.handle(), data_, handle_);
    munmap(data_, bytes_);
}

void Memory::deregister(Where where) {
    must(VipDeregisterMem(nic_.handle(), data_, handle_), "VipDeregisterMem", where);
    handle_ = 0;
}

namespace {

std::uint64_t word_of(std::uint64_t number, std::size_t index) {
    return (number + 1) * 0x9E3779B97F4A7C15ULL + index * 0xD1B54A32D192ED03ULL;
}

}  // namespace

void fill(std::byte* at, std::size_t length, std::uint64_t number) {
    for (std::size_t index = 0; index * 8 < length; ++index) {
        const std::uint64_t word = word_of(number, index);
        const std::size_t here = length - index * 8 < 8 ? length - index * 8 : 8;
        std::memcpy(at + index * 8, &word, here);
    }
}

bool holds(const std::byte* at, std::size_t length, std::uint64_t number) {
    for (std::size_t index = 0; index * 8 < length; ++index) {
        const std::uint64_t word = word_of(number, index);
        const std::size_t here = length - index * 8 < 8 ? length - index * 8 : 8;
        if (std::memcmp(at + index * 8, &word, here) != 0) return false;
    }
    return true;
}

// An end
// --------------------------------------------------------------------------------------------

namespace {

std::size_t descriptor_bytes(const Wants& wants) {
    return (wants.receives + wants.sends) * sizeof(VIP_DESCRIPTOR);
}

std::size_t buffer_stride(const Wants& wants) { return (wants.length + 63) / 64 * 64; }

std::size_t memory_bytes(const Wants& wants) {
    return descriptor_bytes(wants) + (wants.receives + wants.sends) * buffer_stride(wants);
}

VIP_VI_ATTRIBUTES attributes_of(const Wants& wants) {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = wants.level;
    attributes.MaxTransferSize = wants.length;
    attributes.Ptag = wants.tag;
    attributes.EnableRdmaWrite = VIP_TRUE;
    attributes.EnableRdmaRead = wants.level == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
    return attributes;
}

}  // namespace

End::End(Nic& nic, const Wants& wants)
    : nic_(nic), wants_(wants), memory_(nic, memory_bytes(wants), wants.remote, wants.tag) {
    VIP_VI_ATTRIBUTES attributes = attributes_of(wants);
    OK(VipCreateVi(nic.handle(), &attributes, wants.queue, wants.queue, &vi_));
    for (unsigned slot = 0; slot < wants.receives; ++slot) post_receive(slot);
}

End::~End() {
    if (nic_.handle() == nullptr) return;  // closed: the VI went with it
    VipDisconnect(vi_);
    drain();
    VipDestroyVi(vi_);
}

void End::query(VIP_VI_STATE& state, bool& send_empty, bool& receive_empty, Where where) const {
    VIP_VI_ATTRIBUTES attributes{};
    VIP_BOOLEAN sends = VIP_FALSE;
    VIP_BOOLEAN receives = VIP_FALSE;
    must(VipQueryVi(vi_, &state, &attributes, &sends, &receives), "VipQueryVi", where);
    send_empty = sends == VIP_TRUE;
    receive_empty = receives == VIP_TRUE;
}

VIP_VI_STATE End::state(Where where) const {
    VIP_VI_STATE state{};
    bool send_empty = false;
    bool receive_empty = false;
    query(state, send_empty, receive_empty, where);
    return state;
}

bool End::send_queue_empty(Where where) const {
    VIP_VI_STATE state{};
    bool send_empty = false;
    bool receive_empty = false;
    query(state, send_empty, receive_empty, where);
    return send_empty;
}

bool End::receive_queue_empty(Where where) const {
    VIP_VI_STATE state{};
    bool send_empty = false;
    bool receive_empty = false;
    query(state, send_empty, receive_empty, where);
    return receive_empty;
}

VIP_RETURN End::request(const std::string& discriminator, VIP_ULONG timeout_ms) {
    Address local = nic_.address("from-" + discriminator);
    Address remote = nic_.remote(discriminator);
    VIP_VI_ATTRIBUTES theirs{};
    return VipConnectRequest(vi_, local.get(), remote.get(), timeout_ms, &theirs);
}

void End::connect(const std::string& discriminator, Where where) {
    VIP_RETURN code = VIP_NO_MATCH;
    until(
        "somebody listens",
        [&] {
            code = request(discriminator, watchdog_ms);
            return code != VIP_NO_MATCH;
        },
        where);
    must(code, "VipConnectRequest", where);
}

VIP_CONN_HANDLE End::wait_request(const std::string& discriminator, Where where) {
    VIP_CONN_HANDLE connection = nullptr;
    must(nic_.wait_request(discriminator, watchdog_ms, &connection), "VipConnectWait", where);
    return connection;
}

void End::accept(const std::string& discriminator, Where where) {
    must(VipConnectAccept(wait_request(discriminator, where), vi_), "VipConnectAccept", where);
}

VIP_DESCRIPTOR* End::descriptor(bool receive, unsigned slot) const {
    auto* all = reinterpret_cast<VIP_DESCRIPTOR*>(memory_.data());
    return all + (receive ? slot : wants_.receives + slot);
}

std::byte* End::receive_buffer(unsigned slot) const {
    return memory_.data() + descriptor_bytes(wants_) + slot * buffer_stride(wants_);
}

std::byte* End::send_buffer(unsigned slot) const {
    return memory_.data() + descriptor_bytes(wants_) +
           (wants_.receives + slot) * buffer_stride(wants_);
}

void End::post_receive(unsigned slot, Where where) {
    VIP_DESCRIPTOR* at = descriptor(true, slot);
    *at = {};
    at->CS.SegCount = 1;
    at->DS[0].Local.Data.Address = receive_buffer(slot);
    at->DS[0].Local.Handle = memory_.handle();
    at->DS[0].Local.Length = static_cast<VIP_UINT32>(wants_.length);
    must(VipPostRecv(vi_, at, memory_.handle()), "VipPostRecv", where);
}

void End::post_send(unsigned slot, std::size_t length, Where where) {
    VIP_DESCRIPTOR* at = descriptor(false, slot);
    *at = {};
    at->CS.SegCount = 1;
    at->CS.Length = static_cast<VIP_UINT32>(length);
    at->DS[0].Local.Data.Address = send_buffer(slot);
    at->DS[0].Local.Handle = memory_.handle();
    at->DS[0].Local.Length = static_cast<VIP_UINT32>(length);
    must(VipPostSend(vi_, at, memory_.handle()), "VipPostSend", where);
}

namespace {

void make_rdma(VIP_DESCRIPTOR& at, VIP_UINT16 operation, std::uint64_t remote,
               VIP_MEM_HANDLE remote_handle, void* local, VIP_MEM_HANDLE handle,
               std::size_t length) {
    at = {};
    at.CS.SegCount = 2;
    at.CS.Control = operation;
    at.CS.Length = static_cast<VIP_UINT32>(length);
    at.DS[0].Remote.Data.AddressBits = remote;
    at.DS[0].Remote.Handle = remote_handle;
    at.DS[1].Local.Data.Address = local;
    at.DS[1].Local.Handle = handle;
    at.DS[1].Local.Length = static_cast<VIP_UINT32>(length);
}

}  // namespace

void End::post_write(unsigned slot, std::uint64_t address, VIP_MEM_HANDLE handle,
                     std::uint32_t immediate, Where where) {
    VIP_DESCRIPTOR* at = descriptor(false, slot);
    make_rdma(*at, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, address, handle,
              send_buffer(slot), memory_.handle(), wants_.length);
    at->CS.ImmediateData = immediate;
    must(VipPostSend(vi_, at, memory_.handle()), "VipPostSend", where);
}

void End::post_read(unsigned slot, std::uint64_t address, VIP_MEM_HANDLE handle, Where where) {
    VIP_DESCRIPTOR* at = descriptor(false, slot);
    make_rdma(*at, VIP_CONTROL_OP_RDMAREAD, address, handle, send_buffer(slot), memory_.handle(),
              wants_.length);
    must(VipPostSend(vi_, at, memory_.handle()), "VipPostSend", where);
}

std::optional<Outcome> End::outcome(bool receive, VIP_RETURN code, VIP_DESCRIPTOR* descriptor,
                                    Where where) const {
    if (code == VIP_NOT_DONE || code == VIP_TIMEOUT) return {};
    if (code == VIP_DESCRIPTOR_ERROR && descriptor == nullptr) return {};  // the queue is empty
    if (code != VIP_SUCCESS && code != VIP_DESCRIPTOR_ERROR)
        fail(std::string("Done or Wait returned ") + name_of(code), where);
    const auto slot = descriptor - this->descriptor(receive, 0);
    const unsigned slots = receive ? wants_.receives : wants_.sends;
    require(slot >= 0 && slot < static_cast<long>(slots), "the descriptor is one of ours", where);
    require((descriptor->CS.Status & VIP_STATUS_DONE) != 0, "its Status says DONE", where);
    require(((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != 0) == (code != VIP_SUCCESS),
            "the call's answer and the Status agree", where);
    return Outcome{descriptor, code, static_cast<unsigned>(slot)};
}

std::optional<Outcome> End::received(Where where) {
    VIP_DESCRIPTOR* at = nullptr;
    const VIP_RETURN code = VipRecvDone(vi_, &at);
    return outcome(true, code, at, where);
}

std::optional<Outcome> End::sent(Where where) {
    VIP_DESCRIPTOR* at = nullptr;
    const VIP_RETURN code = VipSendDone(vi_, &at);
    return outcome(false, code, at, where);
}

std::optional<Outcome> End::wait_received(VIP_ULONG timeout_ms, Where where) {
    VIP_DESCRIPTOR* at = nullptr;
    const VIP_RETURN code = VipRecvWait(vi_, timeout_ms, &at);
    return outcome(true, code, at, where);
}

std::optional<Outcome> End::wait_sent(VIP_ULONG timeout_ms, Where where) {
    VIP_DESCRIPTOR* at = nullptr;
    const VIP_RETURN code = VipSendWait(vi_, timeout_ms, &at);
    return outcome(false, code, at, where);
}

void End::disconnect(Where where) { must(VipDisconnect(vi_), "VipDisconnect", where); }

std::size_t End::drain() {
    std::size_t count = 0;
    VIP_DESCRIPTOR* at = nullptr;
    for (const auto done : {VipSendDone, VipRecvDone})
        for (VIP_RETURN code = done(vi_, &at);
             code == VIP_SUCCESS || (code == VIP_DESCRIPTOR_ERROR && at != nullptr);
             code = done(vi_, &at))
            ++count;
    return count;
}

}  // namespace system_test
