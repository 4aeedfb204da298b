/* VIPL 1.0's names, and two of its time, nothing else (VIPL 1.10): each goes straight to libvia.so.
 * Generated once from vipl.h; tests/header compares the list of functions. */
#include <vipl.h>

/* Declares the function of libvia.so and defines VIPL's on top of it. */
#define NAME(name, parameters, arguments)    \
    extern VIP_RETURN via_##name parameters; \
    VIP_RETURN name parameters { return via_##name arguments; }

NAME(VipOpenNic, (const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle), (DeviceName, NicHandle))
NAME(VipCloseNic, (VIP_NIC_HANDLE NicHandle), (NicHandle))
NAME(VipQueryNic, (VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* NicAttribs),
     (NicHandle, NicAttribs))
NAME(VipQuerySystemManagementInfo,
     (VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType, VIP_PVOID SysManInfo),
     (NicHandle, InfoType, SysManInfo))
NAME(VipErrorCallback, (VIP_NIC_HANDLE NicHandle, VIP_PVOID Context, VIP_ERROR_HANDLER Handler),
     (NicHandle, Context, Handler))
NAME(VipCreatePtag, (VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* Ptag), (NicHandle, Ptag))
NAME(VipDestroyPtag, (VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag), (NicHandle, Ptag))
NAME(VipRegisterMem,
     (VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
      VIP_MEM_ATTRIBUTES* MemAttribs, VIP_MEM_HANDLE* MemoryHandle),
     (NicHandle, VirtualAddress, Length, MemAttribs, MemoryHandle))
NAME(VipDeregisterMem,
     (VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_MEM_HANDLE MemoryHandle),
     (NicHandle, VirtualAddress, MemoryHandle))
NAME(VipSetMemAttributes,
     (VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
      VIP_MEM_ATTRIBUTES* MemAttribs),
     (NicHandle, Address, MemHandle, MemAttribs))
NAME(VipQueryMem,
     (VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
      VIP_MEM_ATTRIBUTES* MemAttribs),
     (NicHandle, Address, MemHandle, MemAttribs))
NAME(VipCreateVi,
     (VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs, VIP_CQ_HANDLE SendCQHandle,
      VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle),
     (NicHandle, ViAttribs, SendCQHandle, RecvCQHandle, ViHandle))
NAME(VipDestroyVi, (VIP_VI_HANDLE ViHandle), (ViHandle))
NAME(VipSetViAttributes, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs),
     (ViHandle, ViAttribs))
NAME(VipQueryVi,
     (VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttribs,
      VIP_BOOLEAN* ViSendQEmpty, VIP_BOOLEAN* ViRecvQEmpty),
     (ViHandle, State, ViAttribs, ViSendQEmpty, ViRecvQEmpty))
NAME(VipConnectWait,
     (VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
      VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs, VIP_CONN_HANDLE* ConnHandle),
     (NicHandle, LocalAddr, Timeout, RemoteAddr, RemoteViAttribs, ConnHandle))
NAME(VipConnectAccept, (VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle), (ConnHandle, ViHandle))
NAME(VipConnectReject, (VIP_CONN_HANDLE ConnHandle), (ConnHandle))
NAME(VipConnectRequest,
     (VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
      VIP_ULONG Timeout, VIP_VI_ATTRIBUTES* RemoteViAttribs),
     (ViHandle, LocalAddr, RemoteAddr, Timeout, RemoteViAttribs))
NAME(VipDisconnect, (VIP_VI_HANDLE ViHandle), (ViHandle))

extern VIP_PVOID via_VipGetUserData(VIP_VI_HANDLE ViHandle);
VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) { return via_VipGetUserData(ViHandle); }
extern void via_VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data);
void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID Data) { via_VipSetUserData(ViHandle, Data); }

NAME(VipConnectPeerRequest,
     (VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr, VIP_NET_ADDRESS* RemoteAddr,
      VIP_ULONG Timeout),
     (ViHandle, LocalAddr, RemoteAddr, Timeout))
NAME(VipConnectPeerDone, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs),
     (ViHandle, RemoteViAttribs))
NAME(VipConnectPeerWait, (VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs),
     (ViHandle, RemoteViAttribs))
NAME(VipPostSend,
     (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle),
     (ViHandle, DescriptorPtr, MemoryHandle))
NAME(VipSendDone, (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr),
     (ViHandle, DescriptorPtr))
NAME(VipSendWait, (VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr),
     (ViHandle, Timeout, DescriptorPtr))
NAME(VipSendNotify, (VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler),
     (ViHandle, Context, Handler))
NAME(VipPostRecv,
     (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr, VIP_MEM_HANDLE MemoryHandle),
     (ViHandle, DescriptorPtr, MemoryHandle))
NAME(VipRecvDone, (VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr),
     (ViHandle, DescriptorPtr))
NAME(VipRecvWait, (VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr),
     (ViHandle, Timeout, DescriptorPtr))
NAME(VipRecvNotify, (VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Handler),
     (ViHandle, Context, Handler))
NAME(VipCreateCQ, (VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle),
     (NicHandle, EntryCount, CQHandle))
NAME(VipDestroyCQ, (VIP_CQ_HANDLE CQHandle), (CQHandle))
NAME(VipResizeCQ, (VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount), (CQHandle, EntryCount))
NAME(VipCQDone, (VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue),
     (CQHandle, ViHandle, RecvQueue))
NAME(VipCQWait,
     (VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue),
     (CQHandle, Timeout, ViHandle, RecvQueue))
NAME(VipCQNotify, (VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Handler),
     (CQHandle, Context, Handler))
NAME(VipNSInit, (VIP_NIC_HANDLE NicHandle, VIP_PVOID NSInitInfo), (NicHandle, NSInitInfo))
NAME(VipNSGetHostByName,
     (VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address, VIP_ULONG NameIndex),
     (NicHandle, Name, Address, NameIndex))
NAME(VipNSGetHostByAddr,
     (VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name, VIP_ULONG* NameLen),
     (NicHandle, Address, Name, NameLen))
NAME(VipNSShutdown, (VIP_NIC_HANDLE NicHandle), (NicHandle))
