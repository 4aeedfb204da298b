/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file vipl.h
 * @brief VIPL 1.0, the C interface of the Virtual Interface Architecture.
 *
 * Compiles as C89 and later and as C++98 and later. Link with -lvipl; every function has C linkage.
 * Rules are cited by their number, for instance VIPL 4.6.
 *
 * What holds for every function and is not repeated at each:
 *  - Any thread may call any function at any time; no function may be called from a signal handler
 *    (VIPL 4.26). Functions named ...Wait and VipConnectRequest sleep until something happens or
 *    time is up; Post, ...Done and ...Notify never block.
 *  - A bad, stale or invented handle or a NULL out-pointer returns VIP_INVALID_PARAMETER and
 *    changes nothing (VIPL 1.11, 2). Out-parameters are written on VIP_SUCCESS only, unless said
 *    otherwise.
 *  - In a child made by fork() the parent's handles answer VIP_INVALID_STATE and disturb nobody; it
 *    may open NICs of its own.
 *  - A call that sleeps while its VI, completion queue or NIC goes returns VIP_INVALID_STATE.
 *  - Timeouts are milliseconds; 0xFFFFFFFF and ~0UL both mean for ever (VIPL 1.5).
 *  - Structures and addresses passed in stay the program's and are read before the call returns.
 *    Only registered memory and posted descriptors are used later.
 */
#ifndef VIPL_H
#define VIPL_H

#include <stdint.h>

/* Old programs use the marks in prototypes of their own, hence they stay defined (VIPL 1.5). */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Basic types (VIPL 1.1) ---------------------------------------------------------------- */

typedef void* VIP_PVOID;
typedef int VIP_BOOLEAN; /**< VIP_TRUE or VIP_FALSE */
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef short VIP_SHORT;
typedef long VIP_LONG;
typedef uint8_t VIP_UINT8;
typedef uint16_t VIP_UINT16;
typedef uint32_t VIP_UINT32;
typedef uint64_t VIP_UINT64;

typedef void* VIP_EVENT_HANDLE; /**< for programs that name the type: no function here takes one */

#define VIP_TRUE 1
#define VIP_FALSE 0

typedef VIP_PVOID VIP_QOS; /**< no quality of service is defined: always NULL */

/* Handles are numbers in pointer's clothing and are never dereferenced (VIPL 1.11). */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE; /**< never 0 when valid, bit 31 zero */

#define VIP_INFINITE 0xFFFFFFFFUL   /**< timeout: for ever; ~0UL means the same (VIPL 1.5) */
#define VIP_DESCRIPTOR_ALIGNMENT 64 /**< bytes; every posted descriptor starts at a multiple */

/* ---- Codes (VIPL 1.6) ---------------------------------------------------------------------- */

/** What every function returns. */
typedef enum _VIP_RETURN {
    VIP_SUCCESS,
    VIP_NOT_DONE,
    VIP_INVALID_PARAMETER,
    VIP_ERROR_RESOURCE,
    VIP_TIMEOUT,
    VIP_REJECT,
    VIP_INVALID_RELIABILITY_LEVEL,
    VIP_INVALID_MTU,
    VIP_INVALID_QOS,
    VIP_INVALID_PTAG,
    VIP_INVALID_RDMAREAD,
    VIP_DESCRIPTOR_ERROR,
    VIP_INVALID_STATE,
    VIP_ERROR_NAMESERVICE,
    VIP_NO_MATCH,
    VIP_NOT_REACHABLE,
    VIP_ERROR_NOT_SUPPORTED,

    VIP_ERROR = VIP_DESCRIPTOR_ERROR /**< as the headers of the time had it */
} VIP_RETURN;

/* Old programs ask with #ifndef whether this code exists. */
#define VIP_ERROR_NOT_SUPPORTED VIP_ERROR_NOT_SUPPORTED

/** State of a VI (VIPL 3). */
typedef enum _VIP_VI_STATE {
    VIP_STATE_IDLE,
    VIP_STATE_CONNECTED,
    VIP_STATE_CONNECT_PENDING,
    VIP_STATE_ERROR
} VIP_VI_STATE;

