package inet

import (
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// tcp_syn_retries is the number of retransmissions of a SYN. A listener obeys only TCP_SYNCNT.
func TestSynRetries(t *testing.T) {
	var n Network
	n.Init(nil)
	n.SynRetries.Set(1)
	s := newTCP(&n, linux.AF_INET, 0)
	if active, passive := s.opts.SynRetries, s.passive().SynRetries; active != 1 || passive != 0 {
		t.Errorf("a SYN is sent %d times again, want 1, and a SYN-ACK %d, want 0: the default", active, passive)
	}
	count := tcpIntOptions[socket.OptionName{Level: linux.IPPROTO_TCP, Name: linux.TCP_SYNCNT}]
	if errno := count.Set(&s.opts, 3); errno != 0 || s.passive().SynRetries != 3 {
		t.Errorf("after TCP_SYNCNT: %v, a SYN-ACK is sent %d times again, want 3", errno, s.passive().SynRetries)
	}
}
