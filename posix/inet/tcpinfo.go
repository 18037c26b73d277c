package inet

import (
	"encoding/binary"
	"time"

	"loam/stack/tcp"
)

// TCP states in Linux's numbering (include/net/tcp_states.h).
const (
	StateEstablished = 1
	StateClose       = 7
	StateCloseWait   = 8
	StateListen      = 10
)

var linuxStates = map[tcp.State]uint8{
	tcp.Established: StateEstablished, tcp.SynSent: 2, tcp.SynReceived: 3, tcp.FinWait1: 4,
	tcp.FinWait2: 5, tcp.TimeWait: 6, tcp.Closed: StateClose, tcp.CloseWait: StateCloseWait,
	tcp.LastAck: 9, tcp.Closing: 11,
}

// Bits of tcpi_options (linux/tcp.h).
const (
	infoTimestamps = 1
	infoSACK       = 2
	infoWScale     = 4
	infoECN        = 8
	infoSYNData    = 32
)

// infoValue encodes a struct tcp_info (linux/tcp.h).
func infoValue(i tcp.Info, listening bool) []byte {
	state := linuxStates[i.State]
	if i.State == tcp.TimeWait {
		state = StateClose // on Linux, a socket in TIME-WAIT has given up its connection, and shows CLOSE
	}
	if listening {
		state = StateListen
	}
	var options, limited uint8
	for bit, on := range map[uint8]bool{infoTimestamps: i.Timestamps, infoSACK: i.SACK, infoWScale: i.WindowScaled, infoECN: i.ECN, infoSYNData: i.SynData} {
		if on {
			options |= bit
		}
	}
	if i.DeliveryRate != 0 && i.RateLimited || i.DeliveryRate == 0 && i.AppLimited {
		limited = 1
	}
	v := infoWriter{state, uint8(i.CAState), clip8(i.Retransmits), clip8(i.Probes), clip8(i.Backoff),
		options, i.SndWScale | i.RcvWScale<<4, limited}

	v.times(i.RTO, i.ATO)
	v.words(i.SndMSS, i.RcvMSS)
	v.words(i.Unacked, i.Sacked, i.Lost, i.Retrans, 0)
	v.millis(i.LastDataSent, 0, i.LastDataRecv, i.LastAckRecv) // tcpi_last_ack_sent is 0, as on Linux
	v.words(i.PathMSS+40, i.RcvWnd)
	v.times(i.RTT, i.RTTVar)
	v.words(i.SndSsthresh, i.SndCwnd, i.AdvMSS, i.Reordering)
	v.times(i.RcvRTT)
	v.words(i.RcvSpace, int(i.TotalRetrans))
	v.longs(i.PacingRate, maxPacingOf(i))
	v.longs(i.BytesAcked, i.BytesReceived)
	v.words(int(i.SegmentsOut), int(i.SegmentsIn), i.NotSent)
	v.times(i.MinRTT)
	v.words(int(i.DataSegmentsIn), int(i.DataSegmentsOut))
	v.longs(i.DeliveryRate)
	v.longs(0, 0, 0) // tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited are not measured
	v.words(int(i.Delivered), int(i.DeliveredCE))
	v.longs(i.BytesSent, i.BytesRetrans)
	v.words(int(i.DSACKDups), i.ReorderSeen, int(i.OutOfOrder), i.SndWnd)
	return v
}

// maxPacingOf returns the value of tcpi_max_pacing_rate.
func maxPacingOf(i tcp.Info) uint64 {
	if i.MaxPacingRate == 0 {
		return noPacing
	}
	return i.MaxPacingRate
}

// congestionInfoValue encodes the struct tcp_bbr_info of linux/inet_diag.h, with gains in units of
// 1/256. Other algorithms have no information, so the value is empty.
func congestionInfoValue(i tcp.Info) []byte {
	if i.Congestion != "bbr" {
		return nil
	}
	var v infoWriter
	v.longs(i.BBR.Bandwidth) // bbr_bw_lo, bbr_bw_hi
	v.times(i.BBR.MinRTT)
	v.words(i.BBR.PacingGain*256/100, i.BBR.WindowGain*256/100)
	return v
}

// infoWriter appends fields in native byte order.
type infoWriter []byte

func (w *infoWriter) words(values ...int) {
	for _, v := range values {
		*w = binary.NativeEndian.AppendUint32(*w, uint32(v))
	}
}

func (w *infoWriter) longs(values ...uint64) {
	for _, v := range values {
		*w = binary.NativeEndian.AppendUint64(*w, v)
	}
}

// times appends times in microseconds.
func (w *infoWriter) times(values ...tcp.Time) {
	for _, v := range values {
		w.words(int(v / time.Microsecond))
	}
}

func (w *infoWriter) millis(values ...tcp.Time) {
	for _, v := range values {
		w.words(int(v / time.Millisecond))
	}
}

func clip8(n int) uint8 { return uint8(min(n, 255)) }

// Backlog returns the number of connections that wait for accept(2), and their maximum, which is 0 unless the socket listens.
func (s *TCPSocket) Backlog() (waiting, most int) {
	if l := s.listener.Load(); l != nil {
		return l.Waiting()
	}
	return 0, 0
}

// State returns the state of the socket in Linux's numbering.
func (s *TCPSocket) State() uint8 {
	if s.listener.Load() != nil {
		return StateListen
	}
	return linuxStates[s.info().State]
}