/** What an asynchronous error is about. */
typedef enum _VIP_RESOURCE_CODE {
    VIP_RESOURCE_NIC,
    VIP_RESOURCE_VI,
    VIP_RESOURCE_CQ,
    VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

/**
 * Asynchronous errors (VIPL 4.4). The NICs of this library raise VIP_ERROR_CONN_LOST,
 * VIP_ERROR_RECVQ_EMPTY, VIP_ERROR_VI_OVERRUN, VIP_ERROR_RDMAW_PROT and VIP_ERROR_RDMAR_PROT only;
 * the others are for programs that know them.
 */
typedef enum _VIP_ERROR_CODE {
    VIP_ERROR_POST_DESC,      /**< a posted descriptor could not be read: told by the call itself */
    VIP_ERROR_CONN_LOST,      /**< the peer disconnected, exited, died or became unreachable */
    VIP_ERROR_RECVQ_EMPTY,    /**< a message came and no receive was posted (VIPL 4.25) */
    VIP_ERROR_VI_OVERRUN,     /**< a completion queue was full (VIPL 4.16) */
    VIP_ERROR_RDMAW_PROT,     /**< an incoming RDMA write was refused (VIPL 4.25) */
    VIP_ERROR_RDMAW_DATA,     /**< an incoming RDMA write carried corrupt data */
    VIP_ERROR_RDMAW_ABORT,    /**< an incoming RDMA write ended half-way */
    VIP_ERROR_RDMAR_PROT,     /**< an incoming RDMA read was refused */
    VIP_ERROR_COMP_PROT,      /**< a completion could not be written back */
    VIP_ERROR_RDMA_TRANSPORT, /**< the network failed during RDMA */
    VIP_ERROR_CATASTROPHIC    /**< the NIC cannot go on */
} VIP_ERROR_CODE;

/* ---- Bits (VIPL 1.7) ----------------------------------------------------------------------- */

/** One reliability level, or a set of them in VIP_NIC_ATTRIBUTES (VIPL 4.25). */
typedef VIP_USHORT VIP_RELIABILITY_LEVEL;

#define VIP_SERVICE_UNRELIABLE 1
#define VIP_SERVICE_RELIABLE_DELIVERY 2
#define VIP_SERVICE_RELIABLE_RECEPTION 4
#define VIP_BASE_SERVICES \
    (VIP_SERVICE_UNRELIABLE + VIP_SERVICE_RELIABLE_DELIVERY + VIP_SERVICE_RELIABLE_RECEPTION)

/* Control field of a descriptor. */
#define VIP_CONTROL_OP_SENDRECV 0x0000
#define VIP_CONTROL_OP_RDMAWRITE 0x0001
#define VIP_CONTROL_OP_RDMAREAD 0x0002
#define VIP_CONTROL_OP_RESERVED 0x0003
#define VIP_CONTROL_OP_MASK 0x0003
#define VIP_CONTROL_IMMEDIATE 0x0004 /**< ImmediateData travels with the message */
#define VIP_CONTROL_QFENCE 0x0008    /**< start after earlier RDMA reads completed (VIPL 4.23) */
#define VIP_CONTROL_RESERVED 0xFFF0  /**< must be zero */

/* Status field of a descriptor. */
#define VIP_STATUS_DONE 0x00000001
#define VIP_STATUS_FORMAT_ERROR 0x00000002
#define VIP_STATUS_PROTECTION_ERROR 0x00000004
#define VIP_STATUS_LENGTH_ERROR 0x00000008
#define VIP_STATUS_PARTIAL_ERROR 0x00000010
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x00000020
#define VIP_STATUS_TRANSPORT_ERROR 0x00000040
#define VIP_STATUS_RDMA_PROT_ERROR 0x00000080
#define VIP_STATUS_REMOTE_DESC_ERROR 0x00000100
#define VIP_STATUS_ERROR_MASK 0x000001FE
#define VIP_STATUS_OP_SEND 0x00000000
#define VIP_STATUS_OP_RECEIVE 0x00010000
#define VIP_STATUS_OP_RDMA_WRITE 0x00020000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x00030000
#define VIP_STATUS_OP_RDMA_READ 0x00040000
#define VIP_STATUS_OP_MASK 0x00070000
#define VIP_STATUS_IMMEDIATE 0x00080000 /**< ImmediateData arrived with the message */
#define VIP_STATUS_RESERVED 0xFFF0FE00

/* ---- Descriptors (VIPL 1.2, 1.3, 4.9) ------------------------------------------------------ */

struct _VIP_DESCRIPTOR;

/** An address of 64 bits on every machine. */
typedef union _VIP_PVOID64 {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
    struct _VIP_DESCRIPTOR* Descriptor;
} VIP_PVOID64;

/**
 * First half of a descriptor. The NIC writes Next, NextHandle and Status from post to done, Length
 * and ImmediateData on completion, Status last (VIPL 4.9, 4.11). The last three are volatile
 * because a program may spin on VIP_STATUS_DONE and then read the other two.
 */
typedef struct _VIP_CONTROL_SEGMENT {
    VIP_PVOID64 Next;                  /**< the NIC's link; stale on entry is fine */
    VIP_MEM_HANDLE NextHandle;         /**< the NIC's */
    VIP_UINT16 SegCount;               /**< segments that follow, an address segment included */
    VIP_UINT16 Control;                /**< VIP_CONTROL_ bits */
    VIP_UINT32 Reserved;               /**< must be zero */
    volatile VIP_UINT32 ImmediateData; /**< sent with, or arrived with the message */
    volatile VIP_UINT32 Length;        /**< bytes: sum of the segments; of a receive what arrived */
    volatile VIP_UINT32 Status;        /**< VIP_STATUS_ bits; cleared by the post */
} VIP_CONTROL_SEGMENT;

/** Where an RDMA goes to or comes from in the peer's memory. */
typedef struct _VIP_ADDRESS_SEGMENT {
    VIP_PVOID64 Data;      /**< address in the peer's program */
    VIP_MEM_HANDLE Handle; /**< the peer's memory handle */
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

/** A piece of this program's registered memory. */
typedef struct _VIP_DATA_SEGMENT {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length; /**< bytes */
} VIP_DATA_SEGMENT;

typedef union _VIP_DESCRIPTOR_SEGMENT {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

/**
 * A descriptor: control segment and segments, more of which may follow the two declared without a
 * gap. Must be aligned to VIP_DESCRIPTOR_ALIGNMENT and lie inside registered memory, all segments
 * included. Two spellings name the same bytes: CS with DS[i].Local and DS[i].Remote, or Control
 * with Data[i].
 */
__extension__ typedef struct _VIP_DESCRIPTOR {
    /* Each array ends a structure, so that compilers allow indices beyond the declared length. */
    __extension__ union {
        __extension__ struct {
            VIP_CONTROL_SEGMENT CS;
            VIP_DESCRIPTOR_SEGMENT DS[2];
        };
        __extension__ struct {
            VIP_CONTROL_SEGMENT Control;
            VIP_DATA_SEGMENT Data[2];
        };
    };
} VIP_DESCRIPTOR;

/* ---- Structures (VIPL 1.4, 1.8) ------------------------------------------------------------ */

/** Host address of HostAddressLen bytes, the discriminator right behind it (VIPL 1.4). */
typedef struct _VIP_NET_ADDRESS {
    VIP_UINT16 HostAddressLen;   /**< bytes */
    VIP_UINT16 DiscriminatorLen; /**< bytes */
    VIP_UINT8 HostAddress[1];    /**< as many bytes as the two lengths say */
} VIP_NET_ADDRESS;

/** What a NIC is and can do; counts and sizes never exceed 2^31-1 (VIPL 1.9). */
typedef struct _VIP_NIC_ATTRIBUTES {
    VIP_CHAR Name[64]; /**< ends with NUL */
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;         /**< bytes of a host address on this NIC */
    const VIP_UINT8* LocalNicAddress; /**< the library's, valid until VipCloseNic */
    VIP_BOOLEAN ThreadSafe;
    VIP_UINT16 MaxDiscriminatorLen; /**< bytes */
    VIP_ULONG MaxRegisterBytes;
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes;
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue;
    VIP_ULONG MaxSegmentsPerDesc;
    VIP_ULONG MaxCQ;
    VIP_ULONG MaxCQEntries;
    VIP_ULONG MaxTransferSize; /**< bytes */
    VIP_ULONG NativeMTU;       /**< bytes */
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport; /**< VIP_SERVICE_ bits */
    VIP_RELIABILITY_LEVEL RDMAReadSupport;         /**< VIP_SERVICE_ bits with RDMA read */
} VIP_NIC_ATTRIBUTES;

typedef struct _VIP_VI_ATTRIBUTES {
    VIP_RELIABILITY_LEVEL ReliabilityLevel; /**< exactly one VIP_SERVICE_ bit */
    VIP_ULONG MaxTransferSize;              /**< bytes of one message; both ends must agree */
    VIP_QOS QoS;                            /**< NULL */
    VIP_PROTECTION_HANDLE Ptag;             /**< NULL: memory of any tag of the NIC (VIPL 4.7) */
    VIP_BOOLEAN EnableRdmaWrite;            /**< the peer may write by RDMA */
    VIP_BOOLEAN EnableRdmaRead;             /**< the peer may read by RDMA */
} VIP_VI_ATTRIBUTES;

typedef struct _VIP_MEM_ATTRIBUTES {
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite; /**< peers may write by RDMA */
    VIP_BOOLEAN EnableRdmaRead;  /**< peers may read by RDMA */
} VIP_MEM_ATTRIBUTES;

/** An asynchronous error; fields that do not apply are NULL or 0. */
typedef struct _VIP_ERROR_DESCRIPTOR {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR* DescriptorPtr; /**< always NULL: descriptors' faults are in their Status */
    VIP_ULONG OpCode;              /**< always 0 */
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

#define VIP_SMI_AUTODISCOVERY 1UL /**< information type of VipQuerySystemManagementInfo */

/**
 * Answer to VIP_SMI_AUTODISCOVERY: addresses of NICs that are there now, the own one among them,
 * each with a discriminator of length 0. Each buffer has room for such an address, 4 bytes and
 * NicAddressLen. When all buffers were filled there may be more NICs than those.
 */
typedef struct _VIP_AUTODISCOVERY_LIST {
    VIP_ULONG NumberOfHops;        /**< in: how far to look; the own machine is always in reach */
    VIP_NET_ADDRESS** ADAddrArray; /**< in: the program's buffers, each filled with an address */
    VIP_ULONG NumAdAddrs;          /**< in: buffers in ADAddrArray; out: those filled */
} VIP_AUTODISCOVERY_LIST;

/* Handlers run on a thread of the library with no lock held: they may lock, call any function of
 * this file, or exit() (VIPL 4.4, 4.17). An error descriptor is the library's and valid until its
 * handler returns; a VIP_DESCRIPTOR is the program's again. */

typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR* ErrorDesc);

typedef void (*VIP_VI_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_DESCRIPTOR* DescriptorPtr);

typedef void (*VIP_CQ_CALLBACK)(VIP_PVOID Context, VIP_NIC_HANDLE NicHandle, VIP_VI_HANDLE ViHandle,
                                VIP_BOOLEAN RecvQueue);

/* The library itself is compiled with everything hidden but what is declared here (VIPL 1.10). */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- NIC ----------------------------------------------------------------------------------- */

/**
 * Opens a NIC by name. A name may be opened again; each is its own handle (VIPL 4.1).
 * @param DeviceName  for instance "shm", "udp:eth0", or an old name that nics.conf maps to such
 * @param NicHandle   out: the program's until VipCloseNic or its exit
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: no such NIC; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipOpenNic(IN const VIP_CHAR* DeviceName, OUT VIP_NIC_HANDLE* NicHandle);

/**
 * Closes a NIC handle and releases everything made with it; peers see VIP_ERROR_CONN_LOST (VIPL
 * 4.2). Waits for a handler that is running, unless called from it; nothing touches the program's
 * memory afterwards.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipCloseNic(IN VIP_NIC_HANDLE NicHandle);

/**
 * Tells what the NIC is and can do (VIPL 1.9).
 * @param NicAttribs  out: all fields; LocalNicAddress points into the library, until VipCloseNic
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipQueryNic(IN VIP_NIC_HANDLE NicHandle, OUT VIP_NIC_ATTRIBUTES* NicAttribs);

/**
 * Asks for management information (VIPL 1.8).
 * @param InfoType    VIP_SMI_AUTODISCOVERY
 * @param SysManInfo  in and out: a VIP_AUTODISCOVERY_LIST of the program
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: unknown type, or a buffer that would be filled is
 *         NULL; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipQuerySystemManagementInfo(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG InfoType,
                                        OUT VIP_PVOID SysManInfo);

/**
 * Sets the handler of asynchronous errors of this NIC handle, in place of the former (VIPL 4.4).
 * Waits for a handler that is running, unless called from one.
 * @param Context  handed to the handler as it is
 * @param Handler  NULL restores the default, which logs
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipErrorCallback(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Context,
                            IN VIP_ERROR_HANDLER Handler);

/* ---- Memory -------------------------------------------------------------------------------- */

/**
 * Makes a protection tag (VIPL 4.7).
 * @param Ptag  out: the program's until VipDestroyPtag
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: MaxPtags reached
 */
VIP_RETURN VipCreatePtag(IN VIP_NIC_HANDLE NicHandle, OUT VIP_PROTECTION_HANDLE* Ptag);

/**
 * Destroys a protection tag (VIPL 4.8).
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: a VI or region still has it
 */
VIP_RETURN VipDestroyPtag(IN VIP_NIC_HANDLE NicHandle, IN VIP_PROTECTION_HANDLE Ptag);

/**
 * Registers memory for descriptors, data and RDMA: any address and length, exact to the byte.
 * Regions may overlap; each registration is a handle of its own (VIPL 4.6). The pages are locked as
 * the NIC's option `pin` says: where the system lets us, unless told otherwise.
 * @param VirtualAddress  first byte; the memory stays the program's and must stay mapped
 * @param Length          bytes
 * @param MemAttribs      NULL: default tag, no RDMA
 * @param MemoryHandle    out: valid until VipDeregisterMem
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER, also where a page is not mapped, or may not be
 * written though EnableRdmaWrite asks for it; VIP_INVALID_PTAG; VIP_INVALID_RDMAREAD;
 *         VIP_ERROR_RESOURCE: too many regions, or pages that must be locked cannot be
 */
VIP_RETURN VipRegisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                          IN VIP_ULONG Length, IN VIP_MEM_ATTRIBUTES* MemAttribs,
                          OUT VIP_MEM_HANDLE* MemoryHandle);

/**
 * Ends a registration. When it returns VIP_SUCCESS nothing reads or writes the region any more,
 * RDMA of peers included (VIPL 4.8).
 * @param VirtualAddress  as given to VipRegisterMem
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: a posted descriptor uses the
 *         region
 */
VIP_RETURN VipDeregisterMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID VirtualAddress,
                            IN VIP_MEM_HANDLE MemoryHandle);

/**
 * Changes tag and RDMA rights of a region (VIPL 4.6, 4.7).
 * @param Address  as given to VipRegisterMem
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_PTAG; VIP_INVALID_RDMAREAD;
 *         VIP_ERROR_RESOURCE: a posted descriptor uses the region
 */
VIP_RETURN VipSetMemAttributes(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                               IN VIP_MEM_HANDLE MemHandle, IN VIP_MEM_ATTRIBUTES* MemAttribs);

/**
 * Tells tag and RDMA rights of a region (VIPL 4.6).
 * @param Address     as given to VipRegisterMem
 * @param MemAttribs  out
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipQueryMem(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID Address,
                       IN VIP_MEM_HANDLE MemHandle, OUT VIP_MEM_ATTRIBUTES* MemAttribs);

/* ---- VI ------------------------------------------------------------------------------------ */

/**
 * Makes a VI, which starts in VIP_STATE_IDLE (VIPL 3).
 * @param ViAttribs     read, not kept
 * @param SendCQHandle  where sends complete; NULL: none. May equal RecvCQHandle (VIPL 4.15)
 * @param RecvCQHandle  where receives complete; NULL: none
 * @param ViHandle      out: the program's until VipDestroyVi
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_RELIABILITY_LEVEL; VIP_INVALID_MTU;
 *         VIP_INVALID_QOS; VIP_INVALID_PTAG; VIP_INVALID_RDMAREAD; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipCreateVi(IN VIP_NIC_HANDLE NicHandle, IN VIP_VI_ATTRIBUTES* ViAttribs,
                       IN VIP_CQ_HANDLE SendCQHandle, IN VIP_CQ_HANDLE RecvCQHandle,
                       OUT VIP_VI_HANDLE* ViHandle);

/**
 * Destroys an idle VI with empty queues; its entries in completion queues vanish (VIPL 3). Its
 * notifications are cancelled; waits for a handler of them that is running, unless called from a
 * handler (VIPL 4.17).
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_STATE: not idle;
 *         VIP_ERROR_RESOURCE: descriptors are still posted or not yet taken
 */
VIP_RETURN VipDestroyVi(IN VIP_VI_HANDLE ViHandle);

/**
 * Replaces the attributes of an idle VI (VIPL 3).
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_STATE: not idle;
 *         VIP_INVALID_RELIABILITY_LEVEL; VIP_INVALID_MTU; VIP_INVALID_QOS; VIP_INVALID_PTAG;
 *         VIP_INVALID_RDMAREAD; VIP_ERROR_RESOURCE: a posted receive uses memory that the new Ptag
 *         does not allow (VIPL 4.7)
 */
VIP_RETURN VipSetViAttributes(IN VIP_VI_HANDLE ViHandle, IN VIP_VI_ATTRIBUTES* ViAttribs);

/**
 * Tells state, attributes, and whether the queues are empty (VIPL 3).
 * @param ViSendQEmpty  out: VIP_TRUE when no send is posted or waits to be taken
 * @param ViRecvQEmpty  out: the same of receives
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipQueryVi(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_STATE* State,
                      OUT VIP_VI_ATTRIBUTES* ViAttribs, OUT VIP_BOOLEAN* ViSendQEmpty,
                      OUT VIP_BOOLEAN* ViRecvQEmpty);

/* ---- Connecting client and server ---------------------------------------------------------- */

/**
 * Waits for a connection request to LocalAddr's discriminator; its host bytes do not matter.
 * Several threads may wait at once; a request goes to exactly one, in order of arrival (VIPL 4.19).
 * @param LocalAddr        the discriminator waited for
 * @param Timeout          milliseconds
 * @param RemoteAddr       out: the requester's host address and discriminator; the buffer must have
 *                         room for both (NicAddressLen and MaxDiscriminatorLen at most)
 * @param RemoteViAttribs  out: attributes of the requesting VI
 * @param ConnHandle       out: the program's until accepted or rejected
 * @return VIP_SUCCESS; VIP_TIMEOUT; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: another NIC of this
 *         host listens to the discriminator, or too many listen
 */
VIP_RETURN VipConnectWait(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* LocalAddr,
                          IN VIP_ULONG Timeout, OUT VIP_NET_ADDRESS* RemoteAddr,
                          OUT VIP_VI_ATTRIBUTES* RemoteViAttribs, OUT VIP_CONN_HANDLE* ConnHandle);

/**
 * Accepts a request; the VI becomes connected and ConnHandle is used up. On a refusal VI and handle
 * stay as they were and another VI may be tried; the peer is told nothing (VIPL 4.21). After
 * VIP_TIMEOUT the handle is for VipConnectReject; who does not reject it may lose it to a later
 * request, once as many wait as can.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_INVALID_STATE: VI not idle;
 *         VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS: the two VIs do not
 *         agree; VIP_TIMEOUT: the requester has given up
 */
VIP_RETURN VipConnectAccept(IN VIP_CONN_HANDLE ConnHandle, IN VIP_VI_HANDLE ViHandle);

/**
 * Rejects a request; the requester gets VIP_REJECT and ConnHandle is used up (VIPL 4.20).
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipConnectReject(IN VIP_CONN_HANDLE ConnHandle);

/**
 * Asks for a connection and sleeps until it is answered; the VI is pending meanwhile. After a
 * refusal the VI is idle, its receives stay posted, and it may ask again (VIPL 3, 4.20).
 * @param LocalAddr        shown to the peer; takes no part in the match
 * @param RemoteAddr       host address and discriminator asked for
 * @param Timeout          milliseconds, not 0
 * @param RemoteViAttribs  out: attributes of the accepting VI
 * @return VIP_SUCCESS; VIP_NO_MATCH: nobody waits there, for some 15 ms; VIP_TIMEOUT: no answer;
 *         VIP_NOT_REACHABLE: no such host; VIP_REJECT; VIP_INVALID_STATE: VI not idle, or
 *         disconnected meanwhile; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipConnectRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS* LocalAddr,
                             IN VIP_NET_ADDRESS* RemoteAddr, IN VIP_ULONG Timeout,
                             OUT VIP_VI_ATTRIBUTES* RemoteViAttribs);

/**
 * Ends a connection or an attempt, from any state; the VI is idle and both queues are flushed when
 * it returns, after which nothing touches the buffers. The peer sees VIP_ERROR_CONN_LOST (VIPL 3).
 * @return VIP_SUCCESS, also when not connected; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipDisconnect(IN VIP_VI_HANDLE ViHandle);

/* ---- Not of VIPL 1.0, but of its time ------------------------------------------------------- */

/**
 * A word of the program's own for a VI, NULL at first. Not the NIC's business.
 * @return what VipSetUserData() set; NULL also for a handle that names no VI
 */
VIP_PVOID VipGetUserData(IN VIP_VI_HANDLE ViHandle);
/** Sets it; nothing happens where the handle names no VI. */
void VipSetUserData(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Data);

/* ---- Connecting peers (VIPL 4.22) ---------------------------------------------------------- */

/**
 * Starts to connect with a peer that does the same with the addresses exchanged, in either order.
 * Returns at once, the VI pending; VipConnectPeerDone or VipConnectPeerWait bring the answer.
 * @param LocalAddr   what the peer must ask for
 * @param RemoteAddr  what the peer must call its local address
 * @param Timeout     milliseconds until the attempt fails
 * @return VIP_SUCCESS: under way; VIP_INVALID_STATE: VI not idle; VIP_INVALID_PARAMETER;
 *         VIP_ERROR_RESOURCE
 */
VIP_RETURN VipConnectPeerRequest(IN VIP_VI_HANDLE ViHandle, IN VIP_NET_ADDRESS* LocalAddr,
                                 IN VIP_NET_ADDRESS* RemoteAddr, IN VIP_ULONG Timeout);

/**
 * Asks, without waiting, how VipConnectPeerRequest went. After a failure the VI is idle.
 * @param RemoteViAttribs  out: attributes of the peer's VI
 * @return VIP_SUCCESS: connected; VIP_NOT_DONE; VIP_TIMEOUT; VIP_NOT_REACHABLE;
 *         VIP_INVALID_RELIABILITY_LEVEL, VIP_INVALID_MTU, VIP_INVALID_QOS: the two VIs do not
 *         agree; VIP_INVALID_STATE: no attempt is under way; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipConnectPeerDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES* RemoteViAttribs);

/**
 * As VipConnectPeerDone, but sleeps until there is an answer, at most the timeout of the request.
 * @param RemoteViAttribs  out: attributes of the peer's VI
 * @return as VipConnectPeerDone, but never VIP_NOT_DONE
 */
VIP_RETURN VipConnectPeerWait(IN VIP_VI_HANDLE ViHandle, OUT VIP_VI_ATTRIBUTES* RemoteViAttribs);

/* ---- Sending and receiving ----------------------------------------------------------------- */

/**
 * Posts a send, RDMA write or RDMA read. Faults of a readable descriptor show in its Status; a VI
 * that is not connected flushes it at once (VIPL 3, 4.9, 4.10, 4.12). Never blocks.
 * @param DescriptorPtr  the NIC's from here until VIP_STATUS_DONE, with the buffers it names
 * @param MemoryHandle   region that holds the descriptor
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER: not aligned or not in the region, always told here
 *         and never by VIP_ERROR_POST_DESC; VIP_ERROR_RESOURCE: MaxDescriptorsPerQueue reached
 */
VIP_RETURN VipPostSend(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR* DescriptorPtr,
                       IN VIP_MEM_HANDLE MemoryHandle);

/**
 * Takes the oldest send off the queue if it is done; never blocks. Allowed also on a queue bound to
 * a completion queue (VIPL 4.13, 4.14).
 * @param DescriptorPtr  out: the descriptor, again the program's; NULL when none was taken off
 * @return VIP_SUCCESS; VIP_NOT_DONE; VIP_DESCRIPTOR_ERROR: done with an error in Status, and taken
 *         off, or the queue is empty; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipSendDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR** DescriptorPtr);

/**
 * As VipSendDone, but sleeps until the oldest send is done (VIPL 4.14).
 * @param Timeout        milliseconds
 * @param DescriptorPtr  out: as VipSendDone
 * @return VIP_SUCCESS; VIP_TIMEOUT; VIP_DESCRIPTOR_ERROR: as VipSendDone; VIP_ERROR_RESOURCE: the
 *         queue is bound to a completion queue; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipSendWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout,
                       OUT VIP_DESCRIPTOR** DescriptorPtr);

/**
 * Has Handler called once, with the oldest send, taken off the queue, as soon as it is done, which
 * may be at once. Several may be queued and run in order; destroying the VI cancels them (VIPL
 * 4.17).
 * @param Context  handed to the handler as it is
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: the queue is bound to a
 *         completion queue, or too many are queued
 */
VIP_RETURN VipSendNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN VIP_VI_CALLBACK Handler);

