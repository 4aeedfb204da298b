/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file via/via.h
 * @brief What OpenVIA offers a C program beyond VIPL 1.0. Link with -lvipl -lvia.
 *
 * The objects are those of vipl.h; all that is said there about threads, handles, timeouts and
 * forked children holds here too. Compiles as C99 and later and as C++98 and later. C++ programs
 * may prefer <via/via.hpp>.
 */
#ifndef VIA_VIA_H
#define VIA_VIA_H

#include <stddef.h>
#include <string.h>
#include <vipl.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Errors in words ----------------------------------------------------------------------- */

/**
 * @return a few words for a return code, for instance "no match: nobody listens to that
 *         discriminator"; never NULL; lives for ever. Any thread, also in a forked child.
 */
const char* ViaReturnText(VIP_RETURN Code);

/**
 * As VipOpenNic, and says in words why it failed.
 * @param Why  NULL, or room for WhySize bytes; on failure receives what is wrong and what to do,
 *             cut off if need be and always terminated; on success the empty string
 */
VIP_RETURN ViaOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle, VIP_CHAR* Why,
                      size_t WhySize);

/* ---- Private data with connecting ---------------------------------------------------------- */

/** Bytes that may go along with a request, an acceptance or a rejection. */
#define VIA_PRIVATE_DATA_MAX 256

/**
 * As VipConnectWait, and hands over the requester's private data. One listens while a call waits,
 * not between two calls; ViaCreateListener does.
 * @param Data    room for *Length bytes; may be NULL when *Length is 0
 * @param Length  in: the room; out: how many bytes came. What does not fit is left out.
 */
VIP_RETURN ViaConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
                          VIP_CONN_HANDLE* ConnHandle, VIP_PVOID Data, VIP_UINT32* Length);

/**
 * As VipConnectRequest, with private data for the other side. What came back with acceptance or
 * rejection is read by ViaQueryPrivateData.
 *
 * It asks again by itself, after 1, 2, 4, 8, 16, 16 ... ms until its time is up, where somebody
 * holds the discriminator but nobody takes requests just now: one who waits for a peer by the same
 * name (VIPL 4.22), or a listener with as many requests as it can have. VIP_NO_MATCH thus means
 * that nobody has that discriminator: a server between two calls of VipConnectWait does not. A host
 * that says nothing is VIP_NOT_REACHABLE after the NIC's patience, with VIP_INFINITE, too.
 * @param Data  Length bytes, 0 to VIA_PRIVATE_DATA_MAX; more: VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                             VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout,
                             VIP_VI_ATTRIBUTES* RemoteViAttribs, const void* Data,
                             VIP_UINT32 Length);

/** As VipConnectPeerRequest, with private data for the other side (Data, Length as above). */
VIP_RETURN ViaConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                 VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout, const void* Data,
                                 VIP_UINT32 Length);

/** As VipConnectAccept, with private data for the requester (Data, Length as above). */
VIP_RETURN ViaConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle, const void* Data,
                            VIP_UINT32 Length);

/** As VipConnectReject, with private data for the requester (Data, Length as above). */
VIP_RETURN ViaConnectReject(VIP_CONN_HANDLE ConnHandle, const void* Data, VIP_UINT32 Length);

/**
 * The private data that came with the answer to the VI's last request, acceptance or rejection, or
 * from its peer in a peer-to-peer connection. None came: length 0.
 * @param Data    room for *Length bytes; may be NULL when *Length is 0
 * @param Length  in: the room; out: how many bytes came. What does not fit is left out.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaQueryPrivateData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data, VIP_UINT32* Length);

/* ---- A listener that stands ---------------------------------------------------------------- */

/** What ViaCreateListener makes; never NULL. */
typedef VIP_PVOID VIA_LISTENER_HANDLE;

/** Requests that can wait in one listener, at most. */
#define VIA_BACKLOG_MAX 4096

