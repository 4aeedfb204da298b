// One client of `via bench serve`, in a process of its own.
#pragma once

#include "bench/control.hpp"
#include "bench/serve.hpp"

namespace via::bench {

// Until the client leaves, vanishes, breaks a rule or its time is over; says which. The client's
// hello has been heard.
void serve_client(FileHandle socket, const Hello& hello, const ServeOptions& options);

}  // namespace via::bench
