// What the system says about a process of the cluster, for people.
#pragma once

#include <sys/types.h>

#include <string>

namespace via::lab::exec {

/// "ping (process 1234)".
std::string describe_process(pid_t pid);
/// "runs", "sleeps in the system (hrtimer_nanosleep)".
std::string what_it_does(pid_t pid);

}  // namespace via::lab::exec
