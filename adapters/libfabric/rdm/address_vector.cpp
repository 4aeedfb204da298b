// SPDX-License-Identifier: Apache-2.0
#include "rdm/address_vector.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {

struct AddressVectorOperations {
    static AddressVector& of(fid_av* vector) { return *static_cast<AddressVector*>(vector); }

    /// How many were inserted; the others' numbers are FI_ADDR_NOTAVAIL. With FI_SYNC_ERR an error
    /// of each, or 0, goes where `context` is.
    static int insert(fid_av* vector, const void* addresses, std::size_t count, fi_addr_t* numbers,
                      std::uint64_t flags, void* context) {
        if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
        int* const errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
        return guarded([&] {
            AddressVector& object = of(vector);
            const Domain::Guard guard(object.domain_);
            int inserted = 0;
            for (std::size_t index = 0; index < count; ++index) {
                sockaddr_in address;
                std::memcpy(&address, static_cast<const sockaddr_in*>(addresses) + index,
                            sizeof address);
                fi_addr_t number = FI_ADDR_NOTAVAIL;
                if (address.sin_family == AF_INET) number = object.insert(address);
                if (number != FI_ADDR_NOTAVAIL) ++inserted;
                if (numbers != nullptr) numbers[index] = number;
                if (errors != nullptr) errors[index] = number != FI_ADDR_NOTAVAIL ? 0 : FI_EINVAL;
            }
            return inserted;
        });
    }
    static int remove(fid_av* vector, fi_addr_t* numbers, std::size_t count, std::uint64_t flags) {
        if (flags != 0) return -FI_EBADFLAGS;
        const Domain::Guard guard(of(vector).domain_);
        for (std::size_t index = 0; index < count; ++index)
            if (!of(vector).remove(numbers[index])) return -FI_EINVAL;
        return 0;
    }
    static int lookup(fid_av* vector, fi_addr_t number, void* address, std::size_t* length) {
        const Domain::Guard guard(of(vector).domain_);
        const sockaddr_in* const found = of(vector).find(number);
        if (found == nullptr) return -FI_EINVAL;
        write_address(*found, address, length);
        return 0;
    }
    static const char* straddr(fid_av*, const void* address, char* text, std::size_t* length) {
        sockaddr_in from;
        std::memcpy(&from, address, sizeof from);
        char host[INET_ADDRSTRLEN] = "?";
        inet_ntop(AF_INET, &from.sin_addr, host, sizeof host);
        const int wanted = std::snprintf(text, *length, "fi_sockaddr_in://%s:%u", host,
                                         static_cast<unsigned>(port_of(from)));
        *length = static_cast<std::size_t>(wanted) + 1;
        return text;
    }
    static int close(fid* vector) {
        if (forked()) return -FI_EOPBADSTATE;
        AddressVector& object = of(reinterpret_cast<fid_av*>(vector));
        if (object.users.any()) return -FI_EBUSY;
        delete &object;
        return 0;
    }
};

namespace {

using Operations = AddressVectorOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, unsupported,
                            unsupported,    unsupported,       unsupported};
fi_ops_av vector_operations = {sizeof(fi_ops_av),   Operations::insert, unsupported,
                               unsupported,         Operations::remove, Operations::lookup,
                               Operations::straddr, unsupported};

}  // namespace

int AddressVector::open(fid_domain* domain, fi_av_attr* attributes, fid_av** vector,
                        void* context) {
    return guarded([&] {
        const fi_av_attr wanted = attributes != nullptr ? *attributes : fi_av_attr{};
        // No sharing between processes, no events, no contexts behind an address.
        if (wanted.name != nullptr || wanted.flags != 0 || wanted.rx_ctx_bits != 0)
            return -FI_ENOSYS;
        *vector = new AddressVector(*static_cast<Domain*>(domain), wanted.count, context);
        if (attributes != nullptr && attributes->type == FI_AV_UNSPEC)
            attributes->type = FI_AV_TABLE;
        return 0;
    });
}

AddressVector::AddressVector(Domain& domain, std::size_t count, void* context)
    : fid_av{{FI_CLASS_AV, context, &object_operations}, &vector_operations}, domain_(domain) {
    entries_.reserve(std::min<std::size_t>(count, 1 << 16));
    domain_.users.add();
}

AddressVector::~AddressVector() { domain_.users.remove(); }

fi_addr_t AddressVector::insert(const sockaddr_in& address) {
    // Room for the way back, so that remove() cannot fail.
    if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 16);
    const fi_addr_t number = free_.empty() ? entries_.size() : free_.back();
    if (number == entries_.size()) entries_.emplace_back();
    numbers_.insert_or_assign(name_of(address), number);
    if (!free_.empty()) free_.pop_back();
    entries_[number] = {address, ++inserted_};
    return number;
}

bool AddressVector::remove(fi_addr_t number) {
    if (find(number) == nullptr) return false;
    const auto known = numbers_.find(name_of(entries_[number].address));
    if (known != numbers_.end() && known->second == number) numbers_.erase(known);
    entries_[number] = {};
    free_.push_back(number);
    for (Endpoint* endpoint : endpoints_) endpoint->forget(number);
    return true;
}

}  // namespace via::fabric::rdm
