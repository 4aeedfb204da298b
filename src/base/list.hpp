// An intrusive doubly linked list: membership without allocation. Not thread-safe; the turn guards.
#pragma once

#include "base/assert.hpp"

namespace via {

struct ListLink {
    ListLink* next = nullptr;
    ListLink* previous = nullptr;
    bool linked() const { return next != nullptr; }
    ListLink() = default;
    ListLink(const ListLink&) = delete;
    ListLink& operator=(const ListLink&) = delete;
};

/// `T` derives from ListLink or from a tag type `L` that does; L tells several memberships apart.
template <class T, class L = ListLink>
class List {
public:
    List() { head_.next = head_.previous = &head_; }
    List(const List&) = delete;
    List& operator=(const List&) = delete;

    bool empty() const { return head_.next == &head_; }
    T* front() { return empty() ? nullptr : object(head_.next); }

    void push_back(T& item) {
        ListLink& link = static_cast<L&>(item);
        VIA_ASSERT(!link.linked());
        link.previous = head_.previous;
        link.next = &head_;
        head_.previous->next = &link;
        head_.previous = &link;
    }

    static void remove(T& item) {
        ListLink& link = static_cast<L&>(item);
        VIA_ASSERT(link.linked());
        link.previous->next = link.next;
        link.next->previous = link.previous;
        link.next = link.previous = nullptr;
    }

    static void remove_if_linked(T& item) {
        if (static_cast<L&>(item).linked()) remove(item);
    }

    T* pop_front() {
        T* item = front();
        if (item != nullptr) remove(*item);
        return item;
    }

    /// Moves the first item to the end: round robin.
    void rotate() {
        if (T* item = pop_front()) push_back(*item);
    }

    /// The item after `item`, or nullptr at the end.
    T* next(T& item) {
        ListLink* link = static_cast<L&>(item).next;
        return link == &head_ ? nullptr : object(link);
    }

private:
    static T* object(ListLink* link) { return static_cast<T*>(static_cast<L*>(link)); }
    ListLink head_;
};

}  // namespace via
