// SPDX-License-Identifier: Apache-2.0
// Poll set: which of several completion queues and counters have something.
#pragma once

#include <mutex>
#include <vector>

#include "common.hpp"

namespace via::fabric {

class Domain;

class PollSet : public fid_poll {
public:
    static int open(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set);

private:
    friend struct PollSetOperations;
    explicit PollSet(Domain& domain);
    ~PollSet();
    int add(::fid& object);
    int remove(::fid& object);
    /// The contexts of up to `room` that have something; all of them make progress.
    int poll(void** contexts, int room);

    Domain& domain_;
    std::mutex lock_;
    std::vector<::fid*> objects_;
};

}  // namespace via::fabric
