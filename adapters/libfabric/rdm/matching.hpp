// SPDX-License-Identifier: Apache-2.0
// Who gets which message: posted receives, and messages that came before their receive.
#pragma once

#include <memory>
#include <vector>

#include "common.hpp"
#include "rdm/wire.hpp"

namespace via::fabric::rdm {

class Connection;
struct Outgoing;
struct Peer;
struct Slot;

/// A posted receive; then the message that is pulled into it.
struct Receive {
    Receive* next;
    Peer* from;  ///< nullptr: any
    std::uint64_t tag;
    std::uint64_t ignore;
    std::byte* buffer;
    std::size_t room;
    void* context;
    bool with_tag;
    bool told;  ///< the program wants to know when it is done, and not only of errors
    bool done;  ///< what is left is to tell the peer
    // One for several messages stays posted, and each of them gets a part of it.
    bool takes_many = false;
    bool is_used_up = false;
    std::uint32_t parts = 0;  ///< that are not done yet
    Receive* of = nullptr;    ///< this is a part of that one

    Connection* connection;  ///< that the message is pulled over
    Header header;
    Offer offer;
    std::size_t pulled;
};

/// A message that came before its receive. It lies in the connection's receive until many do, then
/// in memory of its own.
struct Message {
    Message* next = nullptr;
    Peer* peer = nullptr;
    Connection* connection = nullptr;  ///< nullptr: from ourselves
    Header header{};
    const std::byte* bytes = nullptr;
    std::size_t length = 0;      ///< of the program's bytes
    Offer offer{};               ///< if header.kind says so
    Slot* slot = nullptr;        ///< where it lies; nullptr: in memory of its own, as this does
    Outgoing* sender = nullptr;  ///< from ourselves, and not copied: who waits for its end
};

/// What a message takes that has memory of its own: one without bytes takes some, too.
inline std::size_t message_memory(std::size_t length) { return sizeof(Message) + length; }

/// A list in the order in which things came.
template <class Element>
class Line {
public:
    bool empty() const { return first_ == nullptr; }
    void push(Element& element) {
        element.next = nullptr;
        *last_ = &element;
        last_ = &element.next;
    }
    /// Takes out the first that `fits`; nullptr: none does.
    template <class Fits>
    Element* take(Fits&& fits) {
        return take(fits, [](const Element&) { return false; });
    }
    /// One that `stays` is told and not taken out.
    template <class Fits, class Stays>
    Element* take(Fits&& fits, Stays&& stays) {
        for (Element** link = &first_; *link != nullptr; link = &(*link)->next)
            if (fits(**link)) return stays(**link) ? *link : unlink(link);
        return nullptr;
    }
    template <class Fits>
    Element* find(Fits&& fits) const {
        for (Element* at = first_; at != nullptr; at = at->next)
            if (fits(*at)) return at;
        return nullptr;
    }
    Element* first() const { return first_; }
    Element* take_first() { return first_ != nullptr ? unlink(&first_) : nullptr; }

    Line() = default;
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

private:
    Element* unlink(Element** link) {
        Element* const element = *link;
        *link = element->next;
        if (*link == nullptr) last_ = link;
        return element;
    }
    Element* first_ = nullptr;
    Element** last_ = &first_;
};

/// Does the receive take the message? Whether both are tagged is another question.
inline bool takes(const Receive& receive, const Peer* from, std::uint64_t tag) {
    return ((receive.tag ^ tag) & ~receive.ignore) == 0 &&
           (receive.from == nullptr || receive.from == from);
}
/// The messages that a receive of this kind takes. `from`: nullptr: anybody's.
inline auto fitting(const Peer* from, std::uint64_t tag, std::uint64_t ignore) {
    return [=](const Message& message) {
        return ((message.header.tag ^ tag) & ~ignore) == 0 &&
               (from == nullptr || message.peer == from);
    };
}

/// Owns the order of what is posted, or has come: tagged messages and others never meet, so an
/// endpoint has two lines of each.
template <class Element>
class TwoLines {
public:
    Line<Element>& tagged_if(bool with_tag) { return with_tag ? tagged_ : plain_; }
    const Line<Element>& tagged_if(bool with_tag) const { return with_tag ? tagged_ : plain_; }

private:
    Line<Element> tagged_;
    Line<Element> plain_;
};

/// Objects that are taken and given back for each message, without asking the system each time.
template <class Object>
class Pool {
public:
    /// nullptr: no memory.
    Object* take() {
        if (free_.empty() && !grow()) return nullptr;
        return free_.take_first();
    }
    void give_back(Object& object) { free_.push_front(object); }

private:
    struct Free {
        Object* first = nullptr;
        bool empty() const { return first == nullptr; }
        Object* take_first() {
            Object* const object = first;
            first = object->next;
            return object;
        }
        void push_front(Object& object) {
            object.next = first;
            first = &object;
        }
    };
    bool grow() {
        constexpr std::size_t many = 64;
        return guarded([&] {
                   blocks_.push_back(std::make_unique<Object[]>(many));
                   for (std::size_t index = 0; index < many; ++index)
                       free_.push_front(blocks_.back()[index]);
                   return 0;
               }) == 0;
    }
    Free free_;
    std::vector<std::unique_ptr<Object[]>> blocks_;
};

}  // namespace via::fabric::rdm
