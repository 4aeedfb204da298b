// SPDX-License-Identifier: Apache-2.0
#include "queue_base.hpp"

namespace via::fabric {

QueueBase::QueueBase(Domain& domain, const fi_cq_attr& attributes, fi_ops& object, fi_ops_cq& queue,
                     void* context)
    : fid_cq{{FI_CLASS_CQ, context, &object}, &queue},
      domain_(domain),
      format_(attributes.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attributes.format) {
    if (attributes.wait_obj != FI_WAIT_NONE) waiting_ = std::make_unique<WaitObject>();
}

int QueueBase::look_at(const fi_cq_attr* attributes, fi_cq_format most, fi_cq_attr& wanted) {
    wanted = attributes != nullptr ? *attributes : fi_cq_attr{};
    if (wanted.wait_obj != FI_WAIT_NONE && wanted.wait_obj != FI_WAIT_UNSPEC &&
        wanted.wait_obj != FI_WAIT_FD)
        return -FI_ENOSYS;
    return wanted.format > most ? -FI_ENOSYS : 0;
}

int QueueBase::control(::fid* queue, int command, void* argument) {
    WaitObject* const waiting =
        static_cast<QueueBase*>(reinterpret_cast<fid_cq*>(queue))->waiting();
    return tell_wait_object(waiting != nullptr ? waiting->descriptor() : -1, command, argument);
}

}  // namespace via::fabric