/**
 * Posts a receive; allowed in every state (VIPL 3, 4.9, 4.10, 4.12). Never blocks.
 * @param DescriptorPtr  the NIC's from here until VIP_STATUS_DONE, with the buffers it names
 * @param MemoryHandle   region that holds the descriptor
 * @return as VipPostSend
 */
VIP_RETURN VipPostRecv(IN VIP_VI_HANDLE ViHandle, IN VIP_DESCRIPTOR* DescriptorPtr,
                       IN VIP_MEM_HANDLE MemoryHandle);

/**
 * Takes the oldest receive off the queue if it is done; never blocks. Allowed also on a queue bound
 * to a completion queue (VIPL 4.11, 4.13, 4.14).
 * @param DescriptorPtr  out: the descriptor, again the program's; NULL when none was taken off
 * @return as VipSendDone
 */
VIP_RETURN VipRecvDone(IN VIP_VI_HANDLE ViHandle, OUT VIP_DESCRIPTOR** DescriptorPtr);

/**
 * As VipRecvDone, but sleeps until the oldest receive is done (VIPL 4.14).
 * @param Timeout        milliseconds
 * @param DescriptorPtr  out: as VipRecvDone
 * @return as VipSendWait
 */
VIP_RETURN VipRecvWait(IN VIP_VI_HANDLE ViHandle, IN VIP_ULONG Timeout,
                       OUT VIP_DESCRIPTOR** DescriptorPtr);

