// SPDX-License-Identifier: Apache-2.0
// Completion queues as programs see them, of both kinds of endpoints.
#pragma once

#include <cstddef>
#include <memory>

#include "common.hpp"
#include "wait_object.hpp"

namespace via::fabric {

class Domain;

/// Owns what a program asked a completion queue to be: its format, and what it sleeps on.
class QueueBase : public fid_cq {
public:
    /// What a program sleeps on; nullptr: none was asked for.
    WaitObject* waiting() { return waiting_.get(); }

    Users users;

protected:
    QueueBase(Domain& domain, const fi_cq_attr& attributes, fi_ops& object, fi_ops_cq& queue,
              void* context);
    ~QueueBase() = default;
    QueueBase(const QueueBase&) = delete;

    /// What is asked for in `wanted`; 0, or an error of libfabric's. `most`: of formats.
    static int look_at(const fi_cq_attr* attributes, fi_cq_format most, fi_cq_attr& wanted);
    static int control(::fid* queue, int command, void* argument);

    template <class Completion>
    void write(void* buffer, std::size_t index, const Completion& of) const {
        if constexpr (requires { of.tag; })
            if (format_ == FI_CQ_FORMAT_TAGGED) {
                static_cast<fi_cq_tagged_entry*>(buffer)[index] = {of.context, of.flags, of.length,
                                                                   of.buffer,  of.data,  of.tag};
                return;
            }
        if (format_ == FI_CQ_FORMAT_CONTEXT)
            static_cast<fi_cq_entry*>(buffer)[index] = {of.context};
        else if (format_ == FI_CQ_FORMAT_MSG)
            static_cast<fi_cq_msg_entry*>(buffer)[index] = {of.context, of.flags, of.length};
        else
            static_cast<fi_cq_data_entry*>(buffer)[index] = {of.context, of.flags, of.length,
                                                             of.buffer, of.data};
    }
    /// Of one that says nothing of a tag, nor of bytes that had no room.
    template <class Completion>
    static void write_error(fi_cq_err_entry& entry, const Completion& of, int provider_error) {
        entry.op_context = of.context;
        entry.flags = of.flags;
        entry.len = of.length;
        entry.buf = of.buffer;
        entry.data = of.data;
        entry.tag = 0;
        entry.olen = 0;
        entry.err = of.error;
        entry.prov_errno = provider_error;
        entry.err_data_size = 0;
    }

    Domain& domain_;
    const fi_cq_format format_;
    std::unique_ptr<WaitObject> waiting_;  ///< if asked for
    bool signalled_ = false;
};

}  // namespace via::fabric
