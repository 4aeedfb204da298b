// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/via.hpp
 * @brief The Virtual Interface Architecture in C++. Link with -lvipl -lvia.
 *
 * The objects of vipl.h and via/via.h as move-only handles, inline over those functions, without
 * cost of their own; both ways may be mixed, every object tells its handle(). C++23.
 *
 * What holds everywhere and is not repeated:
 *  - What can fail returns via::Expected, whose via::Error says what failed, why and what to do. No
 *    function throws but std::bad_alloc, and none on the data path (posting, taking, waiting for
 *    completions), where nothing is allocated either, but for an Error::message().
 *  - Nothing to report is a value: an empty Completion, an empty Buffer.
 *  - Any thread may use any object at any time unless its class says otherwise; moving and
 *    destroying an object needs that nobody else uses it (VIPL 4.26).
 *  - Timeouts are std::chrono::milliseconds, via::forever has no end; lengths and offsets are
 * bytes.
 *  - Objects may be destroyed in any order. Declared in the order NIC, tags, memory, completion
 *    queues, VIs they release everything; a class says what another order leaves behind.
 *  - In a child made by fork() calls about the parent's objects fail with VIP_INVALID_STATE and
 *    disturb nobody; it may open NICs of its own.
 */
#pragma once

#include <via/coroutine.hpp>
#include <via/listener.hpp>
#include <via/message_channel.hpp>
