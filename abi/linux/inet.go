package linux

// Socket options of the Internet protocols.
//
// headers: netinet/in.h netinet/tcp.h linux/icmp.h linux/icmpv6.h netinet/udp.h
const (
	ICMPV6_FILTER = 1
	ICMP_FILTER   = 1

	IPPROTO_ICMP    = 1
	IPPROTO_ICMPV6  = 58
	IPPROTO_IP      = 0
	IPPROTO_IPV6    = 41
	IPPROTO_TCP     = 6
	IPPROTO_UDP     = 17
	IPPROTO_RAW     = 255
	IPPROTO_UDPLITE = 136

	IPV6_ADD_MEMBERSHIP  = 20
	IPV6_AUTOFLOWLABEL   = 70
	IPV6_CHECKSUM        = 7
	IPV6_DONTFRAG        = 62
	IPV6_DROP_MEMBERSHIP = 21
	IPV6_HDRINCL         = 36
	IPV6_HOPLIMIT        = 52
	IPV6_MTU             = 24
	IPV6_MTU_DISCOVER    = 23
	IPV6_MULTICAST_ALL   = 29
	IPV6_MULTICAST_HOPS  = 18
	IPV6_MULTICAST_IF    = 17
	IPV6_MULTICAST_LOOP  = 19
	IPV6_ORIGDSTADDR     = 74
	IPV6_PATHMTU         = 61
	IPV6_PKTINFO         = 50
	IPV6_RECVERR         = 25
	IPV6_RECVERR_RFC4884 = 31
	IPV6_RECVHOPLIMIT    = 51
	IPV6_RECVPATHMTU     = 60
	IPV6_RECVPKTINFO     = 49
	IPV6_RECVTCLASS      = 66
	IPV6_TCLASS          = 67
	IPV6_UNICAST_HOPS    = 0x10
	IPV6_V6ONLY          = 26

	IP_ADD_MEMBERSHIP         = 35
	IP_ADD_SOURCE_MEMBERSHIP  = 39
	IP_BIND_ADDRESS_NO_PORT   = 24
	IP_BLOCK_SOURCE           = 38
	IP_DROP_MEMBERSHIP        = 36
	IP_DROP_SOURCE_MEMBERSHIP = 40
	IP_FREEBIND               = 15
	IP_HDRINCL                = 3
	IP_MSFILTER               = 41
	IP_MTU                    = 14
	IP_MTU_DISCOVER           = 10
	IP_MULTICAST_ALL          = 49
	IP_MULTICAST_IF           = 0x20
	IP_MULTICAST_LOOP         = 34
	IP_MULTICAST_TTL          = 33
	IP_ORIGDSTADDR            = 20
	IP_PKTINFO                = 8
	IP_PMTUDISC_WANT          = 1
	IP_RECVERR                = 11
	IP_RECVERR_RFC4884        = 26
	IP_RECVORIGDSTADDR        = 20
	IP_RECVOPTS               = 6
	IP_RECVTOS                = 13
	IP_RECVTTL                = 12
	IP_RETOPTS                = 7
	IP_TOS                    = 1
	IP_TTL                    = 2
	IP_UNBLOCK_SOURCE         = 37

	MCAST_BLOCK_SOURCE       = 43
	MCAST_EXCLUDE            = 0
	MCAST_INCLUDE            = 1
	MCAST_JOIN_GROUP         = 42
	MCAST_JOIN_SOURCE_GROUP  = 46
	MCAST_LEAVE_GROUP        = 45
	MCAST_LEAVE_SOURCE_GROUP = 47
	MCAST_MSFILTER           = 48
	MCAST_UNBLOCK_SOURCE     = 44

	SOL_IP   = 0
	SOL_IPV6 = 41
	SOL_RAW  = 255
	SOL_TCP  = 6
	SOL_UDP  = 17

	TCP_CONGESTION         = 13
	TCP_CORK               = 3
	TCP_DEFER_ACCEPT       = 9
	TCP_FASTOPEN           = 23
	TCP_CC_INFO            = 26
	TCP_FASTOPEN_CONNECT   = 30
	TCP_FASTOPEN_KEY       = 33
	TCP_FASTOPEN_NO_COOKIE = 34
	TCP_INFO               = 11
	TCP_KEEPCNT            = 6
	TCP_KEEPIDLE           = 4
	TCP_KEEPINTVL          = 5
	TCP_LINGER2            = 8
	TCP_MAXSEG             = 2
	TCP_NODELAY            = 1
	TCP_NOTSENT_LOWAT      = 25
	TCP_QUICKACK           = 12
	TCP_SYNCNT             = 7
	TCP_USER_TIMEOUT       = 18
	UDPLITE_RECV_CSCOV     = 11
	UDPLITE_SEND_CSCOV     = 10
	UDP_CORK               = 1
	UDP_GRO                = 104
	UDP_SEGMENT            = 103
)
