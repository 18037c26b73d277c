package tcp

import (
	"testing"

	"loam/stack/tcp/ranges"
)

// Receiving data: reassembly, and sending of selective acknowledgments.

func TestOutOfOrderIsKeptAndAcknowledgedAtOnce(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 1 <sack 1001-2001>") // RFC 5681: a duplicate ACK immediately
	c.wantReadable(0)
	c.send("A 2001:3001 ack 1")
	c.want("A 1 ack 1 <sack 1001-3001>")
	c.send("A 1:1001 ack 1")
	c.want("A 1 ack 3001 <>") // an acknowledgment at once when the gap is filled, without SACK blocks
	c.wantReadable(3000)
	c.wantCount(OutOfOrderIn, 2)
}

func TestPartOfGapFilledIsAcknowledgedAtOnce(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.send("A 2001:3001 ack 1")
	c.want("A 1 ack 1 <sack 2001-3001>")
	c.send("A 1:501 ack 1")
	c.want("A 1 ack 501 <sack 2001-3001>")
}

func TestSACKBlocksLatestFirst(t *testing.T) {
	// RFC 2018 section 4 and its example: the first block holds the segment that caused the ACK, the others
	// the ranges reported last.
	c := established(t, nil, ", sackOK")
	c.send("A 501:1001 ack 1")
	c.want("A 1 ack 1 <sack 501-1001>")
	c.send("A 1501:2001 ack 1")
	c.want("A 1 ack 1 <sack 1501-2001 501-1001>")
	c.send("A 2501:3001 ack 1")
	c.want("A 1 ack 1 <sack 2501-3001 1501-2001 501-1001>")
	c.send("A 3501:4001 ack 1")
	c.want("A 1 ack 1 <sack 3501-4001 2501-3001 1501-2001 501-1001>")
	c.send("A 4501:5001 ack 1")
	c.want("A 1 ack 1 <sack 4501-5001 3501-4001 2501-3001 1501-2001>")
	c.send("A 1001:1501 ack 1") // joins two ranges, one of which no acknowledgment had reported
	c.want("A 1 ack 1 <sack 501-2001 4501-5001 3501-4001 2501-3001>")
	c.send("A 1:501 ack 1")
	c.want("A 1 ack 2001 <sack 4501-5001 3501-4001 2501-3001>")
	c.send("A 2001:2501 ack 1")
	c.send("A 3001:3501 ack 1")
	c.send("A 4001:4501 ack 1")
	c.want("A 1 ack 5001 <>")
	c.wantReadable(5000)
}

func TestThreeSACKBlocksWithTimestamps(t *testing.T) {
	c := established(t, nil, ", sackOK, ts 7000 0")
	for _, s := range []string{"501:601", "701:801", "901:1001", "1101:1201"} {
		c.send("A " + s + " ack 1")
	}
	c.want("A 1 ack 1 <ts 3600010 7010, sack 901-1001 701-801 501-601>")
	c.want("A 1 ack 1 <ts 3600010 7010, sack 1101-1201 901-1001 701-801>")
}

func TestSACKRidesOnData(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.send("A 1001:2001 ack 1")
	c.write(3000)
	// The segment has 1000 bytes less 12 for the SACK option.
	c.want("A 1:989 ack 1 <sack 1001-2001>")
	c.want("A 989:1977 ack 1 <sack 1001-2001>")
}

func TestDSACK(t *testing.T) {
	// RFC 2883 section 4.
	c := established(t, nil, ", sackOK")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001 <>")
	c.send("A 1:1001 ack 1") // RFC 2883 section 4.1.1: a duplicate segment
	c.want("A 1 ack 2001 <sack 1-1001>")
	c.wantCount(DuplicatesIn, 1)
	c.send("A 3001:4001 ack 1")
	c.want("A 1 ack 2001 <sack 3001-4001>") // the duplicate is not reported again
	c.send("A 1001:2001 ack 1")             // RFC 2883 section 4.1.2: with a range after a gap
	c.want("A 1 ack 2001 <sack 1001-2001 3001-4001>")
	c.send("A 3001:4001 ack 1") // RFC 2883 section 4.1.3: a duplicate after the gap
	c.want("A 1 ack 2001 <sack 3001-4001 3001-4001>")
	c.send("A 3501:4501 ack 1") // RFC 2883 section 4.2.2: a partial duplicate after the gap
	c.want("A 1 ack 2001 <sack 3501-4001 3001-4501>")
	c.send("A 1501:2501 ack 1") // a partial duplicate at the left edge
	c.want("A 1 ack 2501 <sack 1501-2001 3001-4501>")
}

