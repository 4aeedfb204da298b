// SPDX-License-Identifier: Apache-2.0
#include "rdm/shared_lines.hpp"

#include <utility>

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
    begin(nic, address, true);
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
    begin(nic, address, false);
}

/// The maker does not know yet whether the peer attaches: it hears of it by its first message.
void SharedLines::begin(Nic& nic, void* memory, bool is_maker) {
    nic_ = &nic;
    auto* const first = static_cast<StoredMessage*>(memory);
    ours_ = first + (is_maker ? 0 : lines_each);
    theirs_ = first + (is_maker ? lines_each : 0);
    is_maker_ = is_maker;
    taken_ = 0;
    if (!is_maker) used_ = 0;
}

void SharedLines::close() {
    StoredMessage* const memory = this->memory();
    ours_ = theirs_ = nullptr;
    used_ = lines_each;
    if (memory == nullptr) return;
    if (is_maker_)
        ViaDestroySegment(nic_->handle(), memory);
    else
        ViaReleaseSegment(nic_->handle(), memory);
}

}  // namespace via::fabric::rdm