/**
 * Has Handler called once, with the oldest receive, taken off the queue, as soon as it is done; as
 * VipSendNotify (VIPL 4.17).
 * @param Context  handed to the handler as it is
 * @return as VipSendNotify
 */
VIP_RETURN VipRecvNotify(IN VIP_VI_HANDLE ViHandle, IN VIP_PVOID Context,
                         IN VIP_VI_CALLBACK Handler);

/* ---- Completion queues --------------------------------------------------------------------- */

/**
 * Makes a completion queue, to be named in VipCreateVi (VIPL 4.15, 4.16).
 * @param EntryCount  entries, 1 to MaxCQEntries
 * @param CQHandle    out: the program's until VipDestroyCQ
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipCreateCQ(IN VIP_NIC_HANDLE NicHandle, IN VIP_ULONG EntryCount,
                       OUT VIP_CQ_HANDLE* CQHandle);

/**
 * Destroys a completion queue (VIPL 4.16). Its notifications are cancelled; waits for a handler of
 * them that is running, unless called from a handler (VIPL 4.17).
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: still bound to a VI
 */
VIP_RETURN VipDestroyCQ(IN VIP_CQ_HANDLE CQHandle);

/**
 * Changes the size of a completion queue without loss, also under traffic and with a waiter
 * (VIPL 4.16).
 * @param EntryCount  entries, 1 to MaxCQEntries
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE
 */
