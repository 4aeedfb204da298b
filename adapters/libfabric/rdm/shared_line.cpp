// SPDX-License-Identifier: Apache-2.0
#include "rdm/shared_line.hpp"

#include <utility>

namespace via::fabric::rdm {
namespace {

constexpr VIP_ULONG patience_ms = 1000;

}  // namespace

void SharedLine::create(Nic& nic, Hello& hello) {
    VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_TRUE};
    VIP_PVOID address = nullptr;
    VIP_MEM_HANDLE handle = 0;
    const VIP_RETURN code =
        ViaCreateSegment(nic.handle(), sizeof(StoredMessage), &attributes, &address, &handle);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no line for a peer: %s\n", ViaReturnText(code));
        return;
    }
    nic_ = &nic;
    memory_ = static_cast<StoredMessage*>(address);
    is_maker_ = true;
    turn_ = Turn::theirs;
    hello.line_address = reinterpret_cast<std::uintptr_t>(address);
    hello.line_handle = handle;
}

void SharedLine::attach(Nic& nic, VIP_VI_HANDLE vi, const Hello& hello) {
    if (hello.line_address == 0) return;
    VIP_PVOID address = nullptr;
    VIP_ULONG length = 0;
    const VIP_RETURN code = ViaImportSegment(vi, hello.line_address, hello.line_handle, VIP_TRUE,
                                             patience_ms, &address, &length);
    if (code != VIP_SUCCESS) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "no line to a peer: %s\n", ViaReturnText(code));
        return;
    }
    nic_ = &nic;
    memory_ = static_cast<StoredMessage*>(address);
    if (length < sizeof(StoredMessage)) return close();
    turn_ = Turn::ours;
}

void SharedLine::close() {
    turn_ = Turn::nobodys;
    StoredMessage* const memory = std::exchange(memory_, nullptr);
    if (memory == nullptr) return;
    if (is_maker_)
        ViaDestroySegment(nic_->handle(), memory);
    else
        ViaReleaseSegment(nic_->handle(), memory);
}

}  // namespace via::fabric::rdm
