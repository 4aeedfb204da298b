/* SPDX-License-Identifier: Apache-2.0 */
/* Compile-time checks of vipl.h that mean the same in every C and C++ mode. Nothing here defines an
 * object: declarations that disagree are errors in C and in C++. */
#ifndef VIPL_CHECKS_H
#define VIPL_CHECKS_H

#include <stddef.h>

/* Some old programs choose a spelling by defining this name; it must not matter (VIPL 1.3). */
#define VIPL095
/* Others bring an IN or OUT of their own, to be left alone (VIPL 1.5); vipl_pointers.c has OUT. */
#define VIPL_NOTHING
#define IN VIPL_NOTHING
#include "vipl.h"
#include "vipl.h" /* twice, as through the headers of a larger program */

#define VIPL_JOIN2(a, b) a##b
#define VIPL_JOIN(a, b) VIPL_JOIN2(a, b)

/* A negative array size is the one static assertion all modes know. */
#define VIPL_CHECK(condition) extern char VIPL_JOIN(vipl_check_, __LINE__)[(condition) ? 1 : -1]

/* The two declarations agree only if the types are the same. */
#define VIPL_SAME(name, type_a, type_b) \
    extern type_a* vipl_same_##name;    \
    extern type_b* vipl_same_##name

/* Place and type of a member; its size follows from the type. */
#define VIPL_MEMBER(structure, member, offset, type)                                           \
    extern char                                                                                \
        vipl_place_##structure##_##member[(offsetof(structure, member) == (offset)) ? 1 : -1]; \
    VIPL_SAME(structure##_##member, __typeof__(((structure*)0)->member), type)

#define VIPL_SIZE(type, size) extern char vipl_size_##type[(sizeof(type) == (size)) ? 1 : -1]

#define VIPL_VALUE(name, value) VIPL_CHECK((name) == (value))

/* VIPL 1.1 */
VIPL_SAME(pvoid, VIP_PVOID, void*);
VIPL_SAME(boolean, VIP_BOOLEAN, int);
VIPL_SAME(chr, VIP_CHAR, char);
VIPL_SAME(uchar, VIP_UCHAR, unsigned char);
VIPL_SAME(ushort, VIP_USHORT, unsigned short);
VIPL_SAME(ulong, VIP_ULONG, unsigned long);
VIPL_SAME(uint8, VIP_UINT8, uint8_t);
VIPL_SAME(uint16, VIP_UINT16, uint16_t);
VIPL_SAME(uint32, VIP_UINT32, uint32_t);
VIPL_SAME(uint64, VIP_UINT64, uint64_t);
VIPL_SAME(shrt, VIP_SHORT, short);
VIPL_SAME(lng, VIP_LONG, long);
VIPL_SAME(event_handle, VIP_EVENT_HANDLE, void*);
VIPL_SAME(qos, VIP_QOS, void*);
VIPL_SAME(nic_handle, VIP_NIC_HANDLE, void*);
VIPL_SAME(vi_handle, VIP_VI_HANDLE, void*);
VIPL_SAME(cq_handle, VIP_CQ_HANDLE, void*);
VIPL_SAME(protection_handle, VIP_PROTECTION_HANDLE, void*);
VIPL_SAME(conn_handle, VIP_CONN_HANDLE, void*);
VIPL_SAME(mem_handle, VIP_MEM_HANDLE, uint32_t);
VIPL_VALUE(VIP_ERROR, VIP_DESCRIPTOR_ERROR);
VIPL_VALUE(VIP_BASE_SERVICES, 7);
VIPL_VALUE(VIP_TRUE, 1);
VIPL_VALUE(VIP_FALSE, 0);

/* VIPL 1.2, 1.3: the descriptor */
VIPL_SIZE(VIP_PVOID64, 8);
VIPL_MEMBER(VIP_PVOID64, AddressBits, 0, VIP_UINT64);
VIPL_MEMBER(VIP_PVOID64, Address, 0, void*);
VIPL_MEMBER(VIP_PVOID64, Descriptor, 0, VIP_DESCRIPTOR*);

VIPL_SIZE(VIP_CONTROL_SEGMENT, 32);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, Next, 0, VIP_PVOID64);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, NextHandle, 8, VIP_MEM_HANDLE);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, SegCount, 12, VIP_UINT16);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, Control, 14, VIP_UINT16);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, Reserved, 16, VIP_UINT32);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, ImmediateData, 20, volatile VIP_UINT32);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, Length, 24, volatile VIP_UINT32);
VIPL_MEMBER(VIP_CONTROL_SEGMENT, Status, 28, volatile VIP_UINT32);