/**
 * Listens from now on, also while no thread waits: requests wait in the order of their coming until
 * ViaListenerWait takes them, where with VipConnectWait alone nobody listens between two calls.
 *
 * A request beyond the backlog is answered VIP_NO_MATCH, as if nobody listened; ViaConnectRequest
 * then asks again until its time is up. One whose requester gives up, or ends, leaves the backlog.
 * Several listeners of a NIC may have the same discriminator, and take requests in turn; a call of
 * VipConnectWait for it comes first. Ends with ViaDestroyListener or VipCloseNic; requests that
 * wait are then answered VIP_NO_MATCH.
 * @param LocalAddr  as for VipConnectWait
 * @param Backlog    requests that may wait, 1 to VIA_BACKLOG_MAX
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: another process has the
 *         discriminator, too many listeners, no memory
 */
VIP_RETURN ViaCreateListener(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr,
                             VIP_ULONG Backlog, VIA_LISTENER_HANDLE* Listener);
/**
 * Takes the oldest request, or waits for one: as ViaConnectWait, answered by the same calls. Any
 * number of threads may wait.
 * @param Timeout  milliseconds; 0: does not wait; VIP_INFINITE: for ever
 * @return VIP_SUCCESS; VIP_TIMEOUT: none came; VIP_INVALID_STATE: the listener was destroyed, or
 *         the NIC closed, meanwhile; VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaListenerWait(VIA_LISTENER_HANDLE Listener, VIP_ULONG Timeout,
                           VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
                           VIP_CONN_HANDLE* ConnHandle, VIP_PVOID Data, VIP_UINT32* Length);
/**
 * A file descriptor that is readable while requests wait, as ViaCQDescriptor's. Take them with
 * ViaListenerWait and Timeout 0 until VIP_TIMEOUT. Ends with the listener.
 * @return VIP_SUCCESS; VIP_ERROR_RESOURCE: none to be had; VIP_ERROR_NOT_SUPPORTED: a simulated NIC
 */
VIP_RETURN ViaListenerDescriptor(VIA_LISTENER_HANDLE Listener, int* Descriptor);
/** @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no listener, or no more */
VIP_RETURN ViaDestroyListener(VIA_LISTENER_HANDLE Listener);

/* ---- Credits ------------------------------------------------------------------------------- */

/**
 * Asks for credits on the VI's next connections: a message that consumes a receive (a send, or an
 * RDMA write with immediate data) then waits at its sender until the other side has posted one,
 * instead of breaking the connection. Holds where both VIs ask for it, on the two reliable levels.
 * @return VIP_SUCCESS; VIP_INVALID_STATE unless the VI is idle; VIP_INVALID_RELIABILITY_LEVEL on an
 *         unreliable VI
 */
VIP_RETURN ViaSetCredits(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN Wanted);

/**
 * @param Agreed  VIP_TRUE: the connection has credits
 * @param Left    messages that can be sent now without waiting; 0 without a connection
 */
VIP_RETURN ViaQueryCredits(VIP_VI_HANDLE ViHandle, VIP_BOOLEAN* Agreed, VIP_UINT32* Left);

/* ---- Shared receive queues ----------------------------------------------------------------- */

/** What ViaCreateSharedRecv makes; never NULL. */
typedef VIP_PVOID VIA_SHARED_RECV_HANDLE;

/** What a shared receive queue is to be. */
typedef struct _VIA_SHARED_RECV_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag; /**< that of all its VIs; NULL: they have none */
    VIP_UINT32 MaxDescriptors;  /**< posted, and taken by no VI: 1 to 65536 */
    VIP_UINT32 Quota; /**< receives that one VI may have, done ones included until they are taken
                           off; at most, and with 0, as many as a receive queue has room for */
} VIA_SHARED_RECV_ATTRIBUTES;

/** What a shared receive queue is just now. */
typedef struct _VIA_SHARED_RECV_STATE {
    VIP_UINT32 Posted; /**< receives that no VI has taken */
    VIP_UINT32 Vis;    /**< that take from it */
    VIP_UINT32 Limit;  /**< that is armed; 0: none */
} VIA_SHARED_RECV_STATE;

/**
 * Makes a queue of receives that many VIs of the NIC share. A VI takes its oldest receive when a
 * message comes that consumes one and the VI has no receive of its own. From then on the descriptor
 * is in that VI's receive queue: it completes there, in the order of the VI's messages, or is
 * flushed there when the VI disconnects, and VipRecvDone, VipRecvWait and the VI's completion queue
 * bring it. The program may then post it again, here or elsewhere.
 *
 * A VI that finds the queue empty, or has its quota, is as one without a receive: an unreliable VI
 * drops the message, a reliable one breaks with VIP_ERROR_RECVQ_EMPTY. One with credits
 * (ViaSetCredits) takes receives beforehand, one or its share of what is left, and tells its peer
 * of those only: no connection breaks, and a VI waits for its next receive behind those that wait
 * already. What it took so is flushed on its receive queue when it disconnects.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_PTAG; VIP_ERROR_RESOURCE: 256 of the NIC
 *         exist, or no memory
 */