VIP_RETURN VipResizeCQ(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG EntryCount);

/**
 * Takes one entry off the queue; never blocks. One VipSendDone or VipRecvDone on that queue then
 * succeeds (VIPL 4.15).
 * @param ViHandle   out: whose descriptor is done
 * @param RecvQueue  out: VIP_TRUE a receive, VIP_FALSE a send
 * @return VIP_SUCCESS; VIP_NOT_DONE: the queue is empty; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipCQDone(IN VIP_CQ_HANDLE CQHandle, OUT VIP_VI_HANDLE* ViHandle,
                     OUT VIP_BOOLEAN* RecvQueue);

/**
 * As VipCQDone, but sleeps until there is an entry (VIPL 4.15, 4.18).
 * @param Timeout    milliseconds
 * @param ViHandle   out: as VipCQDone
 * @param RecvQueue  out: as VipCQDone
 * @return VIP_SUCCESS; VIP_TIMEOUT; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipCQWait(IN VIP_CQ_HANDLE CQHandle, IN VIP_ULONG Timeout, OUT VIP_VI_HANDLE* ViHandle,
                     OUT VIP_BOOLEAN* RecvQueue);

/**
 * Has Handler called once, with one entry, taken off the queue, as soon as there is one; the
 * descriptor itself is still to be taken. Several may be queued and run in order; destroying the
 * queue cancels them (VIPL 4.17).
 * @param Context  handed to the handler as it is
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_RESOURCE: too many are queued
 */