VIPL_SIZE(VIP_DATA_SEGMENT, 16);
VIPL_MEMBER(VIP_DATA_SEGMENT, Data, 0, VIP_PVOID64);
VIPL_MEMBER(VIP_DATA_SEGMENT, Handle, 8, VIP_MEM_HANDLE);
VIPL_MEMBER(VIP_DATA_SEGMENT, Length, 12, VIP_UINT32);

VIPL_SIZE(VIP_ADDRESS_SEGMENT, 16);
VIPL_MEMBER(VIP_ADDRESS_SEGMENT, Data, 0, VIP_PVOID64);
VIPL_MEMBER(VIP_ADDRESS_SEGMENT, Handle, 8, VIP_MEM_HANDLE);
VIPL_MEMBER(VIP_ADDRESS_SEGMENT, Reserved, 12, VIP_UINT32);

VIPL_SIZE(VIP_DESCRIPTOR_SEGMENT, 16);
VIPL_MEMBER(VIP_DESCRIPTOR_SEGMENT, Remote, 0, VIP_ADDRESS_SEGMENT);
VIPL_MEMBER(VIP_DESCRIPTOR_SEGMENT, Local, 0, VIP_DATA_SEGMENT);

VIPL_SIZE(VIP_DESCRIPTOR, 64);
VIPL_MEMBER(VIP_DESCRIPTOR, CS, 0, VIP_CONTROL_SEGMENT);
VIPL_MEMBER(VIP_DESCRIPTOR, Control, 0, VIP_CONTROL_SEGMENT);
typedef VIP_DESCRIPTOR_SEGMENT vipl_two_segments[2];
typedef VIP_DATA_SEGMENT vipl_two_data_segments[2];
VIPL_MEMBER(VIP_DESCRIPTOR, DS, 32, vipl_two_segments);
VIPL_MEMBER(VIP_DESCRIPTOR, Data, 32, vipl_two_data_segments);
#if defined(CS) || defined(DS)
#error "VIPL 1.3: CS and DS are members, never macros"
#endif

/* VIPL 1.4 */
VIPL_MEMBER(VIP_NET_ADDRESS, HostAddressLen, 0, VIP_UINT16);
VIPL_MEMBER(VIP_NET_ADDRESS, DiscriminatorLen, 2, VIP_UINT16);
typedef VIP_UINT8 vipl_one_byte[1];
VIPL_MEMBER(VIP_NET_ADDRESS, HostAddress, 4, vipl_one_byte);

/* VIPL 1.5 */
#if VIP_DESCRIPTOR_ALIGNMENT != 64 || VIP_INFINITE != 0xFFFFFFFF
#error "VIPL 1.5: alignment or infinity"
#endif
#if !defined(IN) || !defined(OUT)
#error "VIPL 1.5: IN and OUT"
#endif