VIP_RETURN ViaCreateSharedRecv(VIP_NIC_HANDLE NicHandle,
                               const VIA_SHARED_RECV_ATTRIBUTES* Attributes,
                               VIA_SHARED_RECV_HANDLE* Queue);
/**
 * Ends it. Descriptors that no VI has taken are the program's again; none of them completes.
 * @return VIP_SUCCESS; VIP_ERROR_RESOURCE: a VI takes from it; VIP_INVALID_PARAMETER: none, or no
 *         more
 */
VIP_RETURN ViaDestroySharedRecv(VIA_SHARED_RECV_HANDLE Queue);
/**
 * Has a VI take from that queue, and from no other, until it is set anew or the VI is destroyed.
 * Receives that are posted to the VI itself are used first.
 * @param Queue  of the same NIC; NULL: the VI has its own receives only
 * @return VIP_SUCCESS; VIP_INVALID_STATE unless the VI is idle; VIP_INVALID_PTAG: the VI's tag is
 *         another one, as VipSetViAttributes cannot make it afterwards either;
 *         VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaSetSharedRecv(VIP_VI_HANDLE ViHandle, VIA_SHARED_RECV_HANDLE Queue);
/**
 * Posts a receive. Its memory is checked now, against the queue's tag, and stays registered with
 * that tag while it is posted (VIPL 4.8).
 * @return as VipPostRecv; VIP_DESCRIPTOR_ERROR: it has a fault, its Status says which, and it is
 *         not posted; VIP_ERROR_RESOURCE also: MaxDescriptors are posted
 */
VIP_RETURN ViaPostSharedRecv(VIA_SHARED_RECV_HANDLE Queue, VIP_DESCRIPTOR* Descriptor,
                             VIP_MEM_HANDLE MemoryHandle);
/** @return VIP_SUCCESS; VIP_INVALID_PARAMETER */
VIP_RETURN ViaQuerySharedRecv(VIA_SHARED_RECV_HANDLE Queue, VIA_SHARED_RECV_STATE* State);
/**
 * Arms the limit event: it happens when fewer than Limit receives are posted, at once if that is so
 * already, and once; then arm it again. Forgets an event that nobody waited for.
 * @param Limit  0: no event
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaArmSharedRecv(VIA_SHARED_RECV_HANDLE Queue, VIP_UINT32 Limit);
/**
 * Waits for that event. Of several threads one hears of it.
 * @param Timeout  milliseconds; 0: does not wait; VIP_INFINITE: for ever
 * @return VIP_SUCCESS: it happened; VIP_TIMEOUT; VIP_INVALID_STATE: the queue was destroyed, or the
 *         NIC closed, meanwhile; VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaSharedRecvWait(VIA_SHARED_RECV_HANDLE Queue, VIP_ULONG Timeout);

/* ---- Inline sends -------------------------------------------------------------------------- */

/** Bytes that the descriptor of an inline send takes, with Length bytes behind it. */
#define VIA_INLINE_ROOM(Length) (sizeof(VIP_DESCRIPTOR) + (Length))

/**
 * Copies what a send, or an RDMA write, is to carry behind its descriptor, and lets the descriptor
 * name the copy. Data may lie anywhere, need not be registered, and may be changed when this
 * returns; the copy is the NIC's with the descriptor, from the post until it is done. Then post it
 * as any other: VipPostSend, ViaPostSendMany. For short messages; send longer ones from where they
 * are.
 * @param Descriptor    with room for VIA_INLINE_ROOM(Length) bytes from there on, all in one
 *                      region. In: CS.Control, and DS[0].Remote of an RDMA write. Out: SegCount,
 *                      Length, and the segment of the copy.
 * @param MemoryHandle  of that region
 * @param Data          may be NULL when Length is 0
 */