VIP_RETURN VipCQNotify(IN VIP_CQ_HANDLE CQHandle, IN VIP_PVOID Context, IN VIP_CQ_CALLBACK Handler);

/* ---- Name service (VIPL 4.5) --------------------------------------------------------------- */

/**
 * Starts the name service of a NIC handle; may be repeated.
 * @param NSInitInfo  not used, may be NULL
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER; VIP_ERROR_NAMESERVICE
 */
VIP_RETURN VipNSInit(IN VIP_NIC_HANDLE NicHandle, IN VIP_PVOID NSInitInfo);

/**
 * Finds a host's address by name: the hosts file of OpenVIA first, then the system's resolver.
 * @param Name       ends with NUL
 * @param Address    out: HostAddressLen and that many host bytes, nothing beyond. DiscriminatorLen
 *                   stays as it is: the program sets it, and the bytes behind the host's
 * @param NameIndex  from 0, walks the addresses of a host that has several
 * @return VIP_SUCCESS; VIP_ERROR_NAMESERVICE: no such name or index; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipNSGetHostByName(IN VIP_NIC_HANDLE NicHandle, IN VIP_CHAR* Name,
                              OUT VIP_NET_ADDRESS* Address, IN VIP_ULONG NameIndex);

/**
 * Finds a host's name by address.
 * @param Address  its discriminator does not matter
 * @param Name     out: the name and a NUL
 * @param NameLen  in: bytes Name has room for; out: bytes of the name, NUL included
 * @return VIP_SUCCESS; VIP_ERROR_NAMESERVICE: no name known; VIP_ERROR_RESOURCE: Name is too short,
 *         *NameLen tells the bytes needed; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipNSGetHostByAddr(IN VIP_NIC_HANDLE NicHandle, IN VIP_NET_ADDRESS* Address,
                              OUT VIP_CHAR* Name, IN OUT VIP_ULONG* NameLen);

/**
 * Ends the name service of a NIC handle; connecting does not need it.
 * @return VIP_SUCCESS; VIP_INVALID_PARAMETER
 */
VIP_RETURN VipNSShutdown(IN VIP_NIC_HANDLE NicHandle);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