func TestDSACKsInOneBatchAreJoined(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001 <>")
	c.send("A 1:1001 ack 1")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 2001 <sack 1-2001>")
	c.wantIdle()
}

func TestNoSACKWithoutAgreement(t *testing.T) {
	c := established(t, nil, "")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 1 <>")
	c.send("A 1001:2001 ack 1")
	c.want("A 1 ack 1 <>")
}

func TestEachSegmentOutOfOrderIsOneDuplicateAckWithoutSACK(t *testing.T) {
	// A peer without SACK counts duplicates, so several must not become one.
	c := established(t, nil, "")
	for range 3 {
		c.send("A 1001:1101 ack 1")
	}
	c.want("A 1 ack 1")
	c.want("A 1 ack 1")
	c.want("A 1 ack 1")
	c.wantIdle()

	c = established(t, nil, ", sackOK")
	c.send("A 1001:1101 ack 1")
	c.send("A 1101:1201 ack 1")
	c.want("A 1 ack 1 <sack 1001-1201>") // with SACK, one acknowledgment reports all ranges
	c.wantIdle()
}

func TestGapsAreBounded(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 60000}, ", sackOK")
	c.in.discard = true
	for i := range ranges.Max + 50 { // leaves out every other byte
		at := 3 + 2*i
		c.send("A " + itoa(at) + ":" + itoa(at+1) + " ack 1")
		c.drain()
	}
	c.wantCount(DropRanges, 50)
	if n := len(c.rcv.behind.Ranges); n != ranges.Max {
		t.Fatalf("%d ranges are kept, want %d", n, ranges.Max)
	}
	// A segment that touches a range, or is in order, is still accepted.
	c.send("A 2:3 ack 1")
	c.wantCount(DropRanges, 0)
	c.send("A 1:2 ack 1")
	c.wantReadable(3)
	c.send("A 4:516 ack 1")
	c.wantReadable(515)
	if c.rcv.behind.NumRecent != 0 || c.rcv.gaps() {
		t.Error("ranges are left behind")
	}
}

func TestDataIsTakenAcrossManyGapsInAnyOrder(t *testing.T) {
	c := established(t, nil, ", sackOK")
	order := []int{5, 2, 9, 0, 7, 7, 3, 1, 8, 2, 6, 4}
	for _, i := range order {
		c.send("A " + itoa(1+100*i) + ":" + itoa(101+100*i) + " ack 1")
		c.drain()
	}
	c.wantReadable(1000)
}

func TestDataBeyondWindowIsNotTaken(t *testing.T) {
	c := established(t, &Config{ReceiveBuffer: 4096, MaxReceiveBuffer: 4096}, ", sackOK")
	c.send("A 4001:5001 ack 1") // inStream checks that no byte beyond 4096 is written
	c.want("A 1 ack 1 <sack 4001-4097>")
	c.send("FA 3001:4097 ack 1") // the FIN would be the first number beyond the window
	c.want("A 1 ack 1 <sack 4001-4097 3001-4097>")
	c.send("FA 4000:4096 ack 1") // the FIN is the last number inside the window
	c.drain()
	c.send("A 1:4001 ack 1")
	c.want("A 1 ack 4097 <sack 3001-4001>")
	c.wantReadable(4095)
	c.wantState(CloseWait)
}

// RFC 2883 section 4.2: if part of a segment that fills a gap had already arrived, the first such part is
// reported.
func TestPartialDuplicateIsTold(t *testing.T) {
	c := established(t, nil, ", sackOK")
	c.send("PA 1001:2001 ack 1")
	c.want("A 1 ack 1 <sack 1001-2001>")
	c.send("PA 4001:5001 ack 1")
	c.want("A 1 ack 1 <sack 4001-5001 1001-2001>")
	c.send("PA 1:3001 ack 1")
	c.want("A 1 ack 3001 <sack 1001-2001 4001-5001>")
	c.send("PA 3001:4001 ack 1")
	c.want("A 1 ack 5001 <>")
	c.send("PA 5001:6001 ack 1") // reports no duplicate, since nothing arrived twice
	c.send("PA 6001:7001 ack 1")
	c.want("A 1 ack 7001 <>")
}