static inline void ViaCopyInline(VIP_DESCRIPTOR* Descriptor, VIP_MEM_HANDLE MemoryHandle,
                                 const void* Data, VIP_UINT32 Length) {
    const int Writes = (Descriptor->CS.Control & VIP_CONTROL_OP_MASK) == VIP_CONTROL_OP_RDMAWRITE;
    VIP_DATA_SEGMENT* const Segment = &Descriptor->DS[Writes].Local;
    void* const Copy = Descriptor + 1;
    if (Length != 0) memcpy(Copy, Data, Length);
    Segment->Data.Address = Copy;
    Segment->Handle = MemoryHandle;
    Segment->Length = Length;
    Descriptor->CS.SegCount = Writes ? 2 : 1;
    Descriptor->CS.Length = Length;
}

/* ---- Several at once ----------------------------------------------------------------------- */

/**
 * Posts several sends in order, in one go: cheaper than one by one, and the peer sees them
 * together.
 * @param Descriptors    Count descriptors
 * @param MemoryHandles  the region of each
 * @param Posted         out, always: how many were posted
 * @return VIP_SUCCESS: all of them; else why number *Posted was refused, as VipPostSend
 */
VIP_RETURN ViaPostSendMany(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors,
                           const VIP_MEM_HANDLE* MemoryHandles, VIP_UINT32 Count,
                           VIP_UINT32* Posted);
/** The same for receives. */
VIP_RETURN ViaPostRecvMany(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* const* Descriptors,
                           const VIP_MEM_HANDLE* MemoryHandles, VIP_UINT32 Count,
                           VIP_UINT32* Posted);

/**
 * Takes completed sends off, oldest first, up to Room.
 * @param Taken  out: how many
 * @return VIP_SUCCESS: at least one, all without error. VIP_DESCRIPTOR_ERROR: the last one of them
 *         has error bits; or *Taken is 0 and nothing is posted at all. VIP_NOT_DONE: none is done.
 */
VIP_RETURN ViaSendDoneMany(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptors, VIP_UINT32 Room,
                           VIP_UINT32* Taken);
/** The same for receives. */
VIP_RETURN ViaRecvDoneMany(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** Descriptors, VIP_UINT32 Room,
                           VIP_UINT32* Taken);

/** An entry of a completion queue. */
typedef struct _VIA_COMPLETION {
    VIP_VI_HANDLE ViHandle; /**< whose descriptor is done */
    VIP_BOOLEAN RecvQueue;  /**< VIP_TRUE: the receive queue, VIP_FALSE: the send queue */
} VIA_COMPLETION;

/**
 * Takes entries off a completion queue, up to Room.
 * @return VIP_SUCCESS: at least one; VIP_NOT_DONE: there is none
 */
VIP_RETURN ViaCQDoneMany(VIP_CQ_HANDLE CQHandle, VIA_COMPLETION* Entries, VIP_UINT32 Room,
                         VIP_UINT32* Taken);

/* ---- A descriptor to poll ------------------------------------------------------------------ */

/**
 * A file descriptor that is readable while the completion queue has entries, for poll, epoll and
 * io_uring. Take entries with VipCQDone or ViaCQDoneMany until VIP_NOT_DONE; with edge-triggered
 * epoll always, else readiness stays. Never read, write or close it: it is the library's and ends
 * with the queue. The same one each time.
 * @return VIP_SUCCESS; VIP_ERROR_RESOURCE: none to be had; VIP_ERROR_NOT_SUPPORTED: a simulated NIC
 */
VIP_RETURN ViaCQDescriptor(VIP_CQ_HANDLE CQHandle, int* Descriptor);

/* ---- Polling under a lock ------------------------------------------------------------------ */

/**
 * Where others want the processor, a poll that finds nothing may give it away (sched_yield). Who
 * polls under a lock of its own would do so with the lock held, and its other threads find it taken
 * whenever they run. So such a thread calls ViaPutOffRests() before it takes the lock, and
 * ViaTakeRests() when it has released it: the processor is given away there, if at all. Both are of
 * the calling thread, for all NICs, and may be nested.
 */
void ViaPutOffRests(void);
/** The other half of ViaPutOffRests(): takes the rest that was put off, if there was one. */
void ViaTakeRests(void);

/* ---- Memory -------------------------------------------------------------------------------- */

