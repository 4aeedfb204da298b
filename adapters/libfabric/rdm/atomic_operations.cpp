// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: libfabric's atomic operations. Values are of one piece of memory.
#include "rdm/arithmetic.hpp"
#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {
namespace {

/// Where the peer's values are.
struct There {
    fi_addr_t with;
    std::uint64_t address;
    std::uint64_t key;
};
struct What {
    Form form;
    fi_datatype datatype;
    fi_op operation;
    std::size_t count;
};

const std::byte* bytes_of(const void* values) { return static_cast<const std::byte*>(values); }

ssize_t do_with(Endpoint& endpoint, const There& there, const What& what, AtomicValues values,
                void* context, bool told) {
    const auto datatype = static_cast<std::uint32_t>(what.datatype);
    const auto operation = static_cast<std::uint32_t>(what.operation);
    if (!is_atomic(what.form, datatype, operation)) return -FI_EOPNOTSUPP;
    if (what.count == 0 || there.key > UINT32_MAX) return -FI_EINVAL;
    if (what.count > atomic_bytes_max / atomic_size(datatype)) return -FI_EMSGSIZE;
    if (operation == FI_ATOMIC_READ) values.operands = nullptr;
    const AtomicCall call{there.address,
                          static_cast<std::uint32_t>(there.key),
                          static_cast<std::uint32_t>(what.count),
                          static_cast<std::uint8_t>(datatype),
                          static_cast<std::uint8_t>(operation),
                          static_cast<std::uint8_t>(what.form),
                          0};
    const Domain::Guard guard(endpoint.domain());
    return endpoint.atomic({there.with, call, values, context, told});
}

ssize_t do_now(fid_ep* endpoint, const There& there, const What& what, const AtomicValues& values,
               void* context) {
    Endpoint& object = endpoint_of(endpoint);
    return do_with(object, there, what, values, context,
                   object.completions().tells_sends(object.transmit_flags()));
}

/// Values are copied, and an answer awaited, whatever `flags` say of that.
ssize_t do_message(fid_ep* endpoint, const fi_msg_atomic& message, const What& what,
                   const AtomicValues& values, std::uint64_t flags) {
    if ((flags & (FI_COMMIT_COMPLETE | FI_FENCE | FI_REMOTE_CQ_DATA | FI_TAGGED)) != 0)
        return -FI_EOPNOTSUPP;
    if (message.rma_iov_count != 1 || message.rma_iov->count != what.count) return -FI_EINVAL;
    Endpoint& object = endpoint_of(endpoint);
    return do_with(object, {message.addr, message.rma_iov->addr, message.rma_iov->key}, what,
                   values, message.context, object.completions().tells_sends(flags));
}

/// False: that is no single piece with as many values.
bool take_piece(const fi_ioc* pieces, std::size_t count, std::size_t values, void*& begin) {
    if (count != 1 || pieces->count != values) return false;
    begin = pieces->addr;
    return true;
}

std::size_t values_in(const fi_ioc* pieces, std::size_t count) {
    return count == 1 ? pieces->count : 0;
}

// fi_atomic() -----------------------------------------------------------------------------------

ssize_t write(fid_ep* endpoint, const void* operands, std::size_t count, void*, fi_addr_t with,
              std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation,
              void* context) {
    return do_now(endpoint, {with, address, key}, {Form::plain, datatype, operation, count},
                  {bytes_of(operands), nullptr, nullptr}, context);
}

ssize_t writev(fid_ep* endpoint, const fi_ioc* pieces, void**, std::size_t count, fi_addr_t with,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation,
               void* context) {
    if (count != 1) return -FI_EINVAL;
    return write(endpoint, pieces->addr, pieces->count, nullptr, with, address, key, datatype,
                 operation, context);
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_atomic* message, std::uint64_t flags) {
    if (message->iov_count != 1) return -FI_EINVAL;
    return do_message(endpoint, *message,
                      {Form::plain, message->datatype, message->op, message->msg_iov->count},
                      {bytes_of(message->msg_iov->addr), nullptr, nullptr}, flags);
}

ssize_t inject(fid_ep* endpoint, const void* operands, std::size_t count, fi_addr_t with,
               std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation) {
    return do_with(endpoint_of(endpoint), {with, address, key},
                   {Form::plain, datatype, operation, count},
                   {bytes_of(operands), nullptr, nullptr}, nullptr, false);
}

// fi_fetch_atomic() -----------------------------------------------------------------------------

ssize_t readwrite(fid_ep* endpoint, const void* operands, std::size_t count, void*, void* results,
                  void*, fi_addr_t with, std::uint64_t address, std::uint64_t key,
                  fi_datatype datatype, fi_op operation, void* context) {
    return do_now(endpoint, {with, address, key}, {Form::fetch, datatype, operation, count},
                  {bytes_of(operands), nullptr, static_cast<std::byte*>(results)}, context);
}

/// What `operation` needs of the pieces; false: they do not fit together.
bool take_pieces(const fi_ioc* pieces, std::size_t count, const fi_ioc* results,
                 std::size_t result_count, fi_op operation, AtomicValues& values) {
    const std::size_t all = values_in(results, result_count);
    void* begin = nullptr;
    if (!take_piece(results, result_count, all, begin)) return false;
    values.results = static_cast<std::byte*>(begin);
    if (operation == FI_ATOMIC_READ) return true;
    if (!take_piece(pieces, count, all, begin)) return false;
    values.operands = bytes_of(begin);
    return true;
}

ssize_t readwritev(fid_ep* endpoint, const fi_ioc* pieces, void**, std::size_t count,
                   fi_ioc* results, void**, std::size_t result_count, fi_addr_t with,
                   std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation,
                   void* context) {
    AtomicValues values{};
    if (!take_pieces(pieces, count, results, result_count, operation, values)) return -FI_EINVAL;
    return do_now(endpoint, {with, address, key},
                  {Form::fetch, datatype, operation, results->count}, values, context);
}

ssize_t readwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**,
                     std::size_t result_count, std::uint64_t flags) {
    AtomicValues values{};
    if (!take_pieces(message->msg_iov, message->iov_count, results, result_count, message->op,
                     values))
        return -FI_EINVAL;
    return do_message(endpoint, *message,
                      {Form::fetch, message->datatype, message->op, results->count}, values, flags);
}