/* VIPL 1.6: every code; that there are no others is for the switches in vipl_program.h to say */
VIPL_VALUE(VIP_SUCCESS, 0);
VIPL_VALUE(VIP_NOT_DONE, 1);
VIPL_VALUE(VIP_INVALID_PARAMETER, 2);
VIPL_VALUE(VIP_ERROR_RESOURCE, 3);
VIPL_VALUE(VIP_TIMEOUT, 4);
VIPL_VALUE(VIP_REJECT, 5);
VIPL_VALUE(VIP_INVALID_RELIABILITY_LEVEL, 6);
VIPL_VALUE(VIP_INVALID_MTU, 7);
VIPL_VALUE(VIP_INVALID_QOS, 8);
VIPL_VALUE(VIP_INVALID_PTAG, 9);
VIPL_VALUE(VIP_INVALID_RDMAREAD, 10);
VIPL_VALUE(VIP_DESCRIPTOR_ERROR, 11);
VIPL_VALUE(VIP_INVALID_STATE, 12);
VIPL_VALUE(VIP_ERROR_NAMESERVICE, 13);
VIPL_VALUE(VIP_NO_MATCH, 14);
VIPL_VALUE(VIP_NOT_REACHABLE, 15);
VIPL_VALUE(VIP_ERROR_NOT_SUPPORTED, 16);
#ifndef VIP_ERROR_NOT_SUPPORTED
#error "VIPL 1.6: VIP_ERROR_NOT_SUPPORTED is also a macro"
#endif
VIPL_VALUE(VIP_STATE_IDLE, 0);
VIPL_VALUE(VIP_STATE_CONNECTED, 1);
VIPL_VALUE(VIP_STATE_CONNECT_PENDING, 2);
VIPL_VALUE(VIP_STATE_ERROR, 3);
VIPL_VALUE(VIP_RESOURCE_NIC, 0);
VIPL_VALUE(VIP_RESOURCE_VI, 1);
VIPL_VALUE(VIP_RESOURCE_CQ, 2);
VIPL_VALUE(VIP_RESOURCE_DESCRIPTOR, 3);
VIPL_VALUE(VIP_ERROR_POST_DESC, 0);
VIPL_VALUE(VIP_ERROR_CONN_LOST, 1);
VIPL_VALUE(VIP_ERROR_RECVQ_EMPTY, 2);
VIPL_VALUE(VIP_ERROR_VI_OVERRUN, 3);
VIPL_VALUE(VIP_ERROR_RDMAW_PROT, 4);
VIPL_VALUE(VIP_ERROR_RDMAW_DATA, 5);
VIPL_VALUE(VIP_ERROR_RDMAW_ABORT, 6);
VIPL_VALUE(VIP_ERROR_RDMAR_PROT, 7);
VIPL_VALUE(VIP_ERROR_COMP_PROT, 8);
VIPL_VALUE(VIP_ERROR_RDMA_TRANSPORT, 9);
VIPL_VALUE(VIP_ERROR_CATASTROPHIC, 10);
VIPL_SIZE(VIP_RETURN, 4);
VIPL_SIZE(VIP_VI_STATE, 4);
VIPL_SIZE(VIP_RESOURCE_CODE, 4);
VIPL_SIZE(VIP_ERROR_CODE, 4);

/* VIPL 1.7; in preprocessor conditions, since old programs put the bits there too */
#if VIP_SERVICE_UNRELIABLE != 1 || VIP_SERVICE_RELIABLE_DELIVERY != 2 || \
    VIP_SERVICE_RELIABLE_RECEPTION != 4
#error "VIPL 1.7: reliability"
#endif
VIPL_SAME(reliability_level, VIP_RELIABILITY_LEVEL, unsigned short);
#if VIP_CONTROL_OP_MASK != 3 || VIP_CONTROL_OP_SENDRECV != 0 || VIP_CONTROL_OP_RDMAWRITE != 1 ||  \
    VIP_CONTROL_OP_RDMAREAD != 2 || VIP_CONTROL_OP_RESERVED != 3 || VIP_CONTROL_IMMEDIATE != 4 || \
    VIP_CONTROL_QFENCE != 8 || VIP_CONTROL_RESERVED != 0xFFF0
#error "VIPL 1.7: control"
#endif
#if VIP_STATUS_DONE != 1 || VIP_STATUS_FORMAT_ERROR != 2 || VIP_STATUS_PROTECTION_ERROR != 4 || \
    VIP_STATUS_LENGTH_ERROR != 8 || VIP_STATUS_PARTIAL_ERROR != 0x10 ||                         \
    VIP_STATUS_DESC_FLUSHED_ERROR != 0x20 || VIP_STATUS_TRANSPORT_ERROR != 0x40 ||              \
    VIP_STATUS_RDMA_PROT_ERROR != 0x80 || VIP_STATUS_REMOTE_DESC_ERROR != 0x100 ||              \
    VIP_STATUS_ERROR_MASK != 0x1FE
