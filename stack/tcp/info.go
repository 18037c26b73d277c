package tcp

// Info is what Linux's TCP_INFO says, as far as it means something here. Counts
// of segments are in units of the current MSS where a frame held several.
type Info struct {
	State           State
	CAState         CAState
	Congestion      string
	Retransmits     int // timeouts in a row
	Probes          int // probes without an answer
	Backoff         int // doublings of the timeout
	Timestamps      bool
	SACK            bool
	ECN             bool
	WindowScaled    bool
	SndWScale       uint8
	RcvWScale       uint8
	AppLimited      bool
	RTO             Time
	ATO             Time
	SndMSS          int // payload of a full segment sent
	RcvMSS          int // payload of the largest segment received, as far as it is one
	AdvMSS          int // MSS told to the peer
	Unacked         int // segments
	Sacked          int // segments; duplicate acknowledgments without SACK
	Lost            int // segments
	Retrans         int // retransmitted segments in flight
	RTT, RTTVar     Time
	MinRTT          Time // least in the last minutes, 0 if none
	RcvRTT          Time // as the receiver sees it
	RcvSpace        int  // receive buffer: bytes that the program may leave unread
	SndCwnd         int  // segments
	SndCwndBytes    int
	SndSsthresh     int // segments; MaxInt32 before the first loss
	Reordering      int // segments; degree of reordering seen
	TotalRetrans    int // segments
	BytesSent       uint64
	BytesRetrans    uint64
	BytesAcked      uint64
	BytesReceived   uint64
	SegmentsOut     uint64
	SegmentsIn      uint64
	DataSegmentsOut uint64
	DataSegmentsIn  uint64
	Delivered       int // segments
	DeliveredCE     int // segments acknowledged with ECE
	DSACKDups       int // segments that the peer reported as duplicates
	ReorderSeen     int // times that reordering was seen
	OutOfOrder      int // segments received out of order
	SndWnd          int // what the peer offers
	RcvWnd          int // what is offered to the peer
	NotSent         int // bytes written and not sent
}

// CAState is the state of congestion control, with Linux's values.
type CAState uint8

const (
	CAOpen     CAState = iota // nothing unusual
	CADisorder                // selective or duplicate acknowledgments have come
	CACWR                     // slowing down because of ECN
	CARecovery                // repairing loss by fast retransmit
	CALoss                    // repairing loss after a timeout
)