/**
 * One handle for all memory of the process, now and later, for local use: descriptors and their
 * data, never as the target of a peer's RDMA. It locks no pages. Memory that is not mapped when the
 * NIC touches it faults in the program. Ends with VipDeregisterMem(NicHandle, NULL, handle).
 * @return VIP_SUCCESS; VIP_ERROR_RESOURCE: too many regions
 */
VIP_RETURN ViaRegisterAll(VIP_NIC_HANDLE NicHandle, VIP_MEM_HANDLE* MemoryHandle);

/* ---- Memory windows ------------------------------------------------------------------------ */

/** What a memory window grants, and to whom. */
typedef struct _VIA_WINDOW_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag;  /**< peers reach it by our VIs of that tag, and by those without
                                      one; NULL: by these only. Need not be the region's. */
    VIP_BOOLEAN EnableRdmaWrite; /**< peers may write by RDMA */
    VIP_BOOLEAN EnableRdmaRead;  /**< peers may read by RDMA */
    VIP_BOOLEAN EnableAtomics;   /**< peers may change words by atomic operations */
} VIA_WINDOW_ATTRIBUTES;

/** What a memory window is. */
typedef struct _VIA_WINDOW_STATE {
    VIP_PVOID Address;                /**< where it begins */
    VIP_ULONG Length;                 /**< bytes */
    VIP_MEM_HANDLE MemoryHandle;      /**< the region it was bound in */
    VIP_BOOLEAN Live;                 /**< VIP_FALSE: that region is gone, and so are its rights */
    VIA_WINDOW_ATTRIBUTES Attributes; /**< as it was bound */
} VIA_WINDOW_STATE;

/**
 * Grants peers rights to part of a region, exact to the byte, for as long as it is bound: a peer
 * names the window's handle in its descriptors where it would name a region's, with addresses of
 * this process as ever. The rights are the window's alone, whatever the region has: register a
 * region without any, and give each peer a window of what it is to reach. The peer's VI must be
 * allowed the operation by ours, as always. Windows may overlap, any number at once, a million of a
 * NIC's in all.
 *
 * It makes no system call; but a thread that calls it while another one has come to own the NIC's
 * polling takes that away (membarrier), as every call does that is no post or poll. A window's
 * handle is for peers: no descriptor of this process may use it, and a peer that imports the
 * region's segment (ViaImportSegment) does so by the region's handle and rights; by a window RDMA
 * to a segment goes in frames. A handle comes again at the earliest after 134 million bindings; it
 * is no secret, so keep peers apart by tags.
 * @param Address       where the window begins
 * @param Length        bytes, not 0
 * @param MemoryHandle  a region, all of them its own; not that of ViaRegisterAll
 * @param Attributes    at least one right; to write and to change words only in memory that may be
 *                      written
 * @param Window        out: the handle, bit 31 set
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_PTAG; VIP_ERROR_RESOURCE: 1048576 are
 *         bound, or no memory
 */
VIP_RETURN ViaBindWindow(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_ULONG Length,
                         VIP_MEM_HANDLE MemoryHandle, const VIA_WINDOW_ATTRIBUTES* Attributes,
                         VIP_MEM_HANDLE* Window);
/**
 * Takes the window's rights back. When it returns no byte that a peer sends by its handle lands any
 * more, and none is read for one: not of messages that were under way either, which then end as
 * others that are refused (VIP_STATUS_RDMA_PROT_ERROR there, VIP_ERROR_RDMAW_PROT or
 * VIP_ERROR_RDMAR_PROT here, and the connection is broken). Answers that left before may still
 * arrive. Time and system calls as ViaBindWindow. Deregistering the region takes its windows'
 * rights back, too; each is still to be revoked, so that another one can have its place.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no window of this NIC, or no more
 */
VIP_RETURN ViaRevokeWindow(VIP_NIC_HANDLE NicHandle, VIP_MEM_HANDLE Window);
/**
 * @param State  out: what it is, for a peer's handle that a log names, or a test
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no window of this NIC, or no more
 */
VIP_RETURN ViaQueryWindow(VIP_NIC_HANDLE NicHandle, VIP_MEM_HANDLE Window, VIA_WINDOW_STATE* State);

/* ---- Atomic operations --------------------------------------------------------------------- */