#error "VIPL 1.7: status errors"
#endif
#if VIP_STATUS_OP_MASK != 0x70000 || VIP_STATUS_OP_SEND != 0 ||                         \
    VIP_STATUS_OP_RECEIVE != 0x10000 || VIP_STATUS_OP_RDMA_WRITE != 0x20000 ||          \
    VIP_STATUS_OP_REMOTE_RDMA_WRITE != 0x30000 || VIP_STATUS_OP_RDMA_READ != 0x40000 || \
    VIP_STATUS_IMMEDIATE != 0x80000 || VIP_STATUS_RESERVED != 0xFFF0FE00
#error "VIPL 1.7: status operations"
#endif
/* Every bit of both fields has exactly one meaning. */
VIPL_CHECK((VIP_STATUS_DONE ^ VIP_STATUS_ERROR_MASK ^ VIP_STATUS_OP_MASK ^ VIP_STATUS_IMMEDIATE ^
            VIP_STATUS_RESERVED) == 0xFFFFFFFF);
VIPL_CHECK((VIP_CONTROL_OP_MASK ^ VIP_CONTROL_IMMEDIATE ^ VIP_CONTROL_QFENCE ^
            VIP_CONTROL_RESERVED) == 0xFFFF);

/* VIPL 1.8 */
typedef VIP_CHAR vipl_name[64];
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, Name, 0, vipl_name);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, HardwareVersion, 64, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, ProviderVersion, 72, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, NicAddressLen, 80, VIP_UINT16);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, LocalNicAddress, 88, const VIP_UINT8*);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, ThreadSafe, 96, VIP_BOOLEAN);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxDiscriminatorLen, 100, VIP_UINT16);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxRegisterBytes, 104, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxRegisterRegions, 112, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxRegisterBlockBytes, 120, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxVI, 128, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxDescriptorsPerQueue, 136, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxSegmentsPerDesc, 144, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxCQ, 152, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxCQEntries, 160, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxTransferSize, 168, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, NativeMTU, 176, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, MaxPtags, 184, VIP_ULONG);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, ReliabilityLevelSupport, 192, VIP_RELIABILITY_LEVEL);
VIPL_MEMBER(VIP_NIC_ATTRIBUTES, RDMAReadSupport, 194, VIP_RELIABILITY_LEVEL);
VIPL_SIZE(VIP_NIC_ATTRIBUTES, 200);

VIPL_MEMBER(VIP_VI_ATTRIBUTES, ReliabilityLevel, 0, VIP_RELIABILITY_LEVEL);
VIPL_MEMBER(VIP_VI_ATTRIBUTES, MaxTransferSize, 8, VIP_ULONG);
VIPL_MEMBER(VIP_VI_ATTRIBUTES, QoS, 16, VIP_QOS);
VIPL_MEMBER(VIP_VI_ATTRIBUTES, Ptag, 24, VIP_PROTECTION_HANDLE);
VIPL_MEMBER(VIP_VI_ATTRIBUTES, EnableRdmaWrite, 32, VIP_BOOLEAN);
VIPL_MEMBER(VIP_VI_ATTRIBUTES, EnableRdmaRead, 36, VIP_BOOLEAN);
VIPL_SIZE(VIP_VI_ATTRIBUTES, 40);

VIPL_MEMBER(VIP_MEM_ATTRIBUTES, Ptag, 0, VIP_PROTECTION_HANDLE);
VIPL_MEMBER(VIP_MEM_ATTRIBUTES, EnableRdmaWrite, 8, VIP_BOOLEAN);
VIPL_MEMBER(VIP_MEM_ATTRIBUTES, EnableRdmaRead, 12, VIP_BOOLEAN);
VIPL_SIZE(VIP_MEM_ATTRIBUTES, 16);

VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, NicHandle, 0, VIP_NIC_HANDLE);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, ViHandle, 8, VIP_VI_HANDLE);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, CQHandle, 16, VIP_CQ_HANDLE);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, DescriptorPtr, 24, VIP_DESCRIPTOR*);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, OpCode, 32, VIP_ULONG);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, ResourceCode, 40, VIP_RESOURCE_CODE);
VIPL_MEMBER(VIP_ERROR_DESCRIPTOR, ErrorCode, 44, VIP_ERROR_CODE);
VIPL_SIZE(VIP_ERROR_DESCRIPTOR, 48);

