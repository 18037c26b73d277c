package linux

// Families, types, levels, flags and options of sockets.
//
// headers: sys/socket.h sys/uio.h linux/if_packet.h linux/errqueue.h linux/sockios.h asm/ioctls.h asm/termbits.h net/if.h
const (
	AF_BLUETOOTH = 31
	AF_INET      = 2
	AF_INET6     = 10
	AF_NETLINK   = 0x10
	AF_PACKET    = 17
	AF_UNIX      = 1
	AF_UNSPEC    = 0
	FIOCLEX      = 0x5451
	FIONBIO      = 0x5421
	FIONCLEX     = 0x5450
	FIONREAD     = 0x541b
	IFNAMSIZ     = 0x10

	MSG_CMSG_CLOEXEC = 0x40000000
	MSG_CONFIRM      = 0x800
	MSG_CTRUNC       = 8
	MSG_DONTROUTE    = 4
	MSG_DONTWAIT     = 0x40
	MSG_EOR          = 0x80
	MSG_ERRQUEUE     = 0x2000
	MSG_FASTOPEN     = 0x20000000
	MSG_MORE         = 0x8000
	MSG_NOSIGNAL     = 0x4000
	MSG_OOB          = 1
	MSG_PEEK         = 2
	MSG_TRUNC        = 0x20
	MSG_WAITALL      = 0x100
	MSG_WAITFORONE   = 0x10000

	PACKET_ADD_MEMBERSHIP  = 1
	PACKET_AUXDATA         = 8
	PACKET_COPY_THRESH     = 7
	PACKET_DROP_MEMBERSHIP = 2
	PACKET_HDRLEN          = 11
	PACKET_IGNORE_OUTGOING = 23
	PACKET_LOSS            = 14
	PACKET_ORIGDEV         = 9
	PACKET_QDISC_BYPASS    = 20
	PACKET_RESERVE         = 12
	PACKET_RX_RING         = 5
	PACKET_STATISTICS      = 6
	PACKET_TIMESTAMP       = 17
	PACKET_VERSION         = 10

	SCM_CREDENTIALS = 2
	SCM_PIDFD       = 4
	SCM_RIGHTS      = 1
	SCM_TIMESTAMP   = 29
	SCM_TIMESTAMPNS = 35

	SHUT_RD        = 0
	SHUT_RDWR      = 2
	SHUT_WR        = 1
	SIOCATMARK     = 0x8905
	SIOCETHTOOL    = 0x8946
	SIOCGIFADDR    = 0x8915
	SIOCGIFCONF    = 0x8912
	SIOCGIFFLAGS   = 0x8913
	SIOCGIFHWADDR  = 0x8927
	SIOCGIFINDEX   = 0x8933
	SIOCGIFMTU     = 0x8921
	SIOCGIFNAME    = 0x8910
	SIOCGIFNETMASK = 0x891b
	SIOCGIFTXQLEN  = 0x8942
	SIOCOUTQ       = 0x5411

	SOCK_CLOEXEC   = 0x80000
	SOCK_DGRAM     = 2
	SOCK_NONBLOCK  = 0x800
	SOCK_RAW       = 3
	SOCK_SEQPACKET = 5
	SOCK_STREAM    = 1
	SOL_PACKET     = 0x107
	SOL_SOCKET     = 1
	SOMAXCONN      = 0x1000

	SO_ACCEPTCONN              = 30
	SO_ATTACH_FILTER           = 26
	SO_BINDTODEVICE            = 25
	SO_BROADCAST               = 6
	SO_BUSY_POLL               = 46
	SO_COOKIE                  = 57
	SO_DEBUG                   = 1
	SO_DETACH_FILTER           = 27
	SO_DOMAIN                  = 39
	SO_DONTROUTE               = 5
	SO_EE_ORIGIN_ICMP          = 2
	SO_EE_ORIGIN_ICMP6         = 3
	SO_EE_ORIGIN_LOCAL         = 1
	SO_EE_RFC4884_FLAG_INVALID = 1
	SO_ERROR                   = 4
	SO_INCOMING_CPU            = 49
	SO_KEEPALIVE               = 9
	SO_LINGER                  = 13
	SO_LOCK_FILTER             = 44
	SO_MARK                    = 36
	SO_MAX_PACING_RATE         = 47
	SO_NO_CHECK                = 11
	SO_OOBINLINE               = 10
	SO_PASSCRED                = 0x10
	SO_PASSPIDFD               = 76
	SO_PASSSEC                 = 34
	SO_PEEK_OFF                = 42
	SO_PEERCRED                = 17
	SO_PEERPIDFD               = 77
	SO_PRIORITY                = 12
	SO_PROTOCOL                = 38
	SO_RCVBUF                  = 8
	SO_RCVBUFFORCE             = 33
	SO_RCVLOWAT                = 18
	SO_RCVTIMEO                = 20
	SO_REUSEADDR               = 2
	SO_REUSEPORT               = 15
	SO_RXQ_OVFL                = 40
	SO_SNDBUF                  = 7
	SO_SNDBUFFORCE             = 0x20
	SO_SNDLOWAT                = 19
	SO_SNDTIMEO                = 21
	SO_TIMESTAMP               = 29
	SO_TIMESTAMPING            = 37
	SO_TIMESTAMPNS             = 35
	SO_TYPE                    = 3
	SO_ZEROCOPY                = 60
	TCGETA                     = 0x5405
	TCGETS                     = 0x5401
	TCGETS2                    = 0x802c542a
	TCSETA                     = 0x5406
	TCSETAF                    = 0x5408
	TCSETAW                    = 0x5407
	TCSETS                     = 0x5402
	TCSETS2                    = 0x402c542b
	TCSETSF                    = 0x5404
	TCSETSF2                   = 0x402c542d
	TCSETSW                    = 0x5403
	TIOCGPGRP                  = 0x540f
	TIOCGWINSZ                 = 0x5413
	TIOCOUTQ                   = 0x5411
	TIOCSPGRP                  = 0x5410
	TIOCSTI                    = 0x5412
	TIOCSWINSZ                 = 0x5414

	TPACKET_V1 = 0
	TPACKET_V2 = 1
	TPACKET_V3 = 2

	TP_STATUS_BLK_TMO      = 0x20
	TP_STATUS_CSUMNOTREADY = 8
	TP_STATUS_KERNEL       = 0
	TP_STATUS_LOSING       = 4
	TP_STATUS_USER         = 1
	UIO_MAXIOV             = 0x400
)
