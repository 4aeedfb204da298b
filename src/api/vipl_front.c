/* VIPL 1.0's names, and two of its time, nothing else (VIPL 1.10): each goes straight to libvia.so.
 * Generated once from vipl.h; tests/header compares the list of functions. */
#include <vipl.h>

/* Declares the function of libvia.so and defines VIPL's on top of it. */
#define FRONT(name, parameters, arguments)   \
    extern VIP_RETURN via_##name parameters; \
    VIP_RETURN name parameters { return via_##name arguments; }

FRONT(VipOpenNic, (const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle), (DeviceName, NicHandle))
FRONT(VipCloseNic, (VIP_NIC_HANDLE NicHandle), (NicHandle))
FRONT(VipQueryNic, (VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* NicAttribs),
      (NicHandle, NicAttribs))
FRONT(VipQuerySystemManagementInfo,
      (VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo),
      (NicHandle, InfoType, SysManInfo))
FRONT(VipErrorCallback, (VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler),
      (NicHandle, Context, Handler))
FRONT(VipCreatePtag, (VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* Ptag), (NicHandle, Ptag))
FRONT(VipDestroyPtag, (VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag), (NicHandle, Ptag))
FRONT(VipRegisterMem,
      (VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
       VIP_MEM_ATTRIBUTES* MemAttribs, VIP_MEM_HANDLE* MemoryHandle),
      (NicHandle, VirtualAddress, Length, MemAttribs, MemoryHandle))
FRONT(VipDeregisterMem,
      (VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle),
      (NicHandle, VirtualAddress, MemoryHandle))
FRONT(VipSetMemAttributes,
      (VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
       VIP_MEM_ATTRIBUTES* MemAttribs),
      (NicHandle, Address, MemHandle, MemAttribs))
FRONT(VipQueryMem,
      (VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
       VIP_MEM_ATTRIBUTES* MemAttribs),
      (NicHandle, Address, MemHandle, MemAttribs))
FRONT(VipCreateVi,
      (VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs, VIP_CQ_HANDLE SendCQHandle,
       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle),
      (NicHandle, ViAttribs, SendCQHandle, RecvCQHandle, ViHandle))
FRONT(VipDestroyVi, (VIP_VI_HANDLE ViHandle), (ViHandle))
FRONT(VipSetViAttributes, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs),
      (ViHandle, ViAttribs))
FRONT(VipQueryVi,
      (VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttribs,
       VIP_BOOLEAN* ViSendQEmpty, VIP_BOOLEAN* ViRecvQEmpty),
      (ViHandle, State, ViAttribs, ViSendQEmpty, ViRecvQEmpty))
FRONT(VipConnectWait,
      (VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
       VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
       VIP_CONN_HANDLE* ConnHandle),
      (NicHandle, LocalAddr, Timeout, RemoteAddr, RemoteViAttribs, ConnHandle))
FRONT(VipConnectAccept, (VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle),
      (ConnHandle, ViHandle))
FRONT(VipConnectReject, (VIP_CONN_HANDLE ConnHandle), (ConnHandle))
FRONT(VipConnectRequest,
      (VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
       VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttribs),
      (ViHandle, LocalAddr, RemoteAddr, Timeout, RemoteViAttribs))
FRONT(VipDisconnect, (VIP_VI_HANDLE ViHandle), (ViHandle))

extern VIP_PVOID via_VipGetUserData(VIP_VI_HANDLE ViHandle);
VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) { return via_VipGetUserData(ViHandle); }
extern void via_VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data);
void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data) { via_VipSetUserData(ViHandle, Data); }

FRONT(VipConnectPeerRequest,
      (VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
       VIP_ULONG Timeout),
      (ViHandle, LocalAddr, RemoteAddr, Timeout))
FRONT(VipConnectPeerDone, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs),
      (ViHandle, RemoteViAttribs))
FRONT(VipConnectPeerWait, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs),
      (ViHandle, RemoteViAttribs))
FRONT(VipPostSend,
      (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle),
      (ViHandle, DescriptorPtr, MemoryHandle))
FRONT(VipSendDone, (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr),
      (ViHandle, DescriptorPtr))
FRONT(VipSendWait, (VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr),
      (ViHandle, Timeout, DescriptorPtr))
FRONT(VipSendNotify, (VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler),
      (ViHandle, Context, Handler))
FRONT(VipPostRecv,
      (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle),
      (ViHandle, DescriptorPtr, MemoryHandle))
FRONT(VipRecvDone, (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr),
      (ViHandle, DescriptorPtr))
FRONT(VipRecvWait, (VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr),
      (ViHandle, Timeout, DescriptorPtr))
FRONT(VipRecvNotify, (VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler),
      (ViHandle, Context, Handler))
FRONT(VipCreateCQ, (VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle),
      (NicHandle, EntryCount, CQHandle))
FRONT(VipDestroyCQ, (VIP_CQ_HANDLE CQHandle), (CQHandle))
FRONT(VipResizeCQ, (VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount), (CQHandle, EntryCount))
FRONT(VipCQDone, (VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue),
      (CQHandle, ViHandle, RecvQueue))
FRONT(VipCQWait,
      (VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue),
      (CQHandle, Timeout, ViHandle, RecvQueue))
FRONT(VipCQNotify, (VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler),
      (CQHandle, Context, Handler))
FRONT(VipNSInit, (VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo), (NicHandle, NSInitInfo))
FRONT(VipNSGetHostByName,
      (VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address, VIP_ULONG NameIndex),
      (NicHandle, Name, Address, NameIndex))
FRONT(VipNSGetHostByAddr,
      (VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name, VIP_ULONG* NameLen),
      (NicHandle, Address, Name, NameLen))
FRONT(VipNSShutdown, (VIP_NIC_HANDLE NicHandle), (NicHandle))