/** What VIP_STATUS_OP_MASK finds in the Status of a completed ViaPostCompareSwap. */
#define VIA_STATUS_OP_COMPARE_SWAP 0x00050000
/** And of a completed ViaPostFetchAdd. */
#define VIA_STATUS_OP_FETCH_ADD 0x00060000

/** Atomic among the VIs of the target's NIC only. */
#define VIA_ATOMIC_SCOPE_NIC 1
/** And with all else that changes the word by atomic instructions of the target's processors: the
 *  threads of its program, other NICs, whoever has it mapped as a shared segment. */
#define VIA_ATOMIC_SCOPE_MEMORY 2

/** What a NIC can do of atomic operations. */
typedef struct _VIA_ATOMIC_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL Support; /**< VIP_SERVICE_ bits with atomic operations; 0: none */
    VIP_ULONG Scope;               /**< as a target; VIA_ATOMIC_SCOPE_ */
} VIA_ATOMIC_ATTRIBUTES;

/**
 * @param Attributes  out: the two reliable levels, and VIA_ATOMIC_SCOPE_MEMORY on every device of
 *                    this library: the target's NIC changes the word by an instruction of the
 *                    processor, also in segments. Others will say otherwise.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN ViaQueryAtomics(VIP_NIC_HANDLE NicHandle, VIA_ATOMIC_ATTRIBUTES* Attributes);

/**
 * Gives peers the right to atomic operations on a region, or takes it away; no region has it when
 * it is registered. Apart from the rights to RDMA, which VipSetMemAttributes changes and this does
 * not, nor that this. When it returns after taking the right away, no peer changes a word any more.
 * @param Address  as given to VipRegisterMem
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no such region, one whose pages may not all be
 *         written, or that of ViaRegisterAll
 */
VIP_RETURN ViaSetMemAtomics(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                            VIP_MEM_HANDLE MemoryHandle, VIP_BOOLEAN Enable);
/** @param Enabled  out: VIP_TRUE: peers have that right to the region */
VIP_RETURN ViaQueryMemAtomics(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                              VIP_MEM_HANDLE MemoryHandle, VIP_BOOLEAN* Enabled);

/**
 * Posts a compare-and-swap: if the peer's word of 64 bits is Expected it becomes Desired, in one
 * step. What it was before is written to the descriptor's data segment.
 *
 * The descriptor has SegCount 2 and Length 8: DS[0].Remote names the word, a multiple of 8 in the
 * peer's memory, DS[1].Local eight bytes of ours. Control is 0 or VIP_CONTROL_QFENCE. What is wrong
 * with these, or an unreliable VI, is an error of the descriptor as with VipPostSend (format,
 * length or protection). It completes in the order of posting, with VIA_STATUS_OP_COMPARE_SWAP,
 * when the answer is there; as with RDMA reads, later descriptors do not wait for it unless they
 * have a fence, and at most 8 of both are under way. It is carried out exactly once, behind all
 * that this VI sent before and before all that it sends later, without a call by the peer's
 * program.
 *
 * The peer's VI must allow RDMA read and RDMA write, the region the right of ViaSetMemAtomics; tags
 * agree as for RDMA. Else, or at an address that is no multiple of 8, nothing is changed and the
 * connection breaks as for a refused RDMA: VIP_STATUS_RDMA_PROT_ERROR here, VIP_ERROR_RDMAW_PROT
 * there. When a connection breaks otherwise, a flushed operation was carried out or was not.
 * @return as VipPostSend; VIP_ERROR_NOT_SUPPORTED: the VI's peer is a NIC of an older version,
 * which knows none; nothing is posted, and the connection stays
 */
VIP_RETURN ViaPostCompareSwap(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* Descriptor,
                              VIP_MEM_HANDLE MemoryHandle, VIP_UINT64 Expected, VIP_UINT64 Desired);
/**
 * Posts a fetch-and-add: Addend is added to the peer's word, modulo 2^64. All else as
 * ViaPostCompareSwap; the status says VIA_STATUS_OP_FETCH_ADD.
 */
VIP_RETURN ViaPostFetchAdd(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* Descriptor,
                           VIP_MEM_HANDLE MemoryHandle, VIP_UINT64 Addend);

/* ---- Shared segments ----------------------------------------------------------------------- */

