// The kernel's side of asymmetric fences (base/asymmetric_fence.hpp): membarrier.
#pragma once

namespace via::agent {

/// Hangs in what the kernel has of heavy fences. 0: they are in force; or errno of what it has not,
/// and full fences and ordinary locks do. For each NIC that is opened, before its devices: a forked
/// child registers anew. Any thread. If membarrier is forbidden later, fences that somebody counts
/// on take a millisecond, and nobody else comes to count on any.
int offer_heavy_fences();

}  // namespace via::agent