VIPL_MEMBER(VIP_AUTODISCOVERY_LIST, NumberOfHops, 0, VIP_ULONG);
VIPL_MEMBER(VIP_AUTODISCOVERY_LIST, ADAddrArray, 8, VIP_NET_ADDRESS**);
VIPL_MEMBER(VIP_AUTODISCOVERY_LIST, NumAdAddrs, 16, VIP_ULONG);
VIPL_SIZE(VIP_AUTODISCOVERY_LIST, 24);
VIPL_VALUE(VIP_SMI_AUTODISCOVERY, 1);

VIPL_SAME(tag_descriptor, struct _VIP_DESCRIPTOR, VIP_DESCRIPTOR);
VIPL_SAME(tag_pvoid64, union _VIP_PVOID64, VIP_PVOID64);
VIPL_SAME(tag_control_segment, struct _VIP_CONTROL_SEGMENT, VIP_CONTROL_SEGMENT);
VIPL_SAME(tag_address_segment, struct _VIP_ADDRESS_SEGMENT, VIP_ADDRESS_SEGMENT);
VIPL_SAME(tag_data_segment, struct _VIP_DATA_SEGMENT, VIP_DATA_SEGMENT);
VIPL_SAME(tag_descriptor_segment, union _VIP_DESCRIPTOR_SEGMENT, VIP_DESCRIPTOR_SEGMENT);
VIPL_SAME(tag_net_address, struct _VIP_NET_ADDRESS, VIP_NET_ADDRESS);
VIPL_SAME(tag_nic_attributes, struct _VIP_NIC_ATTRIBUTES, VIP_NIC_ATTRIBUTES);
VIPL_SAME(tag_vi_attributes, struct _VIP_VI_ATTRIBUTES, VIP_VI_ATTRIBUTES);
VIPL_SAME(tag_mem_attributes, struct _VIP_MEM_ATTRIBUTES, VIP_MEM_ATTRIBUTES);
VIPL_SAME(tag_error_descriptor, struct _VIP_ERROR_DESCRIPTOR, VIP_ERROR_DESCRIPTOR);
VIPL_SAME(tag_autodiscovery_list, struct _VIP_AUTODISCOVERY_LIST, VIP_AUTODISCOVERY_LIST);
VIPL_SAME(tag_return, enum _VIP_RETURN, VIP_RETURN);
VIPL_SAME(tag_vi_state, enum _VIP_VI_STATE, VIP_VI_STATE);
VIPL_SAME(tag_resource_code, enum _VIP_RESOURCE_CODE, VIP_RESOURCE_CODE);
VIPL_SAME(tag_error_code, enum _VIP_ERROR_CODE, VIP_ERROR_CODE);

typedef void (*vipl_error_handler)(void*, struct _VIP_ERROR_DESCRIPTOR*);
typedef void (*vipl_vi_callback)(void*, void*, void*, struct _VIP_DESCRIPTOR*);
typedef void (*vipl_cq_callback)(void*, void*, void*, int);
VIPL_SAME(error_handler, VIP_ERROR_HANDLER, vipl_error_handler);
VIPL_SAME(vi_callback, VIP_VI_CALLBACK, vipl_vi_callback);
VIPL_SAME(cq_callback, VIP_CQ_CALLBACK, vipl_cq_callback);

/* VIPL 2: a second declaration that disagrees with the header's is an error; C linkage is part of
 * the agreement. */
#ifdef __cplusplus
extern "C" {
#endif
#define VIPL_FUNCTION(name, parameters) VIPL_FUNCTION_OF(VIP_RETURN, name, parameters)
#define VIPL_FUNCTION_OF(type, name, parameters) type name parameters;
#include "vipl_functions.def"
#undef VIPL_FUNCTION
#undef VIPL_FUNCTION_OF
#ifdef __cplusplus
}
#endif

#endif
