// SPDX-License-Identifier: Apache-2.0
#include "rdm/shared_lines.hpp"

namespace via::fabric::rdm {
namespace {

constexpr VIP_ULONG patience_ms = 1000;
constexpr VIP_ULONG lines_size = 2 * SharedLines::lines_each * sizeof(StoredMessage);

}  // namespace

void SharedLines::create(Nic& nic, Hello& hello) {
    VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_TRUE};
    VIP_PVOID address = nullptr;
    VIP_MEM_HANDLE handle = 0;
    const VIP_RETURN code =
        ViaCreateSegment(nic.handle(), lines_size, &attributes, &address, &handle);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no lines for a peer: %s\n", ViaReturnText(code));
        return;
    }
    nic_ = &nic;
    begin(static_cast<StoredMessage*>(address), true);
    hello.lines_address = reinterpret_cast<std::uintptr_t>(address);
    hello.lines_handle = handle;
}

void SharedLines::attach(Nic& nic, VIP_VI_HANDLE vi, const Hello& hello) {
    if (hello.lines_address == 0) return;
    VIP_PVOID address = nullptr;
    VIP_ULONG length = 0;
    const VIP_RETURN code = ViaImportSegment(vi, hello.lines_address, hello.lines_handle, VIP_TRUE,
                                             patience_ms, &address, &length);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no lines to a peer: %s\n", ViaReturnText(code));
        return;
    }
    if (length < lines_size) {
        ViaReleaseSegment(nic.handle(), address);
        return;
    }
    nic_ = &nic;
    attached_ = static_cast<StoredMessage*>(address);
}

/// The maker does not know yet whether the peer attaches: it hears of it by its first message.
void SharedLines::begin(StoredMessage* memory, bool is_maker) {
    ours_ = memory + (is_maker ? 0 : lines_each);
    theirs_ = memory + (is_maker ? lines_each : 0);
    is_maker_ = is_maker;
    taken_ = 0;
    if (!is_maker) used_ = 0;
}

void SharedLines::close() {
    open();
    StoredMessage* const memory = is_maker_ ? ours_ : theirs_;
    ours_ = theirs_ = nullptr;
    used_ = lines_each;
    if (memory == nullptr) return;
    if (is_maker_)
        ViaDestroySegment(nic_->handle(), memory);
    else
        ViaReleaseSegment(nic_->handle(), memory);
}

}  // namespace via::fabric::rdm
