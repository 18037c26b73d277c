package linux

// Layouts of I/O vectors, messages and control messages.

// Iovec is struct iovec: a piece of the caller's memory (readv(2)). Base is an address.
type Iovec struct{ Base, Len uint64 }

// SizeofIovec is the size of a struct iovec in bytes.
const SizeofIovec = 16

// ParseIovec decodes a struct iovec.
func ParseIovec(b []byte) Iovec { return Iovec{Base: le.Uint64(b), Len: le.Uint64(b[8:])} }

// Msghdr is struct msghdr (sendmsg(2)). Name, Iov and Control are addresses.
type Msghdr struct {
	Name       uint64
	Namelen    uint32
	Iov        uint64
	Iovlen     uint64
	Control    uint64
	Controllen uint64
	Flags      int32
}

// Sizes of struct msghdr and struct mmsghdr in bytes. struct mmsghdr is a struct msghdr followed by the number of
// bytes.
const (
	SizeofMsghdr  = 56
	SizeofMmsghdr = 64
)

// Offsets in struct msghdr, in bytes, of the fields with addresses, and of the fields that a call sets.
const (
	MsghdrName       = 0
	MsghdrNamelen    = 8
	MsghdrIov        = 16
	MsghdrControl    = 32
	MsghdrControllen = 40
	MsghdrFlags      = 48
	MmsghdrLen       = 56
)

// ParseMsghdr decodes a struct msghdr.
func ParseMsghdr(b []byte) Msghdr {
	return Msghdr{
		Name: le.Uint64(b), Namelen: le.Uint32(b[8:]), Iov: le.Uint64(b[16:]), Iovlen: le.Uint64(b[24:]),
		Control: le.Uint64(b[32:]), Controllen: le.Uint64(b[40:]), Flags: int32(le.Uint32(b[48:])),
	}
}

// Cmsghdr is struct cmsghdr: the head of a control message (cmsg(3)). Len counts the head.
type Cmsghdr struct {
	Len         uint64
	Level, Type int32
}

// SizeofCmsghdr is the size of a struct cmsghdr in bytes.
const SizeofCmsghdr = 16

// ParseCmsghdr decodes a struct cmsghdr.
func ParseCmsghdr(b []byte) Cmsghdr {
	return Cmsghdr{Len: le.Uint64(b), Level: int32(le.Uint32(b[8:])), Type: int32(le.Uint32(b[12:]))}
}

// Append appends the encoding of h to b.
func (h Cmsghdr) Append(b []byte) []byte {
	b = le.AppendUint64(b, h.Len)
	b = le.AppendUint32(b, uint32(h.Level))
	return le.AppendUint32(b, uint32(h.Type))
}

// AlignCmsg rounds the length of a control message up to a multiple of 8, the offset at which the next message begins.
func AlignCmsg(n int) int { return (n + 7) &^ 7 }

// SockFprog is struct sock_fprog: a socket filter. Filter is an address.
type SockFprog struct {
	Len    uint16
	Filter uint64
}

// Sizes in bytes of struct sock_fprog and of struct sock_filter, one instruction; and the offset of the filter's
// address in struct sock_fprog.
const (
	SizeofSockFprog  = 16
	SizeofSockFilter = 8
	SockFprogFilter  = 8
)

// ParseSockFprog decodes a struct sock_fprog.
func ParseSockFprog(b []byte) SockFprog {
	return SockFprog{Len: le.Uint16(b), Filter: le.Uint64(b[8:])}
}

// Sizes in bytes of socket addresses and of the structures that socket options use.
const (
	SizeofSockaddrIn      = 16
	SizeofSockaddrIn6     = 28
	SizeofSockaddrNl      = 12
	SizeofSockaddrLl      = 20
	SizeofSockaddrStorage = 128
	SizeofSunPath         = 108 // sun_path of struct sockaddr_un
	SizeofUcred           = 12
	SizeofLinger          = 8
	SizeofIfreq           = 40
	SizeofIfconf          = 16
	SizeofGroupReq        = 136
	SizeofGroupSourceReq  = 264
	SizeofIPMreqSource    = 12
	SizeofInPktinfo       = 12
	SizeofIn6Pktinfo      = 20
	SizeofNlMsghdr        = 16
	SizeofRtMsg           = 12
	SizeofRtAttr          = 4
	SizeofIfInfomsg       = 16
	SizeofIfAddrmsg       = 8
	SizeofNlMsgerr        = 20
)

// NLMSG_HDRLEN is the length of the header of a netlink message, in bytes.
const NLMSG_HDRLEN = SizeofNlMsghdr
