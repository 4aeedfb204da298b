#include "agent/processor_watch.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

namespace via::agent {
namespace {

Ran ran(__rusage_who who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto time = [](const timeval& of) {
        return seconds(of.tv_sec) + microseconds(of.tv_usec);
    };
    return {time(usage.ru_utime) + time(usage.ru_stime),
            static_cast<std::uint64_t>(usage.ru_nvcsw)};
}

}  // namespace

std::function<Ran()> ran_beside_caller() {
    clockid_t opener{};
    const bool known = pthread_getcpuclockid(pthread_self(), &opener) == 0;
    return [=] {
        // The system brings its time up to date, also in the sum. A thread that is gone has none.
        timespec time{};
        if (known) clock_gettime(opener, &time);
        const Ran all = ran(RUSAGE_SELF);
        const Ran caller = ran(RUSAGE_THREAD);
        return Ran{{all.time.ns - caller.time.ns}, all.sleeps - caller.sleeps};
    };
}

}  // namespace via::agent