/**
 * Makes memory that peers on the same host can attach to, and registers it. It begins at a page,
 * is zero, takes one file descriptor, and stays until ViaDestroySegment or VipCloseNic. It is
 * inherited by forked children. Tell peers *Address and *MemoryHandle, as for RDMA.
 *
 * Rights are those of RDMA, exact as ever: a peer may attach to it for reading if region and VI
 * allow RDMA read, for writing if they allow RDMA read and RDMA write, and if their tags agree
 * (VIPL 4.7). One that is made without RDMA write is sealed: nobody attaches to it for writing,
 * also when it gets that right later; RDMA write then works all the same. Deregistering, changing
 * attributes and disconnecting take the right away at once: the peer's NIC begins no further RDMA
 * there by itself. A copy that it has begun may still end, and plain loads and stores through a
 * mapping that the peer has cannot be taken back: they reach the memory of the segment, never other
 * memory of this process.
 * @param Length      bytes, not 0
 * @param Attributes  as VipRegisterMem; NULL: default tag, no RDMA
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_PTAG; VIP_ERROR_RESOURCE: no memory, no
 *         descriptor, too many regions
 */
VIP_RETURN ViaCreateSegment(VIP_NIC_HANDLE NicHandle, VIP_ULONG Length,
                            VIP_MEM_ATTRIBUTES* Attributes, VIP_PVOID* Address,
                            VIP_MEM_HANDLE* MemoryHandle);
/**
 * Ends a segment: its registration, if VipDeregisterMem has not ended that already, and this
 * process's mapping. Peers' mappings stay until they release them.
 * @return VIP_SUCCESS; VIP_ERROR_RESOURCE: a posted descriptor uses it (VIPL 4.8);
 *         VIP_INVALID_PARAMETER: no segment of this NIC begins at Address
 */
VIP_RETURN ViaDestroySegment(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address);

/**
 * Attaches to a segment of the VI's peer. Until the connection ends, or the peer takes the right
 * away, this VI's RDMA to the segment is one copy made by the calling thread or this NIC, in the
 * order of the VI's other messages, without the peer's processor. And the program may load from it,
 * and store to it if Writable: stores become visible as between threads, in no order with
 * descriptors, so end them with a release store or a fence.
 * @param RemoteAddress  where the peer has the segment
 * @param RemoteHandle   the peer's handle of it
 * @param Writable       VIP_FALSE: the mapping is read-only to the processor
 * @param Timeout        milliseconds to wait for the peer's NIC, VIP_INFINITE: for ever
 * @param Address        out: where this process has it
 * @param Length         out: bytes
 * @return VIP_SUCCESS; VIP_REJECT: the peer gives no such right, or it is no segment;
 *         VIP_ERROR_NOT_SUPPORTED: not over this network, or for writing to a segment that was
 *         made without RDMA write (RDMA works all the same);
 *         VIP_INVALID_STATE: not connected, or no more; VIP_TIMEOUT; VIP_ERROR_RESOURCE: another
 *         import of this VI is under way, or no descriptor, memory or grant is to be had
 */
VIP_RETURN ViaImportSegment(VIP_VI_HANDLE ViHandle, VIP_UINT64 RemoteAddress,
                            VIP_MEM_HANDLE RemoteHandle, VIP_BOOLEAN Writable, VIP_ULONG Timeout,
                            VIP_PVOID* Address, VIP_ULONG* Length);
/**
 * Unmaps an imported segment, also after its connection has ended; VipCloseNic unmaps all. RDMA to
 * it works as before the import.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: none of this NIC begins at Address
 */
VIP_RETURN ViaReleaseSegment(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address);

/* ---- Counters ------------------------------------------------------------------------------ */

/** @return the name of counter number Index, from 0; NULL behind the last one. Lives for ever. */
const char* ViaCounterName(VIP_UINT32 Index);
/** @return in a few words what that counter counts; NULL behind the last one. Lives for ever. */
const char* ViaCounterText(VIP_UINT32 Index);
/**
 * A counter of the NIC, since it was opened. Counters are read one by one and may be a moment old.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no such counter
 */
VIP_RETURN ViaReadCounter(VIP_NIC_HANDLE NicHandle, const char* Name, VIP_UINT64* Value);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* VIA_VIA_H */
