// SPDX-License-Identifier: Apache-2.0
#include "shared_context.hpp"

#include <algorithm>
#include <numeric>

#include "info.hpp"

namespace via::fabric {

struct SharedContextOperations {
    static SharedContext& of(fid* shared) {
        return *static_cast<SharedContext*>(reinterpret_cast<fid_ep*>(shared));
    }
    static SharedContext& of(fid_ep* shared) { return *static_cast<SharedContext*>(shared); }
    static int close(fid* shared) {
        if (forked()) return -FI_EOPBADSTATE;
        if (of(shared).users.any()) return -FI_EBUSY;
        delete &of(shared);
        return 0;
    }
    /// It is ready when it is open.
    static int control(fid*, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }
    static ssize_t recvv(fid_ep* shared, const iovec* pieces, void**, std::size_t count, fi_addr_t,
                         void* context) {
        return receive(of(shared), pieces, count, context, of(shared).receive_flags());
    }
    static ssize_t recv(fid_ep* shared, void* buffer, std::size_t length, void*, fi_addr_t,
                        void* context) {
        const iovec piece{buffer, length};
        return recvv(shared, &piece, nullptr, 1, 0, context);
    }
    static ssize_t recvmsg(fid_ep* shared, const fi_msg* message, std::uint64_t flags) {
        if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV)) != 0) return -FI_EOPNOTSUPP;
        return receive(of(shared), message->msg_iov, message->iov_count, message->context, flags);
    }

private:
    /// Without FI_COMPLETION the endpoint that takes it says what is told of it.
    static ssize_t receive(SharedContext& shared, const iovec* pieces, std::size_t count,
                           void* context, std::uint64_t flags) {
        return shared.receive(pieces, count, context,
                              (flags & FI_COMPLETION) != 0 ? Told::all : Told::errors);
    }
};

namespace {

using Operations = SharedContextOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, Operations::control,
                            unsupported,    unsupported,       unsupported};
fi_ops_ep endpoint_operations = {sizeof(fi_ops_ep), unsupported, unsupported, unsupported,
                                 unsupported,       unsupported, unsupported, unsupported};
fi_ops_msg message_operations = {
    sizeof(fi_ops_msg), Operations::recv, Operations::recvv, Operations::recvmsg, unsupported,
    unsupported,        unsupported,      unsupported,       unsupported,         unsupported};

}  // namespace

int SharedContext::open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** shared,
                        void* context) {
    return guarded([&] {
        const std::size_t wanted =
            attributes != nullptr && attributes->size != 0 ? attributes->size : queue_size_default;
        if (wanted > shared_size_max) return -FI_EINVAL;
        std::unique_ptr<SharedContext> made(new SharedContext(
            *static_cast<Domain*>(domain), static_cast<std::uint32_t>(wanted),
            attributes != nullptr ? attributes->op_flags : std::uint64_t{0}, context));
        const VIA_SHARED_RECV_ATTRIBUTES wishes{nullptr, static_cast<VIP_UINT32>(wanted),
                                                made->quota_};
        const VIP_RETURN code =
            ViaCreateSharedRecv(made->domain_.nic().handle(), &wishes, &made->queue_);
        if (code != VIP_SUCCESS) return -error_of(code);
        *shared = made.release();
        return 0;
    });
}

SharedContext::SharedContext(Domain& domain, std::uint32_t size, std::uint64_t flags, void* context)
    : fid_ep{{FI_CLASS_SRX_CTX, context, &object_operations},
             &endpoint_operations,
             nullptr,
             &message_operations,
             nullptr,
             nullptr,
             nullptr,
             nullptr},
      domain_(domain),
      quota_(std::min(size, static_cast<std::uint32_t>(queue_size_default))),
      flags_(flags),
      operations_(std::make_unique<Operation[]>(size)),
      free_(size) {
    std::iota(free_.begin(), free_.end(), operations_.get());
    domain_.users.add();
}

SharedContext::~SharedContext() {
    if (queue_ != nullptr) {
        const VIP_RETURN code = ViaDestroySharedRecv(queue_);
        if (code != VIP_SUCCESS)
            FI_WARN(&provider, FI_LOG_EP_CTRL, "closing: %s\n", ViaReturnText(code));
    }
    domain_.users.remove();
}

ssize_t SharedContext::receive(const iovec* pieces, std::size_t count, void* context, Told told) {
    if (count > segments_max) return -FI_EINVAL;
    const std::size_t length = length_of(pieces, count);
    if (length > std::size_t{UINT32_MAX}) return -FI_EMSGSIZE;
    Operation* taken = nullptr;
    {
        const HeldIf guard(true, lock_);
        if (free_.empty()) return -FI_EAGAIN;
        taken = free_.back();
        free_.pop_back();
    }
    Operation& operation = *taken;
    operation.endpoint = nullptr;
    operation.shared = this;
    const VIP_MEM_HANDLE everything = domain_.nic().everything();
    operation.fill_receive(pieces, count, length, context, told, everything);
    const VIP_RETURN code = ViaPostSharedRecv(queue_, &operation.descriptor, everything);
    if (code == VIP_SUCCESS) return 0;
    give_back(operation);
    return code == VIP_ERROR_RESOURCE ? -FI_EAGAIN : -error_of(code);
}

void SharedContext::give_back(Operation& operation) {
    const HeldIf guard(true, lock_);
    free_.push_back(&operation);
}

bool SharedContext::post_again(Operation& operation) {
    operation.descriptor.CS.Length = static_cast<VIP_UINT32>(operation.length);
    return ViaPostSharedRecv(queue_, &operation.descriptor, domain_.nic().everything()) ==
           VIP_SUCCESS;
}

}  // namespace via::fabric