// fi_compare_atomic() ---------------------------------------------------------------------------

ssize_t compwrite(fid_ep* endpoint, const void* operands, std::size_t count, void*,
                  const void* compares, void*, void* results, void*, fi_addr_t with,
                  std::uint64_t address, std::uint64_t key, fi_datatype datatype, fi_op operation,
                  void* context) {
    return do_now(endpoint, {with, address, key}, {Form::compare, datatype, operation, count},
                  {bytes_of(operands), bytes_of(compares), static_cast<std::byte*>(results)},
                  context);
}

ssize_t compwritev(fid_ep* endpoint, const fi_ioc* pieces, void**, std::size_t count,
                   const fi_ioc* compares, void**, std::size_t compare_count, fi_ioc* results,
                   void**, std::size_t result_count, fi_addr_t with, std::uint64_t address,
                   std::uint64_t key, fi_datatype datatype, fi_op operation, void* context) {
    AtomicValues values{};
    void* compared = nullptr;
    if (!take_pieces(pieces, count, results, result_count, operation, values) ||
        !take_piece(compares, compare_count, results->count, compared))
        return -FI_EINVAL;
    values.compares = bytes_of(compared);
    return do_now(endpoint, {with, address, key},
                  {Form::compare, datatype, operation, results->count}, values, context);
}

ssize_t compwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* compares, void**,
                     std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                     std::uint64_t flags) {
    AtomicValues values{};
    void* compared = nullptr;
    if (!take_pieces(message->msg_iov, message->iov_count, results, result_count, message->op,
                     values) ||
        !take_piece(compares, compare_count, results->count, compared))
        return -FI_EINVAL;
    values.compares = bytes_of(compared);
    return do_message(endpoint, *message,
                      {Form::compare, message->datatype, message->op, results->count}, values,
                      flags);
}

// What there is ---------------------------------------------------------------------------------

int tell_valid(Form form, fi_datatype datatype, fi_op operation, std::size_t* count) {
    const auto type = static_cast<std::uint32_t>(datatype);
    if (!is_atomic(form, type, static_cast<std::uint32_t>(operation))) return -FI_EOPNOTSUPP;
    if (count != nullptr) *count = atomic_bytes_max / atomic_size(type);
    return 0;
}

template <Form form>
int valid(fid_ep*, fi_datatype datatype, fi_op operation, std::size_t* count) {
    return tell_valid(form, datatype, operation, count);
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype datatype, fi_op operation, fi_atomic_attr* attributes,
                 std::uint64_t flags) {
    if (flags != 0 && flags != FI_FETCH_ATOMIC && flags != FI_COMPARE_ATOMIC)
        return (flags & FI_TAGGED) != 0 ? -FI_EOPNOTSUPP : -FI_EINVAL;
    const Form form = flags == 0                 ? Form::plain
                      : flags == FI_FETCH_ATOMIC ? Form::fetch
                                                 : Form::compare;
    const int error = tell_valid(form, datatype, operation, &attributes->count);
    if (error == 0) attributes->size = atomic_size(static_cast<std::uint32_t>(datatype));
    return error;
}

fi_ops_atomic atomic_operations = {sizeof(fi_ops_atomic),
                                   write,
                                   writev,
                                   writemsg,
                                   inject,
                                   readwrite,
                                   readwritev,
                                   readwritemsg,
                                   compwrite,
                                   compwritev,
                                   compwritemsg,
                                   valid<Form::plain>,
                                   valid<Form::fetch>,
                                   valid<Form::compare>};

}  // namespace via::fabric::rdm
